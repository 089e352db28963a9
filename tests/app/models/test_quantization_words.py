"""The names of GGUF files: every one is understood, has a sentence that fits a tooltip, and bits that add up."""

from __future__ import annotations

import pytest

from app.models.ggml_types import FILE_TYPES, GGML_TYPES
from app.models.quantization_mixes import BLOCK_BITS, MIXES
from app.models.quantization_words import EFFECTS, GGUF_NAMES, LOSS_WORDS, gguf_name

EVERY_NAME = sorted({kind.name for kind in GGML_TYPES.values()} | set(FILE_TYPES.values()))
PUBLISHERS_NAMES = [
    *("Q2_K_L", "Q3_K_XL", "Q4_K_L", "Q5_K_L", "Q6_K_L", "Q8_K_XL", "UD-Q2_K_XL", "UD-Q3_K_XL", "UD-Q4_K_XL"),
    *("UD-Q5_K_XL", "UD-Q6_K_XL", "UD-Q8_K_XL", "UD-IQ1_S", "UD-IQ1_M", "UD-IQ2_M", "UD-IQ3_XXS", "UD-TQ1_0"),
    *("Q4_0_4_4", "Q4_0_4_8", "Q4_0_8_8", "IQ4_NL_4_4", "Q4_K_P"),
]


@pytest.mark.parametrize("name", [*EVERY_NAME, *PUBLISHERS_NAMES])
def test_every_name_is_understood_in_any_spelling(name: str) -> None:
    known = gguf_name(name)
    assert known is not None
    assert known.name == name
    for spelled in (
        name.lower(),
        name.lower().replace("_", "-"),
        f" {name.replace('_', '.')} ",
        name.replace("_", " "),
    ):
        other = gguf_name(spelled)
        assert other is not None
        assert (other.name, other.bits, other.storage()) == (name, known.bits, known.storage())


@pytest.mark.parametrize("name", ["", "_", "what", "UD-", "UD-what", "Q9_K_M", "Q4_K_TOOLONG", "i1-", "Q4", "model"])
def test_a_stranger_is_no_name(name: str) -> None:
    assert gguf_name(name) is None


def test_a_publishers_mark_of_an_importance_matrix_is_no_part_of_the_name() -> None:
    assert gguf_name("i1-Q4_K_M") == GGUF_NAMES["Q4_K_M"]
    assert gguf_name("imat-IQ3_XXS") == GGUF_NAMES["IQ3_XXS"]


def test_a_repacked_file_names_the_one_to_take_instead() -> None:
    known = gguf_name("Q4_0_8_8")
    assert known is not None
    assert known.storage() == "Q4_0 in an order for ARM processors that llama.cpp no longer reads"
    assert known.effect is not None
    assert known.effect() == "take Q4_0 instead"


def test_the_smallest_dynamic_mix_is_not_taken_for_the_ternary_type_it_is_called_after() -> None:
    known = gguf_name("UD-TQ1_0")
    assert known is not None
    assert (known.loss, known.base) == ("heavy", "IQ1_S")


def test_bits_are_never_below_those_of_the_mixs_own_type() -> None:
    for name, mix in MIXES.items():
        assert GGUF_NAMES[name].bits >= round(BLOCK_BITS[mix.main], 2), name


@pytest.mark.parametrize("name", sorted(set(GGUF_NAMES) - set(MIXES) - {"MXFP4", "NVFP4"}))
def test_a_single_type_has_the_bits_of_its_blocks(name: str) -> None:
    assert GGUF_NAMES[name].bits == round(BLOCK_BITS[name], 3 if name == "Q8_K" else 2)


def test_every_loss_has_words_and_an_effect() -> None:
    assert set(LOSS_WORDS) == set(EFFECTS)
    assert {known.loss for known in GGUF_NAMES.values()} <= set(LOSS_WORDS)
