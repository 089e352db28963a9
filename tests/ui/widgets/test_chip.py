"""The chip shows a stranger's model name as it is and offers the others."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QImage
from PySide6.QtWidgets import QWidgetAction

from ui.theme import apply_theme, load_theme
from ui.widgets.chip import BackendChoice, ModelChip

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


BACKENDS = (
    BackendChoice("one", "One · room for 8k"),
    BackendChoice("two", "Two · fits"),
    BackendChoice("three", "Three · not installed", is_possible=False),
)


def items(chip) -> dict[str, QAction]:
    return {action.text(): action for action in chip.menu().actions() if action.data() is not None}


def test_backends_stand_above_the_models_and_the_one_in_use_is_marked(chip):
    chip.set_entries([("a", "Model A"), ("b", "Model B")], current="b")
    chip.set_backends(BACKENDS, "two")
    assert list(items(chip)) == [*(choice.label for choice in BACKENDS), "Model A", "Model B"]
    assert [text for text, action in items(chip).items() if action.isChecked()] == ["Two · fits", "Model B"]
    assert [action.isEnabled() for action in items(chip).values()] == [True, True, False, True, True]
    headings = [a.defaultWidget().text() for a in chip.menu().actions() if isinstance(a, QWidgetAction)]
    assert headings == ["Engine for this model", "Models"]


def test_picking_another_backend_tells_its_name_and_the_same_one_nothing(chip, qtbot):
    chip.set_backends(BACKENDS, "one")
    with qtbot.waitSignal(chip.backend_chosen) as told:
        items(chip)["Two · fits"].trigger()
    assert told.args == ["two"]
    with qtbot.assertNotEmitted(chip.backend_chosen), qtbot.assertNotEmitted(chip.chosen):
        items(chip)["One · room for 8k"].trigger()


def test_the_mark_follows_the_backend_in_use(chip):
    chip.set_backends(BACKENDS, "one")
    chip.mark_backend("two")
    assert [text for text, action in items(chip).items() if action.isChecked()] == ["Two · fits"]


def test_the_keyboard_reaches_every_backend_and_passes_over_the_headings(chip, qtbot):
    chip.set_entries([("a", "Model A")], current="a")
    chip.set_backends(BACKENDS, "one")
    chip.show()
    menu = chip.menu()
    menu.popup(chip.mapToGlobal(chip.rect().bottomLeft()))
    reached = []
    for _ in range(3):
        qtbot.keyClick(menu, Qt.Key.Key_Down)
        reached.append(menu.activeAction().text())
    menu.close()
    assert reached == ["One · room for 8k", "Two · fits", "Model A"]


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
