"""The meter says in words and in a bar how full the context is."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QImage

from ui.theme import load_theme
from ui.widgets.context_meter import ContextMeter


@pytest.fixture
def meter(qtbot):
    made = ContextMeter(load_theme("dark"))
    qtbot.addWidget(made)
    return made


def bar_colors(meter):
    image = meter._bar.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    y = image.height() // 2
    return image.pixelColor(image.width() // 4, y), image.pixelColor(image.width() * 9 // 10, y)


def test_it_is_hidden_while_no_model_is_loaded(meter):
    assert meter.isHidden()
    meter.set_context(435, 8192)
    assert not meter.isHidden()
    meter.set_context(0, 0)
    assert meter.isHidden()


def test_it_says_whether_tokens_were_counted_or_guessed(meter):
    meter.set_context(435, 8192)
    assert meter.words == "435 of 8,192 tokens"
    assert "tokenizer" in meter.toolTip()
    meter.set_context(435, 8192, approximate=True)
    assert meter.words == "about 435 of 8,192 tokens"
    assert "Guessed" in meter.toolTip()
    assert meter.accessibleDescription() == meter.words


def test_the_bar_fills_in_the_colour_of_the_kv_cache_and_turns_at_the_limit(meter):
    theme = load_theme("dark")
    meter.set_context(4096, 8192)
    assert bar_colors(meter) == (theme.color("kv"), theme.color("grid"))
    meter.set_context(9000, 8192)
    assert bar_colors(meter) == (theme.color("limit"), theme.color("limit"))


def test_another_theme_recolours_the_bar(meter):
    meter.set_context(4096, 8192)
    meter.set_theme(load_theme("light"))
    assert bar_colors(meter)[0] == load_theme("light").color("kv")
