"""Captions and legends: words, places, and swatches that differ without colour."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRectF
from PySide6.QtGui import QImage, QPainter, QPainterPath

from ui.plots.legend import Caption, Entry, Legend, Mark, fill_color, paint_hatch, paint_swatch
from ui.theme import load_theme

ENTRIES = (
    Entry("rest", "rest", "rest", Mark.SOLID),
    Entry("weights", "weights", "weights", Mark.SOLID),
    Entry("compute", "compute", "compute", Mark.SOLID),
    Entry("kv_used", "KV used", "kv", Mark.SOLID),
    Entry("reserved", "reserved", "kv", Mark.HATCHED),
)


def colors_of(image):
    return {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}


def picture(theme, mark):
    image = QImage(24, 24, QImage.Format.Format_RGB32)
    image.fill(theme.color("surface"))
    painter = QPainter(image)
    paint_swatch(painter, QRectF(2, 2, 20, 20), Entry("a", "a", "kv", mark), theme)
    painter.end()
    return image


@pytest.fixture(params=["dark", "light"])
def theme(request, qapp):
    return load_theme(request.param)


def test_a_hatch_shows_the_colour_and_the_ground_between(theme):
    image = QImage(60, 60, QImage.Format.Format_RGB32)
    image.fill(theme.color("surface"))
    painter = QPainter(image)
    path = QPainterPath()
    path.addRect(QRectF(10, 10, 40, 40))
    paint_hatch(painter, path, theme.color("kv"))
    paint_hatch(painter, QPainterPath(), theme.color("kv"))
    painter.end()
    inside = [image.pixelColor(x, 30).name() for x in range(12, 48)]
    assert theme.color("surface").name() in inside
    assert len(set(inside)) > 1
    assert image.pixelColor(5, 30) == theme.color("surface")


def test_every_mark_has_a_picture_of_its_own(theme):
    pictures = [bytes(picture(theme, mark).constBits()) for mark in Mark]
    assert len(set(pictures)) == len(Mark)


def test_a_solid_swatch_is_the_whole_colour(theme):
    assert picture(theme, Mark.SOLID).pixelColor(12, 12) == theme.color("kv")


def test_a_fill_is_see_through(theme):
    assert fill_color(theme.color("kv")).alphaF() == pytest.approx(0.47, abs=0.01)


def test_a_legend_flows_over_rows_and_never_overlaps(qtbot):
    legend = Legend(ENTRIES)
    qtbot.addWidget(legend)
    for width in (120, 200, 340, 900):
        places = legend._places(width)
        assert len(places) == 5
        assert all(not a.intersects(b) for a in places for b in places if a is not b)
        assert legend.heightForWidth(width) >= places[-1].bottom()
    assert legend.heightForWidth(120) > legend.heightForWidth(340) > legend.heightForWidth(900)
    assert Legend(()).heightForWidth(100) == 2


def test_the_caption_says_title_unit_and_hint(qtbot, theme):
    caption = Caption("MEMORY")
    qtbot.addWidget(caption)
    assert caption.text() == "MEMORY"
    caption.set_words("MiB", "system memory")
    assert caption.text() == "MEMORY, MiB  ·  system memory"
    caption.resize(400, 22)
    blank = colors_of(caption.grab().toImage())
    caption.set_theme(theme)
    assert len(colors_of(caption.grab().toImage())) > len(blank)


def test_values_do_not_move_the_words(qtbot, theme):
    legend = Legend(ENTRIES)
    qtbot.addWidget(legend)
    legend.set_theme(theme)
    before = legend._places(340)
    legend.set_values({"rest": "9,990"})
    assert legend._places(340) == before
    legend.resize(340, 44)
    assert len(colors_of(legend.grab().toImage())) > 5
