"""A card in pieces: headings, prose, code and tables, nothing read as markup, bounded whatever it holds."""

from __future__ import annotations

from tests.helpers.hub_values import CARD
from ui.models import hub_card_text
from ui.models.hub_card_text import CardPiece


def card_pieces(markdown):
    return list(hub_card_text.card_pieces(markdown))


def test_the_kinds_of_a_usual_card():
    pieces = card_pieces(CARD)
    assert pieces[0] == CardPiece("heading", "Llamacpp imatrix quantizations of Llama 3.1 8B Instruct", 1)
    assert CardPiece("text", "Using llama.cpp release b4000 for quantization.") in pieces
    assert CardPiece("code", "{system_prompt}<|eot_id|>") in pieces
    assert CardPiece("code", "| Filename | Quant type | File size |") in pieces
    assert CardPiece("heading", "Credits", 3) in pieces
    assert not any("---" in piece.text for piece in pieces)
    bullet = next(piece.text for piece in pieces if piece.text.startswith("•"))
    assert bullet == "• If you want your model running as FAST as possible, fit the whole thing on your GPU."


def test_nothing_is_read_as_markup():
    pieces = card_pieces("<b>bold</b> and `code` and **strong**\n\n\n\n    # no heading\n#no heading\n")
    assert [piece.text for piece in pieces] == [
        "<b>bold</b> and code and strong",
        "",
        "    # no heading",
        "#no heading",
    ]
    assert {piece.kind for piece in pieces} == {"text"}


def test_a_fence_that_is_never_closed_and_one_inside_another():
    pieces = card_pieces("````\n```\n# code\n````\n# heading\n~~~\n# code to the end")
    assert [(piece.kind, piece.text) for piece in pieces] == [
        ("code", "```"),
        ("code", "# code"),
        ("heading", "heading"),
        ("code", "# code to the end"),
    ]


def test_control_characters_become_visible_and_an_empty_card_is_empty():
    assert card_pieces("a\x1b[31mb")[0].text == "a␛[31mb"
    assert card_pieces("") == []
    assert card_pieces("\n\n  \n") == []


def test_a_card_made_to_hang_is_bounded():
    for bomb in ("x" * 200_000, "|" * 200_000, "-" * 100_000 + "|", "# " * 100_000, "`" * 200_000, "\n#a" * 60_000):
        pieces = card_pieces(bomb)
        assert len(pieces) <= 6_100
        assert all(len(piece.text) <= 2_000 for piece in pieces)
