"""Controls that can be left empty: every kind takes a value, shows it, and gives None for "not here"."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QComboBox, QDoubleSpinBox, QPlainTextEdit, QSpinBox

from app.settings_fields import Setting, Settings, about
from ui.widgets.optional_editor import OptionalEditor, offer
from ui.widgets.setting_editor import make_editor

EMPTY = "As the settings"


@pytest.fixture
def make(qtbot):
    def make_one(name):
        editor = OptionalEditor(name, about(name), getattr(Settings(), name), EMPTY)
        qtbot.addWidget(editor.widget)
        editor.told = []
        editor.edited.connect(lambda *args: editor.told.append(args))
        return editor

    return make_one


def test_a_decimal_number_stands_one_step_below_its_lowest_for_none(make):
    editor = make("temperature")
    assert isinstance(editor.widget, QDoubleSpinBox)
    editor.set_value(None)
    assert editor.widget.text() == EMPTY
    editor.set_value(0.0)
    assert editor.widget.text() == "0.00"
    assert editor.told == []
    editor.widget.setValue(0.7)
    editor.widget.setValue(editor.widget.minimum())
    assert editor.told == [("temperature", 0.7), ("temperature", None)]


def test_a_whole_number_can_be_none(make):
    editor = make("threads")
    assert isinstance(editor.widget, QSpinBox)
    editor.set_value(None)
    assert editor.widget.text() == EMPTY
    editor.widget.setValue(4)
    editor.widget.setValue(editor.widget.minimum())
    assert editor.told == [("threads", 4), ("threads", None)]


def test_a_list_has_none_as_its_first_entry(make):
    editor = make("kv_type")
    assert isinstance(editor.widget, QComboBox)
    assert editor.widget.itemText(0) == EMPTY
    editor.set_value("q8_0")
    editor.widget.setCurrentIndex(0)
    assert editor.told == [("kv_type", None)]
    editor.offer({"1": "one"})
    assert [editor.widget.itemText(row) for row in range(editor.widget.count())] == [EMPTY, "one"]


def test_a_long_text_is_none_when_it_is_empty(make):
    editor = make("system_prompt")
    assert isinstance(editor.widget, QPlainTextEdit)
    assert editor.widget.placeholderText() == EMPTY
    editor.set_value("Be brief.")
    assert editor.widget.toPlainText() == "Be brief."
    editor._editor.edited.emit("system_prompt", "")
    assert editor.told == [("system_prompt", None)]


def test_offering_other_entries_tells_nothing(qtbot):
    editor = make_editor("x", Setting(choices=lambda: {"a": "A"}), "a")
    qtbot.addWidget(editor.widget)
    with qtbot.assertNotEmitted(editor.edited):
        offer(editor, {"b": "B", "c": "C"})
        editor.set_value("c")
    assert editor.widget.currentText() == "C"
