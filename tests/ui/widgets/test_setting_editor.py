"""Each control holds its setting's values exactly and tells what a person enters, once."""

from __future__ import annotations

import dataclasses

import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QApplication, QCheckBox, QComboBox, QDoubleSpinBox, QPlainTextEdit, QSpinBox

from app.settings_fields import Setting, Settings, about, shown_settings
from ui.widgets.setting_editor import make_editor


@pytest.fixture
def make(qtbot):
    def build(name):
        editor = make_editor(name, about(name), getattr(Settings(), name))
        editor.set_value(getattr(Settings(), name))
        qtbot.addWidget(editor.widget)
        editor.told = []
        editor.edited.connect(lambda name, value: editor.told.append((name, value)))
        return editor

    return build


@pytest.mark.parametrize("name", shown_settings())
def test_showing_a_value_tells_nothing(make, name):
    editor = make(name)
    for made in (Settings(), Settings(theme="dark", threads=3, seed=5, max_tokens=9, top_p=0.5, system_prompt="x")):
        editor.set_value(getattr(made, name))
    assert editor.told == []


def test_the_kind_of_control_follows_from_the_setting(make, qtbot):
    kinds = {name: type(make(name).widget).__mro__ for name in shown_settings()}
    assert QComboBox in kinds["theme"]
    assert QSpinBox in kinds["threads"]
    assert QSpinBox in kinds["seed"]
    assert QDoubleSpinBox in kinds["temperature"]
    assert QPlainTextEdit in kinds["system_prompt"]
    tick = make_editor("x", Setting(), True)
    qtbot.addWidget(tick.widget)
    assert isinstance(tick.widget, QCheckBox)
    assert {made.name for made in dataclasses.fields(Settings)} >= set(kinds)


def test_none_is_one_step_below_the_lowest_number(make):
    editor = make("max_tokens")
    assert editor.widget.text() == "Until the context is full"
    editor.widget.stepUp()
    editor.widget.stepDown()
    assert editor.told == [("max_tokens", 64), ("max_tokens", None)]


def test_zero_is_automatic_where_the_setting_says_so(make):
    editor = make("context_tokens")
    assert editor.widget.text() == "Automatic"
    editor.widget.stepUp()
    assert editor.told == [("context_tokens", 1024)]
    assert editor.widget.text() == "1,024"


def test_a_number_counts_when_it_is_entered_and_not_at_each_digit(make, qtbot):
    editor = make("threads")
    editor.widget.show()
    editor.widget.selectAll()
    qtbot.keyClicks(editor.widget, "12")
    assert editor.told == []
    qtbot.keyClick(editor.widget, Qt.Key.Key_Return)
    assert editor.told == [("threads", 12)]


def test_a_choice_is_told_by_its_value_and_a_foreign_one_is_kept(make):
    editor = make("kv_type")
    editor.widget.setCurrentIndex(1)
    assert editor.told == [("kv_type", "q8_0")]
    editor.set_value("q5_1")
    assert editor.widget.currentText() == "q5_1"
    assert len(editor.told) == 1


def test_a_long_text_counts_after_a_pause_or_when_the_screen_is_left(make, qtbot):
    editor = make("system_prompt")
    editor.widget.show()
    with qtbot.waitSignal(editor.edited):
        qtbot.keyClicks(editor.widget, "Be")
    qtbot.keyClicks(editor.widget, " brief")
    editor.widget.hide()
    assert editor.told == [("system_prompt", "Be"), ("system_prompt", "Be brief")]


def test_what_is_being_typed_is_not_overwritten(make, qtbot):
    editor = make("system_prompt")
    editor.widget.show()
    qtbot.keyClicks(editor.widget, "typed")
    editor.set_value("from elsewhere")
    assert editor.widget.toPlainText() == "typed"
    editor.widget.hide()
    editor.set_value("from elsewhere")
    assert editor.widget.toPlainText() == "from elsewhere"


@pytest.mark.parametrize("name", ["theme", "threads", "temperature"])
def test_the_wheel_over_a_control_without_focus_changes_nothing(make, name):
    editor = make(name)
    editor.widget.show()
    place = QPointF(5, 5)
    buttons, keys = Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier
    nothing = Qt.ScrollPhase.NoScrollPhase, False
    event = QWheelEvent(place, place, QPoint(), QPoint(0, -120), buttons, keys, *nothing)
    QApplication.sendEvent(editor.widget, event)
    assert editor.told == []
    assert not event.isAccepted()
