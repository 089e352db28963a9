"""The chip shows a stranger's model name as it is and offers the others."""

from __future__ import annotations

import pytest
from PySide6.QtGui import QImage

from ui.theme import apply_theme, load_theme
from ui.widgets.chip import ModelChip

NAME = "SmolLM2-135M · Q4_1 · llama.cpp · CPU"


@pytest.fixture
def chip(qtbot):
    made = ModelChip(load_theme("dark"))
    qtbot.addWidget(made)
    return made


def test_it_shows_the_whole_name_at_its_own_size_and_shortens_it_where_narrow(chip):
    chip.set_text(NAME)
    chip.resize(chip.sizeHint())
    assert chip.shown_text() == NAME
    chip.resize(150, 28)
    assert "…" in chip.shown_text()
    assert NAME in chip.toolTip()
    assert chip.accessibleDescription() == NAME


def test_a_hostile_name_is_text(chip):
    chip.set_text("<img src=x><b>&amp;\nmodel")
    assert chip.words == "<img src=x><b>&amp; model"
    assert "&lt;img src=x&gt;" in chip.toolTip()
    chip.set_entries([("a", "<b>A & B</b>\tx")])
    assert chip.menu().actions()[0].text() == "<b>A && B</b> x"


def test_picking_an_entry_tells_its_key(chip, qtbot):
    chip.set_entries([("a", "Model A"), ("b", "Model B")], current="b")
    assert [action.isChecked() for action in chip.menu().actions()] == [False, True]
    with qtbot.waitSignal(chip.chosen) as told:
        chip.menu().actions()[0].trigger()
    assert told.args == ["a"]
    chip.set_entries([])
    assert chip.menu().actions() == []


@pytest.mark.parametrize("name", ["dark", "light"])
def test_it_is_a_raised_rounded_button(qapp, qtbot, name):
    theme = load_theme(name)
    apply_theme(qapp, theme)
    chip = ModelChip(theme)
    qtbot.addWidget(chip)
    chip.set_text(NAME)
    chip.resize(chip.sizeHint())
    image = chip.grab().toImage().convertToFormat(QImage.Format.Format_RGB32)
    assert image.pixelColor(8, image.height() // 2) == theme.color("raised")
    assert image.pixelColor(image.width() // 2, 0) == theme.color("border")
    assert image.pixelColor(0, 3) != theme.color("border")
    qapp.setStyleSheet("")


def test_another_theme_is_taken_over(chip):
    chip.set_theme(load_theme("light"))
    chip.resize(chip.sizeHint())
    chip.grab()
    assert chip.accessibleName() == "Model"
