"""A model's own defaults: folded, said in a line, changed one by one, taken back at once."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QLabel, QPushButton

from app.models.entry import ModelDefaults
from tests.helpers.model_entries import entry
from ui.panels.model_defaults import ModelDefaultsCard, summary_text

FOUND = entry("A", "Q4_0", 4.5, context_tokens=8192)


@pytest.fixture
def card(qtbot):
    made = ModelDefaultsCard()
    qtbot.addWidget(made)
    made.set_entry(FOUND)
    made.resize(400, 600)
    made.show()
    made.told = []
    made.defaults_changed.connect(made.told.append)
    return made


def button(card, words):
    return next((found for found in card.findChildren(QPushButton) if found.text() == words), None)


def texts(card):
    return [label.text() for label in card.findChildren(QLabel) if label.isVisible()]


def test_it_is_folded_and_says_that_nothing_is_special(card):
    assert "As the settings." in texts(card)
    assert card._editors == {}
    assert not button(card, "As the settings").isVisible()


def test_every_field_can_be_changed_and_is_told(card, qtbot):
    with qtbot.waitSignal(card.opened) as caught:
        card.open_fields()
    assert caught.args == [True]
    assert list(card._editors) == list(ModelDefaults.__struct_fields__)
    context = card._editors["context_tokens"].widget
    context.setCurrentIndex(context.findData("4096"))
    card._editors["temperature"].widget.setValue(0.2)
    assert card.told[-1] == ModelDefaults(context_tokens=4096, temperature=0.2)
    assert "4,096 tokens · Temperature 0.20" in texts(card)
    assert all(editor.widget.accessibleName() for editor in card._editors.values())


def test_a_field_can_be_left_to_the_settings_again(card):
    card.set_entry(entry("A", "Q4_0", 4.5, defaults=ModelDefaults(kv_type="q8_0", threads=4)))
    card.open_fields()
    card._editors["kv_type"].widget.setCurrentIndex(0)
    assert card.told == [ModelDefaults(threads=4)]
    button(card, "As the settings").click()
    assert card.told[-1] == ModelDefaults()
    assert card.defaults == ModelDefaults()


def test_showing_another_model_tells_nothing(card):
    card.open_fields()
    card.set_entry(entry("B", "Q8_0", 8.5, defaults=ModelDefaults(context_tokens=1234, top_p=0.5)))
    assert card.told == []
    assert card._editors["context_tokens"].widget.currentText() == "1,234"
    assert card._editors["top_p"].widget.value() == 0.5
    card._change.click()
    assert not card._fields.isVisible()


def test_the_line_says_everything_in_short():
    assert summary_text(ModelDefaults()) == ""
    assert summary_text(ModelDefaults(context_tokens=0)) == "Automatic"
    assert summary_text(ModelDefaults(backend="torch", kv_type="q4_0")) == "torch · q4_0"
    assert summary_text(ModelDefaults(backend="of_tomorrow")) == "of_tomorrow"
    said = summary_text(ModelDefaults(kv_type="q4_0", top_k=7, system_prompt="Be\nbrief. " * 9))
    assert said == "q4_0 · Top k 7 · “Be brief. Be brief. Be brief. Be brief. …”"
    assert summary_text(ModelDefaults(system_prompt="Be brief.")) == "“Be brief.”"
