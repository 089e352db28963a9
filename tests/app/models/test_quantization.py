"""What a quantization means for a person, and what a header says of the file behind the name."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import pytest

from app.models.ggml_types import FILE_TYPES, GGML_TYPES
from app.models.gguf_facts import ArrayNote, GgufHeader, TensorInfo, Value
from app.models.quantization import (
    QuantizationMeaning,
    effective_bits,
    fallback_tensors,
    group_of,
    group_title,
    has_importance_matrix,
    importance_words,
    meaning,
    meaning_of_header,
    quantization_rank,
    quantized_tensors,
    words_for,
)

TYPES = {kind.name: kind for kind in GGML_TYPES.values()}
FILE_NUMBERS = {name: number for number, name in FILE_TYPES.items()}
EVERY_NAME = [
    *sorted({*TYPES, *FILE_NUMBERS}),
    *("Q2_K_L", "Q3_K_XL", "Q4_K_L", "Q5_K_L", "Q6_K_L", "Q8_K_XL", "UD-Q2_K_XL", "UD-Q3_K_XL", "UD-Q4_K_XL"),
    *("UD-Q5_K_XL", "UD-Q6_K_XL", "UD-Q8_K_XL", "UD-IQ1_S", "UD-IQ1_M", "UD-IQ2_XXS", "UD-IQ2_M", "UD-IQ3_XXS"),
    *("UD-TQ1_0", "Q4_0_4_4", "Q4_0_4_8", "Q4_0_8_8", "IQ4_NL_4_4", "Q4_K_P"),
    *("FP8", "FP8-E5M2", "MXFP8", "NF4", "FP4", "int8", "int6", "int5", "int4", "int3", "int2", "int4-g64"),
    *("AWQ-int4-g128", "GPTQ-int4-g32", "GPTQ-int8", "AutoRound-int2-g64", "HQQ-int4", "Quanto-int8", "MLX-int4"),
    *("EETQ-int8", "W8A8", "W8A16", "W4A16", "W4A16-g128", "W4A8", "W4A4", "EXL2-4.65bpw", "EXL3-3bpw", "4.25bpw"),
]
WIDE = {"F64", "I64"}  # no model's weights are in these
WORDS = {
    *("reference", "indistinguishable", "near-lossless", "small differences", "noticeable", "heavy loss"),
    *("for special models", "unknown"),
}


def header(
    tensors: Mapping[str, tuple[tuple[int, ...], str]], quantization: str = "", /, **metadata: Value
) -> GgufHeader:
    """Return the header of a file with these tensors: name to dims and type. `__` in a key stands for a point."""
    values: dict[str, Value] = {"general.architecture": "llama"}
    if quantization:
        values["general.file_type"] = FILE_NUMBERS[quantization]
    values |= {key.replace("__", "."): value for key, value in metadata.items()}
    read = [
        TensorInfo(name, dims, type_name, 0, TYPES[type_name].size_bytes(math.prod(dims)))
        for name, (dims, type_name) in tensors.items()
    ]
    return GgufHeader(3, 32, values, tuple(read), 0, 0)


def layers(row: int, types: Sequence[str]) -> dict[str, tuple[tuple[int, ...], str]]:
    """Return a layer for each type: an attn_q of that type, and a norm."""
    tensors: dict[str, tuple[tuple[int, ...], str]] = {}
    for number, type_name in enumerate(types):
        tensors[f"blk.{number}.attn_q.weight"] = ((row, 64), type_name)
        tensors[f"blk.{number}.attn_norm.weight"] = ((row,), "F32")
    return tensors


# ------------------------------------------------------------------------------------- every name


@pytest.mark.parametrize("name", EVERY_NAME)
def test_every_quantization_has_a_meaning_that_fits_a_table_and_a_tooltip(name: str) -> None:
    found = meaning(name)
    assert found.is_known
    assert found.name == name
    assert found.words in WORDS
    assert len(found.words.split()) <= 3
    assert "\n" not in found.sentence
    assert len(found.sentence) <= 160
    assert found.sentence.endswith(".")
    assert found.sentence[0].isupper() or found.sentence[0].isdigit()
    assert "{" not in found.sentence
    assert found.group in ("small", "balanced", "large")
    assert found.group == group_of(found.nominal_bits)
    assert 1 < found.nominal_bits <= (64 if name in WIDE else 32)
    assert found.family in ("plain", "k", "i", "float", "ternary", "torch")


@pytest.mark.parametrize(
    ("name", "words", "group"),
    [
        ("Q2_K", "heavy loss", "small"),
        ("Q3_K_M", "noticeable", "small"),
        ("Q4_K_M", "small differences", "balanced"),
        ("Q5_K_M", "small differences", "balanced"),
        ("Q6_K", "near-lossless", "large"),
        ("Q8_0", "indistinguishable", "large"),
        ("F16", "reference", "large"),
        ("BF16", "reference", "large"),
        ("IQ2_M", "heavy loss", "small"),
        ("IQ4_XS", "small differences", "balanced"),
        ("TQ1_0", "for special models", "small"),
        ("AWQ-int4-g128", "small differences", "balanced"),
        ("int8", "indistinguishable", "large"),
    ],
)
def test_words_and_groups_are_those_of_the_table(name: str, words: str, group: str) -> None:
    assert (meaning(name).words, meaning(name).group) == (words, group)


@pytest.mark.parametrize(
    "ladder",
    [
        ["Q2_K_S", "Q2_K", "Q3_K_S", "Q3_K_M", "Q3_K_L", "Q4_K_S", "Q4_K_M", "Q5_K_S", "Q5_K_M", "Q6_K", "Q8_0", "F16"],
        ["IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M", "IQ3_XXS", "IQ3_XS", "IQ3_S", "IQ3_M", "IQ4_XS"],
        ["Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "BF16", "F32"],
        ["Q2_K_L", "Q3_K_XL", "Q4_K_L", "Q5_K_L", "Q6_K_L", "Q8_K_XL"],
    ],
)
def test_a_ladder_climbs_in_bits_and_never_loses_more(ladder: list[str]) -> None:
    order = ["heavy loss", "noticeable", "small differences", "near-lossless", "indistinguishable", "reference"]
    for lower, higher in itertools.pairwise(map(meaning, ladder)):
        assert lower.nominal_bits < higher.nominal_bits
        assert order.index(lower.words) <= order.index(higher.words)
    shuffled = [*ladder[1::2], *ladder[::2]]
    assert sorted(shuffled, key=quantization_rank) == ladder


def test_a_tooltip_says_how_weights_are_stored_and_what_is_noticed() -> None:
    assert meaning("Q4_K_M") == QuantizationMeaning(
        name="Q4_K_M",
        words="small differences",
        sentence="Blocks of 256 weights at 4 bits each, half of the sensitive ones at 6; wording differs now and then, "
        "the sense rarely.",
        group="balanced",
        nominal_bits=4.89,
        is_weight_only=True,
        family="k",
    )


@pytest.mark.parametrize(
    ("spelled", "name"), [("q4_k_m", "Q4_K_M"), ("i1-Q4_K_M", "Q4_K_M"), ("ud-q4_k_xl", "UD-Q4_K_XL")]
)
def test_spelling_does_not_matter(spelled: str, name: str) -> None:
    assert meaning(spelled) == meaning(name)
    assert meaning(spelled).name == name


@pytest.mark.parametrize("name", ["", "what", "Q9_Z", "\u202eQ4\nK", "x" * 10_000, "{name}", "Q4_K_M; rm"])
def test_a_stranger_is_called_one_and_never_an_error(name: str) -> None:
    found = meaning(name)
    assert not found.is_known
    assert (found.words, found.group, found.nominal_bits, found.family) == ("unknown", "balanced", 0, "")
    assert found.sentence == "Cutaway does not know this quantization, so it cannot say how much is lost."
    assert found.name.isprintable()
    assert len(found.name) <= 64
    assert meaning(name, 3.0).group == "small"


def test_strangers_sort_last() -> None:
    assert sorted(["what", "F32", "Q2_K", "Q4_K_M", "IQ1_S", "another"], key=quantization_rank) == [
        *("IQ1_S", "Q2_K", "Q4_K_M", "F32", "another", "what")
    ]


# ------------------------------------------------------------------------------------- groups


@pytest.mark.parametrize(
    ("bits", "group"),
    [
        (1.6, "small"),
        (4.25, "small"),
        (4.26, "balanced"),
        (6.25, "balanced"),
        (6.26, "large"),
        (32.0, "large"),
        (0.0, "balanced"),
        (-1.0, "balanced"),
        (math.nan, "balanced"),
        (math.inf, "balanced"),
    ],
)
def test_bits_decide_the_group(bits: float, group: str) -> None:
    assert group_of(bits) == group


def test_groups_have_headings() -> None:
    assert [group_title(group_of(bits)) for bits in (3, 5, 8)] == ["Small", "Balanced", "Large"]


# ------------------------------------------------------------------------------------- the file behind the name


@pytest.mark.parametrize(
    ("name", "bits", "words", "group"),
    [
        # SmolLM2 135M: rows of 576.
        ("Q2_K", 5.14, "noticeable", "balanced"),
        ("Q3_K_M", 5.46, "noticeable", "balanced"),
        ("Q4_K_M", 6.17, "small differences", "balanced"),
        ("Q5_K_M", 6.90, "small differences", "large"),
        ("Q6_K", 8.12, "indistinguishable", "large"),
        ("IQ2_XS", 5.20, "small differences", "balanced"),
    ],
)
def test_a_model_whose_rows_fit_no_block_gets_the_words_of_what_it_fell_back_to(
    name: str, bits: float, words: str, group: str
) -> None:
    found = meaning(name, bits, 180)
    assert (found.words, found.group) == (words, group)
    promised = meaning(name).nominal_bits
    assert found.sentence == (
        f"180 tensors fell back to larger types: {bits:.2f} bits a weight instead of about {promised:.2f}."
    )
    assert words_for(name, bits, 180) == words


def test_without_a_count_only_as_many_bits_as_the_fallback_has_tell() -> None:
    assert words_for("Q2_K", 5.14) == "noticeable"
    assert meaning("Q2_K", 5.14).sentence == (
        "Its rows are no whole blocks of 256 weights, so larger types hold them: 5.14 bits a weight."
    )
    assert words_for("Q2_K", 3.9) == "heavy loss"  # a large vocabulary, stored at 6 bits
    assert words_for("Q2_K", 5.14, 0) == "heavy loss"


def test_one_tensor_that_fell_back_changes_no_words() -> None:
    assert meaning("Q2_K", 3.2, 1).sentence == meaning("Q2_K").sentence
    assert meaning("Q4_0", 5.35, 1).words == "noticeable"


def test_a_file_below_the_bits_of_its_own_type_is_not_what_its_name_says() -> None:
    found = meaning("Q8_0", 4.5)
    assert (found.words, found.group) == ("small differences", "balanced")
    assert found.sentence == "Its name promises about 8.50 bits a weight, and the file has 4.50."


@pytest.mark.parametrize(
    ("name", "bits"), [("IQ1_S", 1.6), ("TQ1_0", 1.7), ("AWQ-int4-g128", 4.5), ("W4A16", 4.3), ("Q4_K_M", 4.75)]
)
def test_a_large_model_with_little_vocabulary_keeps_its_promise(name: str, bits: float) -> None:
    assert meaning(name, bits, 0).sentence == meaning(name).sentence


@pytest.mark.parametrize("bits", [math.nan, math.inf, -3.0, 0.0])
def test_bits_that_are_no_number_leave_the_name_alone(bits: float) -> None:
    assert meaning("Q2_K", bits) == meaning("Q2_K")


# ------------------------------------------------------------------------------------- headers


def test_effective_bits_count_every_tensor() -> None:
    # 512 x 64 weights at 4.5 bits, and 512 at 32.
    assert effective_bits(header(layers(512, ["Q4_K"]))) == (64 * 4.5 + 32) / 65
    assert effective_bits(header({})) == 0.0


def test_rows_that_fit_never_fell_back() -> None:
    assert fallback_tensors(header(layers(512, ["Q4_K", "Q4_K"]), "Q4_K_M", llama__block_count=2)) == 0


def test_rows_that_do_not_fit_fell_back_unless_their_maker_chose_another_type() -> None:
    made = header(layers(576, ["Q5_0", "Q5_0", "BF16"]), "Q4_K_M", llama__block_count=3)
    assert (fallback_tensors(made), quantized_tensors(made)) == (2, 3)
    # Not even blocks of 32 fit a row of 80: F16 is the fallback, and Q5_0 cannot be.
    made = header(layers(80, ["F16", "F16", "F32"]), "Q4_K_M", llama__block_count=3)
    assert fallback_tensors(made) == 2


@pytest.mark.parametrize("quantization", ["", "F16", "BF16", "F32", "NVFP4"])
def test_without_a_mix_nothing_fell_back(quantization: str) -> None:
    assert fallback_tensors(header(layers(576, ["Q5_0"]), quantization)) == 0


def test_a_guessed_file_type_is_a_file_type() -> None:
    made = header(layers(576, ["Q5_0"]), general__file_type=FILE_NUMBERS["Q4_K_M"] | 1024)
    assert fallback_tensors(made) == 1


def test_a_file_says_how_many_of_how_many_fell_back() -> None:
    made = header(layers(576, ["Q5_0", "Q5_0", "Q5_0"]), "Q4_K_S", llama__block_count=3)
    found = meaning_of_header(made)
    assert found.sentence == ("3 of 3 tensors fell back to larger types: 5.91 bits a weight instead of about 4.67.")
    assert meaning_of_header(header(layers(512, ["Q4_K"]), "Q4_K_S")).sentence == meaning("Q4_K_S").sentence


def test_strange_metadata_does_no_harm() -> None:
    strange: list[Value] = [-1, 2**63, True, 1.5, "x", (), (0, 4), (True,), ArrayNote("uint32", 5)]
    for value in strange:
        made = header(
            layers(576, ["Q5_0"]),
            "Q4_K_M",
            llama__block_count=value,
            llama__expert_count=value,
            llama__attention__head_count=value,
            llama__attention__head_count_kv=value,
        )
        assert fallback_tensors(made) == 1
        assert fallback_tensors(header(layers(576, ["Q5_0"]), general__file_type=value)) in (0, 1)


# ------------------------------------------------------------------------------------- importance matrices


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({}, ""),
        ({"file": "", "dataset": "  ", "entries_count": 0, "chunks_count": -4}, ""),
        ({"entries_count": 224}, "importance matrix of unknown origin"),
        ({"chunks_count": 1}, "importance matrix from 1 piece of text"),
        ({"file": "/models_out/Meta-Llama.imatrix"}, "importance matrix from Meta-Llama.imatrix"),
        (
            {"file": "/models_out/M.imatrix", "dataset": "/training_dir/calibration_datav3.txt", "chunks_count": 125},
            "importance matrix from calibration_datav3.txt, 125 pieces of text",
        ),
        (
            {"dataset": "C:\\data\\wiki\u202e\n.txt", "chunks_count": 1_234},
            "importance matrix from wiki .txt, 1,234 pieces of text",
        ),
        ({"dataset": ("a",), "file": 3, "chunks_count": "many"}, ""),
        ({"dataset": "/"}, "importance matrix of unknown origin"),
    ],
)
def test_the_importance_matrix_is_told_in_one_line(metadata: Mapping[str, Value], words: str) -> None:
    made = header({}, **{f"quantize__imatrix__{key}": value for key, value in metadata.items()})
    assert has_importance_matrix(made) == bool(words)
    assert importance_words(made) == words


def test_a_long_name_of_a_data_set_is_cut() -> None:
    made = header({}, quantize__imatrix__dataset="x" * 100_000)
    assert importance_words(made) == f"importance matrix from {'x' * 59}…"
