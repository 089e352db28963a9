"""Tokens are told apart and made visible, and a sentence sums them up."""

from __future__ import annotations

import pytest

from app.compare.xray_types import Xray, XrayToken, text_of_piece, visible
from tests.helpers.xray_values import NOTHING, token


def test_a_token_is_the_same_different_or_drawn():
    same, different, drawn, alone = token("a", "a", "a"), token("a", "b", "a"), token("a", "b", "c"), token("a", "b")

    assert [one.is_same for one in (same, different, drawn, alone)] == [True, False, False, False]
    assert [one.is_different for one in (same, different, drawn, alone)] == [False, True, False, True]
    assert [one.is_chance for one in (same, different, drawn, alone)] == [False, False, True, False]


def test_a_token_without_figures_is_not_called_the_same():
    assert not XrayToken(1, "a", NOTHING).is_same


def test_the_sentence_counts_and_knows_one_from_many():
    tokens = (token("a", "a", "a"), token("a", "b", "c"), token("a", "b", "a"))

    assert Xray("Q4_0", "", tokens[:1]).sentence == "Q4_0 would have chosen 1 of 1 token the same."
    found = Xray("Q4_0", "F16", tokens)
    assert found.sentence == "Q4_0 would have chosen 1 of 3 tokens the same."
    assert found.chance_sentence == (
        "Of the others, 1 was drawn by chance: F16, which wrote it, found another one likelier too."
    )
    assert Xray("Q4_0", "", tokens).chance_sentence == ""


@pytest.mark.parametrize(
    ("text", "shown"),
    [(" the", "␣the"), ("a ", "a␣"), ("  ", "␣␣"), ("\n\n", "↵↵"), ("a\tb", "a⇥b"), ("", "(nothing)"), ("a b", "a b")],
)
def test_blanks_and_line_ends_are_made_visible(text: str, shown: str):
    assert visible(text) == shown


def test_half_a_character_is_shown_as_its_bytes():
    assert text_of_piece("é".encode()) == "é"
    assert text_of_piece(b"\xe2\x80") == "0xE2 0x80"
