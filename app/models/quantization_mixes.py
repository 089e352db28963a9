"""Which tensor gets which type in each quantization of llama.cpp, and what it falls back to when its rows do not fit.

A quantization such as Q4_K_M is a mix: sensitive tensors get more bits than its name says. A type that stores 256
weights together cannot store rows that are no whole number of such blocks; llama.cpp then takes a larger type.
Knows names, dims and a few facts of the model; no weights and no file.
Reference: llama_tensor_get_type and tensor_type_fallback in llama-quant.cpp of the llama.cpp in llama-cpp-python
0.3.36; the rules are the same, the tables are ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from app.models.ggml_types import GGML_TYPES
from app.models.quantization_roles import Role, Tensor, is_quantized, layer_of, role_of

BLOCK_ELEMENTS: Mapping[str, int] = MappingProxyType({kind.name: kind.block_elements for kind in GGML_TYPES.values()})
# Bits per weight of one type, its scales included.
BLOCK_BITS: Mapping[str, float] = MappingProxyType(
    {kind.name: 8 * kind.block_bytes / kind.block_elements for kind in GGML_TYPES.values()}
)

# Type of the mix -> the type of smaller blocks that llama.cpp takes instead.
FALLBACKS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("Q2_0", "Q2_K", "Q3_K", "TQ1_0", "TQ2_0"), "Q4_0"),
        "Q4_K": "Q5_0",
        "Q5_K": "Q5_1",
        "Q6_K": "Q8_0",
        **dict.fromkeys(
            ("IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ4_XS"),
            "IQ4_NL",
        ),
    }
)
LAST_RESORT = "F16"  # for rows that fit no block at all


@dataclass(frozen=True, slots=True)
class MixFacts:
    """What a mix depends on besides the tensor.

    Attributes:
        architecture: such as "llama".
        layers: the number of layers.
        experts: of a mixture of experts; 0 for none.
        heads_per_kv: how many query heads share a KV head, in the first layer.
        has_importance_matrix: whether one is used.
    """

    architecture: str = ""
    layers: int = 0
    experts: int = 0
    heads_per_kv: int = 1
    has_importance_matrix: bool = False

    @property
    def is_70b(self) -> bool:
        """Whether this is a Llama of 80 layers with shared KV heads."""
        return self.architecture == "llama" and self.layers == 80 and self.heads_per_kv != 1


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a tensor stands: the how manieth of its role, or its layer.

    Attributes:
        index: from 0.
        count: how many there are.
    """

    index: int
    count: int
    facts: MixFacts


_Condition = Callable[[_Place], bool]
_Rule = tuple[str, _Condition]


def _always(_place: _Place) -> bool:
    return True


def _is_grouped(place: _Place) -> bool:
    return place.facts.heads_per_kv >= 4


def _is_grouped_or_expert(place: _Place) -> bool:
    return _is_grouped(place) or place.facts.experts >= 4


def _in_first_eighth(place: _Place) -> bool:
    return place.index < place.count // 8


def _in_first_sixteenth(place: _Place) -> bool:
    return place.index < place.count // 16


def _in_middle(place: _Place) -> bool:
    return place.count // 8 <= place.index < 7 * place.count // 8


def _is_sensitive(place: _Place) -> bool:
    """Whether it is in the first or last eighth, or every third between."""
    return not _in_middle(place) or (place.index - place.count // 8) % 3 == 2


def _is_sensitive_for_experts(place: _Place) -> bool:
    return _in_first_eighth(place) or (place.facts.experts == 8 and _is_sensitive(place))


def _without_matrix(place: _Place) -> bool:
    return not place.facts.has_importance_matrix


def _first_eighth_without_matrix(place: _Place) -> bool:
    return _in_first_eighth(place) and _without_matrix(place)


def _first_eighth_with_matrix(place: _Place) -> bool:
    return _in_first_eighth(place) and not _without_matrix(place)


def _in_first_two(place: _Place) -> bool:
    return place.index < 2


def _in_first_four(place: _Place) -> bool:
    return place.index < 4


@dataclass(frozen=True, slots=True)
class Mix:
    """One quantization.

    Attributes:
        main: the type of every tensor without a rule of its own.
        rules: by role, the types tried in order; the first whose condition holds is taken.
        output: the type of the output, and of an embedding that is the output too.
        is_low: whether it is one of the types below 3 bits, which have rules of their own for experts.
    """

    main: str
    rules: Mapping[Role, tuple[_Rule, ...]] = field(default_factory=dict)
    output: str = "Q6_K"
    is_low: bool = False


def _low(main: str, better: str, attn_output: str, embedding: str) -> Mix:
    """Return a mix below 3 bits: `better` for the sensitive tensors."""
    rules: dict[Role, tuple[_Rule, ...]] = {
        "embedding": ((embedding, _always),),
        "attn_v": (("Q4_K", _is_grouped_or_expert), (better, _always)),
        "ffn_down": ((better, _in_first_eighth),),
        "attn_output": ((attn_output, _always),),
    }
    return Mix(main, rules, output="Q5_K", is_low=True)


MIXES: Mapping[str, Mix] = MappingProxyType(
    {
        "Q4_0": Mix("Q4_0", {"ffn_down": (("Q4_1", _first_eighth_with_matrix),)}),
        "Q4_1": Mix("Q4_1"),
        "Q5_0": Mix("Q5_0", {"ffn_down": (("Q5_1", _first_eighth_with_matrix),)}),
        "Q5_1": Mix("Q5_1"),
        "Q8_0": Mix("Q8_0", output="Q8_0"),
        "Q1_0": Mix("Q1_0"),
        "Q2_0": Mix("Q2_0", {"embedding": (("Q4_K", _always),)}),
        "TQ1_0": Mix("TQ1_0", {"embedding": (("Q4_K", _always),)}),
        "TQ2_0": Mix("TQ2_0", {"embedding": (("Q4_K", _always),)}),
        "MXFP4_MOE": Mix("MXFP4", output="Q8_0"),
        "Q2_K": Mix(
            "Q2_K",
            {
                "attn_v": (("Q4_K", _is_grouped), ("Q3_K", _always)),
                "attn_output": (("Q3_K", _always),),
                "ffn_down": (("Q3_K", _always),),
            },
        ),
        "Q2_K_S": Mix("Q2_K", {"attn_v": (("Q4_K", _is_grouped),), "ffn_down": (("Q4_K", _in_first_eighth),)}),
        "Q3_K_S": Mix("Q3_K"),
        "Q3_K_M": Mix(
            "Q3_K",
            {
                "attn_v": (("Q5_K", _in_first_two), ("Q4_K", _always)),
                "attn_output": (("Q4_K", _always),),
                "ffn_down": (("Q5_K", _in_first_sixteenth), ("Q4_K", _always)),
            },
        ),
        "Q3_K_L": Mix("Q3_K", dict.fromkeys(("attn_v", "attn_output", "ffn_down"), (("Q5_K", _always),))),
        "Q4_K_S": Mix("Q4_K", {"attn_v": (("Q5_K", _in_first_four),), "ffn_down": (("Q5_K", _in_first_eighth),)}),
        "Q4_K_M": Mix("Q4_K", dict.fromkeys(("attn_v", "ffn_down"), (("Q6_K", _is_sensitive),))),
        "Q5_K_S": Mix("Q5_K"),
        "Q5_K_M": Mix("Q5_K", dict.fromkeys(("attn_v", "ffn_down"), (("Q6_K", _is_sensitive),))),
        "Q6_K": Mix("Q6_K"),
        "IQ1_S": _low("IQ1_S", "Q2_K", "IQ2_XXS", "Q2_K"),
        "IQ1_M": _low("IQ1_M", "Q2_K", "IQ2_XXS", "Q2_K"),
        "IQ2_XXS": _low("IQ2_XXS", "Q2_K", "IQ2_XXS", "Q2_K"),
        "IQ2_XS": _low("IQ2_XS", "Q2_K", "IQ2_XS", "Q2_K"),
        "IQ2_S": _low("IQ2_XS", "IQ3_S", "IQ3_S", "IQ3_S"),
        "IQ2_M": _low("IQ2_S", "IQ3_S", "IQ3_S", "IQ3_S"),
        "IQ3_XXS": Mix(
            "IQ3_XXS",
            {
                "embedding": (("IQ3_S", _always),),
                "attn_q": (("IQ2_S", _always),),
                "attn_k": (("IQ2_S", _always),),
                "attn_v": (("Q4_K", _is_grouped), ("IQ3_S", _without_matrix)),
                "attn_output": (("IQ3_S", _always),),
                "ffn_down": (("Q4_K", _first_eighth_without_matrix), ("Q3_K", _without_matrix)),
            },
            output="Q5_K",
        ),
        "IQ3_XS": Mix(
            "IQ3_S",
            {
                "attn_q": (("IQ3_XXS", _always),),
                "attn_k": (("IQ3_XXS", _always),),
                "attn_v": (("Q4_K", _is_grouped),),
                "ffn_gate": (("IQ3_XXS", _in_middle),),
                "ffn_up": (("IQ3_XXS", _in_middle),),
            },
        ),
        "IQ3_S": Mix("IQ3_S", {"attn_v": (("Q4_K", _is_grouped),)}),
        "IQ3_M": Mix(
            "IQ3_S",
            {
                "attn_v": (("Q4_K", _always),),
                "attn_output": (("Q4_K", _always),),
                "ffn_down": (("Q4_K", _is_sensitive_for_experts),),
            },
        ),
        "IQ4_NL": Mix(
            "IQ4_NL", {"attn_v": (("Q5_K", _is_grouped),), "ffn_down": (("Q5_K", _first_eighth_without_matrix),)}
        ),
        "IQ4_XS": Mix(
            "IQ4_XS", {"attn_v": (("Q5_K", _is_grouped),), "ffn_down": (("Q5_K", _first_eighth_without_matrix),)}
        ),
    }
)

# Falcon keeps its own rules for two roles.
_FALCON: Mapping[tuple[str, Role], tuple[_Rule, ...]] = MappingProxyType(
    {
        ("Q3_K_M", "ffn_down"): (("Q5_K", _in_first_sixteenth), ("Q4_K", _is_sensitive)),
        ("Q3_K_L", "ffn_down"): (("Q4_K", _always),),
        ("Q4_K_S", "ffn_down"): (),
        ("Q4_K_M", "ffn_down"): (("Q6_K", _in_first_sixteenth), ("Q5_K", _is_sensitive)),
        ("Q3_K_L", "attn_output"): (("Q4_K", _always),),
        **{(mix, "attn_output"): () for mix in ("Q2_K", "IQ3_XXS", "Q3_K_M", "IQ3_M")},
    }
)
# With 8 experts attention is a small part of the model and gets more bits in these.
_EIGHT_EXPERTS_OUTPUT = frozenset(
    ("Q2_K", "Q3_K_S", "Q3_K_M", "Q4_K_S", "Q4_K_M", "IQ3_XXS", "IQ3_XS", "IQ3_S", "IQ3_M", "IQ4_NL", "IQ4_XS")
)

_FEED_FORWARD: frozenset[Role] = frozenset(("ffn_up", "ffn_gate", "ffn_down"))

_EIGHT_BITS_GLM5 = ("attn_q_a", "attn_q_b", "nextn.eh_proj")


def mix_types(mix_name: str, tensors: Sequence[Tensor], facts: MixFacts) -> dict[str, str]:
    """Return the type that a mix of MIXES gives to each tensor it quantizes, whether its rows fit that type or not."""
    mix = MIXES[mix_name]
    names = [tensor.name for tensor in tensors]
    chooser = _Chooser(mix_name, mix, facts, "output.weight" not in names, Counter(map(role_of, names))["attn_v"])
    in_order = sorted(tensors, key=lambda tensor: (layer_of(tensor.name), tensor.name.encode()))
    return {tensor.name: chooser.choose(tensor) for tensor in in_order if is_quantized(tensor, facts.architecture)}


def stored_type(type_name: str, row_elements: int) -> str:
    """Return the type that llama.cpp really stores such rows in: the type itself, or what it falls back to."""
    if fits(type_name, row_elements):
        return type_name
    fallback = FALLBACKS.get(type_name, LAST_RESORT)
    return fallback if fits(fallback, row_elements) else LAST_RESORT


def fits(type_name: str, row_elements: int) -> bool:
    """Whether a row of this length is a whole number of the type's blocks."""
    return row_elements % BLOCK_ELEMENTS[type_name] == 0


class _Chooser:
    """Chooses type after type, in the order of the layers.

    Attributes:
        _seen: how many tensors of each role there were before.
        _num_values: how many tensors of the role attn_v there are.
    """

    def __init__(self, name: str, mix: Mix, facts: MixFacts, is_tied: bool, num_values: int) -> None:
        self._name = name
        self._mix = mix
        self._facts = facts
        self._is_tied = is_tied
        self._num_values = num_values
        self._seen: Counter[Role] = Counter()

    def choose(self, tensor: Tensor) -> str:
        """Return the type of the next tensor."""
        role = role_of(tensor.name)
        if self._facts.architecture == "glm5-next" and any(part in tensor.name for part in _EIGHT_BITS_GLM5):
            return "Q8_0"
        if role == "output" or (role == "embedding" and self._is_tied):
            return self._output_type(tensor.dims[0])
        if self._name == "MXFP4_MOE":
            return self._mix.main if self._is_expert(tensor, role) else "Q8_0"
        place = self._place(tensor.name, role)
        self._seen[role] += 1
        type_name = next((kind for kind, holds in self._rules(role) if holds(place)), self._mix.main)
        if role == "attn_v" and not self._mix.is_low:
            return self._value_type(type_name)
        return type_name

    def _output_type(self, row_elements: int) -> str:
        is_whole = fits(self._mix.main, row_elements)
        return self._mix.output if is_whole and self._facts.architecture != "falcon" else "Q8_0"

    def _is_expert(self, tensor: Tensor, role: Role) -> bool:
        is_stacked = len(tensor.dims) > 2 and tensor.dims[2] > 1
        return is_stacked and (self._facts.architecture != "bailingmoe3" or role in _FEED_FORWARD)

    def _place(self, name: str, role: Role) -> _Place:
        index = self._seen[role]
        if role in _FEED_FORWARD and self._facts.experts > 1 and not self._mix.is_low:
            index = max(0, layer_of(name))  # experts of one layer share its index
        return _Place(index, self._num_values if role == "attn_v" else self._facts.layers, self._facts)

    def _rules(self, role: Role) -> tuple[_Rule, ...]:
        if self._facts.experts == 8 and role in ("attn_k", "attn_output"):
            return self._rules_of_eight_experts(role)
        if self._facts.architecture == "falcon" and (self._name, role) in _FALCON:
            return _FALCON[self._name, role]
        return self._mix.rules.get(role, ())

    def _rules_of_eight_experts(self, role: Role) -> tuple[_Rule, ...]:
        if role == "attn_k":
            return (("Q4_K" if self._mix.is_low else "Q8_0", _always),)
        return (("Q5_K", _always),) if self._mix.is_low or self._name in _EIGHT_EXPERTS_OUTPUT else ()

    def _value_type(self, type_name: str) -> str:
        if self._facts.experts == 8:
            return "Q8_0"
        return "Q5_K" if self._facts.is_70b and type_name in ("Q3_K", "Q4_K") else type_name
