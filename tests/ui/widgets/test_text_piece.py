"""A piece that grew has the lines of one laid out at once, and letters are found where they are drawn."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QColor, QImage, QPainter

from ui.theme import ui_font
from ui.widgets.text_piece import TextPiece, TextStyle

WIDTH_PX = 300
TEXT = "A paged cache is cut into small blocks, and a chat takes one when the last is full.\n\nNext 😀 中文.\n\n"


@pytest.fixture
def style(qapp):
    return TextStyle.of(ui_font(15), 22)


def laid_out(text, style, width_px=WIDTH_PX):
    piece = TextPiece(text, style, width_px)
    piece.lay_out()
    return piece


def picture(piece, selected=(0, 0)):
    image = QImage(WIDTH_PX, max(1, piece.height_px), QImage.Format.Format_RGB32)
    image.fill(QColor("black"))
    painter = QPainter(image)
    painter.setPen(QColor("white"))
    piece.draw(painter, QPointF(0, 0), QRectF(image.rect()), selected, QColor("red"))
    painter.end()
    return image


def test_a_piece_that_grew_is_the_same_as_one_laid_out_at_once(style):
    for size in (1, 7, 40):
        grown = laid_out("", style)
        for start in range(0, len(TEXT), size):
            grown.extend(TEXT[start : start + size])
            twin = laid_out(TEXT[: start + size], style)
            assert grown.text == twin.text
            assert grown.height_px == twin.height_px
            assert picture(grown) == picture(twin)
            assert grown.end_point() == twin.end_point()


def test_a_line_end_makes_a_line_only_once_something_follows(style):
    assert laid_out("", style).height_px == 22
    assert laid_out("a\n", style).height_px == 22
    assert laid_out("a\n\n", style).height_px == 44
    assert laid_out("a\nb", style).height_px == 44


def test_heights_are_estimates_until_lines_are_made_and_stay_when_they_are_dropped(style):
    piece = TextPiece(TEXT, style, WIDTH_PX)
    assert (piece.is_exact, piece.is_laid_out) == (False, False)
    piece.lay_out()
    height = piece.height_px
    assert (piece.is_exact, piece.is_laid_out) == (True, True)
    piece.release()
    assert (piece.is_exact, piece.is_laid_out, piece.height_px) == (True, False, height)
    piece.set_width(100)
    assert not piece.is_exact
    piece.lay_out()
    assert piece.height_px > height


def test_the_letter_at_a_place_is_found_across_lines_and_wide_characters(style):
    piece = laid_out("😀😀😀😀\nsecond", style)
    assert piece.offset_at(-10, -10) == 0
    assert piece.offset_at(1000, 5) == 4
    assert piece.offset_at(0, 30) == 5
    assert piece.offset_at(1000, 1000) == 11
    end, _height = piece.end_point()
    assert piece.offset_at(end.x(), end.y()) == 11


def test_marked_letters_have_the_marked_background(style):
    image = picture(laid_out("marked and not", style), selected=(0, 6))
    assert image.pixelColor(1, 1) == QColor("red")
    assert image.pixelColor(200, 1) == QColor("black")


@pytest.mark.parametrize("text", ["مرحبا بالعالم", "abc שלום 123", "\u202eabc"])
def test_text_from_right_to_left_can_be_marked_and_found(style, text):
    piece = laid_out(text, style)
    assert picture(piece, selected=(0, len(text))) != picture(piece)
    assert {piece.offset_at(x, 5) for x in range(0, WIDTH_PX, 3)} <= set(range(len(text) + 1))


def test_only_lines_in_the_clip_are_drawn(style):
    piece = laid_out("top\n" * 100, style)
    image = QImage(WIDTH_PX, piece.height_px, QImage.Format.Format_RGB32)
    image.fill(QColor("black"))
    painter = QPainter(image)
    painter.setPen(QColor("white"))
    piece.draw(painter, QPointF(0, 0), QRectF(0, 1100, WIDTH_PX, 22), (0, 0), QColor("red"))
    painter.end()
    blank = QImage(WIDTH_PX, 1000, QImage.Format.Format_RGB32)
    blank.fill(QColor("black"))
    assert image.copy(0, 0, WIDTH_PX, 1000) == blank
    assert image.copy(0, 1100, WIDTH_PX, 22) != blank.copy(0, 0, WIDTH_PX, 22)
