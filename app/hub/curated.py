"""Picked for you: a dated list of good models that comes with the program, and which of them suit this machine.

The list says of each model what decides its memory, so that the first choice needs no network. Sizes are rounded
("about"), since publishers renew their files; the hub tells the exact ones before a download. What does not fit is
never picked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.hub.recommend import LEAST_ROOM_TOKENS, Recommendation, RowFit, recommend
from app.hub.types import QuantizationRow
from app.i18n import _
from app.models.fit_types import Fit, Machine, Verdict
from app.models.fit_words import context_text
from app.models.shape import LayerShape, ModelShape
from app.paths import resources_folder
from app.units import rate_text

FitOf = Callable[[ModelShape], Fit]

_FILE_NAME = "curated.json"
_MAX_FILE_BYTES = 2**20
_MB = 1_000_000  # sizes as the hub's pages give them
# Models below this lose more by quantization and are quick anyway: they are taken as large as they come.
_TINY_PARAMETERS = 2e9
# A computer with less than this is offered the small models first.
_SMALL_MACHINE_BYTES = 10 * 2**30
_SLOW_TOKENS_PER_S = 3.0
# Where nobody measured the memory: a processor reads about so much in the time of a slow token.
_SLOW_READ_BYTES = 8_000_000_000


class CuratedModel(msgspec.Struct, frozen=True, kw_only=True):
    """One model of the list.

    Attributes:
        repo: where its files are, owner/name.
        name: for people.
        licence: for people.
        strength: a key of the words below.
        active_parameters_count: weights used for one token; 0 for all.
        window_tokens: how far back most layers see; 0 for everything.
        full_attention_every: which layers see everything all the same; 0 for none.
        sizes_mb: about how large each offered quantization is, in millions of bytes.
        The others are those of ModelShape and LayerShape.
    """

    repo: str
    name: str
    licence: str
    strength: str
    architecture: str
    parameters_count: int
    context_tokens: int
    embedding_length: int
    feed_forward_length: int
    head_count: int
    kv_heads: int
    head_length: int
    layers_count: int
    vocabulary_tokens: int
    is_tied: bool
    sizes_mb: dict[str, int]
    active_parameters_count: int = 0
    window_tokens: int = 0
    full_attention_every: int = 0


class CuratedList(msgspec.Struct, frozen=True, kw_only=True):
    """The list.

    Attributes:
        as_of: the day it was made, as ISO 8601.
        models: those with the fewest weights first.
    """

    as_of: str = ""
    models: tuple[CuratedModel, ...] = ()


@dataclass(frozen=True, slots=True)
class Pick:
    """One model to begin with.

    Attributes:
        repo: owner/name.
        name: for people. licence: likewise.
        quantization: the one that suits this machine.
        size_bytes: about.
        parameters_count: how many weights it has.
        reason: what it is good at and how it fits, two sentences.
        fit: of this quantization.
        shape: the same the fit was made from.
    """

    repo: str
    name: str
    licence: str
    quantization: str
    size_bytes: int
    parameters_count: int
    reason: str
    fit: Fit
    shape: ModelShape

    @property
    def reference(self) -> str:
        """What the command line and the search field take: owner/name:QUANT."""
        return f"{self.repo}:{self.quantization}"


def load_curated(path: Path | None = None) -> CuratedList:
    """Return the list; an empty one where its file is missing or damaged."""
    path = path or resources_folder() / _FILE_NAME
    try:
        with path.open("rb") as file:
            data = file.read(_MAX_FILE_BYTES)
        return msgspec.json.decode(data, type=CuratedList)
    except (OSError, msgspec.MsgspecError, ValueError):
        return CuratedList()


def curated_shape(model: CuratedModel, size_bytes: int) -> ModelShape:
    """Return a model's shape when its weights take so much."""
    embedding = size_bytes * (model.vocabulary_tokens * model.embedding_length) // model.parameters_count
    ends = embedding if model.is_tied else 2 * embedding
    of_layer = max(0, size_bytes - ends) // model.layers_count
    share = model.active_parameters_count / model.parameters_count if model.active_parameters_count else 1.0
    every = model.full_attention_every
    layers = tuple(
        LayerShape(
            kv_heads=model.kv_heads,
            key_length=model.head_length,
            value_length=model.head_length,
            window_tokens=0 if every and (index + 1) % every == 0 else model.window_tokens,
            weights_bytes=of_layer,
            read_bytes=int(of_layer * share),
        )
        for index in range(model.layers_count)
    )
    return ModelShape(
        architecture=model.architecture,
        context_tokens=model.context_tokens,
        embedding_length=model.embedding_length,
        feed_forward_length=model.feed_forward_length,
        head_count=model.head_count,
        vocabulary_tokens=model.vocabulary_tokens,
        parameters_count=model.parameters_count,
        weights_bytes=size_bytes,
        input_bytes=embedding,
        output_bytes=0 if model.is_tied else embedding,
        other_bytes=max(0, size_bytes - ends) - of_layer * model.layers_count,
        read_bytes=int(of_layer * share) * model.layers_count + embedding,
        layers=layers,
    )


def picks(machine: Machine, fit_of: FitOf, curated: CuratedList | None = None) -> list[Pick]:
    """Return the models of the list that fit this machine now, the most suitable first.

    Args:
        machine: what there is; a small one is offered small models first.
        fit_of: whether a shape fits, asked as every screen asks.
        curated: the list; None for the program's own.
    """
    found: list[tuple[bool, float, Pick]] = []
    for model in (curated if curated is not None else load_curated()).models:
        pick = _pick(model, fit_of)
        if pick is not None:
            found.append((_is_slow(pick.fit, pick.shape), _capability(model), pick))
    is_small = machine.cpu.total_bytes < _SMALL_MACHINE_BYTES and len(machine.devices) == 1
    found.sort(key=lambda one: (one[0], one[1] if is_small else -one[1]))
    return [pick for _slow, _size, pick in found]


def _pick(model: CuratedModel, fit_of: FitOf) -> Pick | None:
    rows: list[RowFit] = []
    for quantization, size_mb in model.sizes_mb.items():
        size_bytes = size_mb * _MB
        shape = curated_shape(model, size_bytes)
        row = QuantizationRow(
            key=quantization,
            quantization=quantization,
            files=(),
            size_bytes=size_bytes,
            bits_per_weight=8 * size_bytes / model.parameters_count,
            shape=shape,
        )
        rows.append((row, fit_of(shape)))
    good = [one for one in rows if one[1].verdict is Verdict.FITS and _room(one[1]) >= _least_room(model)]
    if not good:
        return None
    if model.parameters_count < _TINY_PARAMETERS:
        chosen = Recommendation(max(good, key=lambda one: one[0].size_bytes)[0].key, "")
    else:
        chosen = recommend(good)
    row, fit = next(one for one in good if one[0].key == chosen.key)
    assert row.shape is not None
    return Pick(
        repo=model.repo,
        name=model.name,
        licence=model.licence,
        quantization=row.quantization,
        size_bytes=row.size_bytes,
        parameters_count=model.parameters_count,
        reason=_reason(model, fit, row.shape),
        fit=fit,
        shape=row.shape,
    )


def _reason(model: CuratedModel, fit: Fit, shape: ModelShape) -> str:
    strength = _STRENGTHS.get(model.strength, _STRENGTHS["all_round"])()
    values = {"tokens": context_text(_room(fit)), "speed": rate_text(fit.decode_tokens_per_s)}
    if _is_slow(fit, shape):
        words = _("It fits, with room for {tokens} tokens, but is slow on this machine.")
    elif fit.decode_tokens_per_s is None:
        words = _("It fits this machine, with room for {tokens} tokens.")
    elif fit.is_speed_measured:
        words = _("It fits this machine, with room for {tokens} tokens, at {speed}.")
    else:
        words = _("It fits this machine, with room for {tokens} tokens, at about {speed}.")
    return f"{strength} {words.format_map(values)}"


def _is_slow(fit: Fit, shape: ModelShape) -> bool:
    if fit.decode_tokens_per_s is not None:
        return fit.decode_tokens_per_s < _SLOW_TOKENS_PER_S
    return (fit.device is None or fit.device.is_cpu) and shape.read_bytes > _SLOW_READ_BYTES


def _capability(model: CuratedModel) -> float:
    """Return how much a model can do, by its weights; one that uses few at a time stands between both counts."""
    return math.sqrt(model.parameters_count * (model.active_parameters_count or model.parameters_count))


def _least_room(model: CuratedModel) -> int:
    return min(LEAST_ROOM_TOKENS, model.context_tokens)


def _room(fit: Fit) -> int:
    return fit.max_context_tokens.get("f16") or 0


_STRENGTHS: Mapping[str, Callable[[], str]] = {
    "tiny": lambda: _("Small and quick on any computer; good for short questions and rewording."),
    "quick": lambda: _("Quick for its size, in several languages."),
    "english": lambda: _("Writes plain English well for its size."),
    "thinks": lambda: _("Can think before it answers; strong in mathematics, code and many languages."),
    "pictures": lambda: _("Writes well in many languages; with its projector it understands pictures."),
    "reasons": lambda: _("Always thinks at length before it answers; for mathematics and logic."),
    "all_round": lambda: _("A good all-round model for writing, questions and code."),
    "science": lambda: _("Strong in science, mathematics and code for its size."),
    "experts": lambda: _("Large, but uses only a part of itself for each token, so it writes quickly."),
    "best": lambda: _("The most able of this list, for machines with a lot of memory."),
}
