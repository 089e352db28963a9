"""What a message looks like, by the colour at a place."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QPointF, QRectF
from PySide6.QtGui import QImage, QPainter

from ui.theme import load_theme
from ui.widgets.message_layout import MessageItem, MessageLayout, TranscriptStyle
from ui.widgets.message_painter import MessagePainter

COLUMN_PX = 500


@pytest.fixture(params=["dark", "light"])
def theme(request):
    return load_theme(request.param)


def painted(theme, item, selected=(0, 0)):
    layout = MessageLayout(item, TranscriptStyle.of_system(), COLUMN_PX)
    layout.lay_out(0, 10_000)
    image = QImage(COLUMN_PX, layout.height_px, QImage.Format.Format_RGB32)
    image.fill(theme.color("window"))
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    MessagePainter(theme).paint(painter, layout, QPointF(0, 0), QRectF(image.rect()), selected)
    painter.end()
    return layout, image


def colors(image, rect):
    rect = rect.intersected(image.rect())
    return {
        image.pixelColor(x, y).name()
        for x in range(rect.left(), rect.right() + 1)
        for y in range(rect.top(), rect.bottom() + 1)
    }


def test_a_persons_message_lies_in_a_rounded_bubble_on_the_right(qapp, theme):
    layout, image = painted(theme, MessageItem(1, "user", "Hi"))
    bubble = layout.bubble.toRect()
    assert image.pixelColor(bubble.center().x(), bubble.top() + 4) == theme.color("bubble")
    assert image.pixelColor(bubble.left(), bubble.top()) == theme.color("window")
    assert image.pixelColor(bubble.left() - 10, bubble.center().y()) == theme.color("window")


def test_an_answer_lies_on_the_window_in_the_colour_of_text(qapp, theme):
    layout, image = painted(theme, MessageItem(1, "assistant", "Hi there"))
    seen = colors(image, layout.figures_rect.translated(0, -layout.figures_rect.top()))
    assert theme.roles["text"] in seen
    assert theme.roles["bubble"] not in seen - {theme.roles["window"]}


def test_what_went_wrong_is_marked_in_the_colour_of_a_limit(qapp, theme):
    layout, image = painted(theme, MessageItem(1, "assistant", "Hi", state_text="interrupted: the engine ended here"))
    mark = layout.state_rect.adjusted(0, 0, 16 - COLUMN_PX, 0)
    seen = [image.pixelColor(x, y) for x in range(16) for y in range(mark.top(), mark.bottom())]
    limit = theme.color("limit")
    assert min(abs(c.red() - limit.red()) + abs(c.green() - limit.green()) for c in seen) < 40


def test_a_still_block_stands_where_text_arrives(qapp, theme):
    layout, image = painted(theme, MessageItem(1, "assistant", "Hi", is_streaming=True))
    end, height = layout.pieces[-1].end_point()
    assert image.pixelColor(round(end.x()) + 6, round(end.y() + height / 2)) == theme.color("muted")


def test_marked_text_has_the_marked_background(qapp, theme):
    _layout, image = painted(theme, MessageItem(1, "assistant", "marked"), selected=(0, 6))
    assert image.pixelColor(1, 1) == theme.selection("window")


def test_a_note_has_a_bar_and_muted_words(qapp, theme):
    _layout, image = painted(theme, MessageItem(1, "note", "running on the CPU"))
    assert image.pixelColor(0, 10) == theme.color("border")


def test_figures_are_shortened_where_they_do_not_fit(qapp, theme):
    painter = MessagePainter(theme)
    short, _image = painted(theme, MessageItem(1, "assistant", "Hi", figures="151 tokens/s"))
    long, _image = painted(theme, MessageItem(1, "assistant", "Hi", figures="151 tokens/s · " * 20))
    assert not painter.is_shortened(short)
    assert painter.is_shortened(long)
