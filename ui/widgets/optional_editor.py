"""The control for a setting that may be left as it is elsewhere: made from its description, empty means "not here".

Knows no setting by name and stores nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from PySide6.QtCore import QObject, QSignalBlocker, Signal
from PySide6.QtWidgets import QComboBox, QDoubleSpinBox, QPlainTextEdit, QWidget

from app.settings_fields import Setting
from ui.widgets.setting_editor import SettingEditor, make_editor

# Stands for "not here" in a list, where every entry is a text.
_NOT_HERE = ""


def offer(editor: SettingEditor, choices: Mapping[str, str]) -> None:
    """Give a list other entries: text and words of each. What was chosen is forgotten: set the value next."""
    box = editor.widget
    if isinstance(box, QComboBox):
        with QSignalBlocker(box):
            box.clear()
            for value, words in choices.items():
                box.addItem(words, value)


class OptionalEditor(QObject):
    """A control and the value it holds, or None.

    Attributes:
        name: of the setting.
        widget: the control.

    Signals:
        edited(name, value): a person entered another value, or None; not sent by set_value().
    """

    edited = Signal(str, object)

    def __init__(self, name: str, told: Setting, example: object, empty: str) -> None:
        """Make the control.

        Args:
            name: of the setting.
            told: its description.
            example: a value of it; its type decides between the kinds of numbers.
            empty: the words for None.
        """
        self._told = told
        self._is_decimal = isinstance(example, float)
        self._is_whole = isinstance(example, int) and told.choices is None
        self._empty = empty
        self._editor = make_editor(name, self._described(), None if self._is_whole else example)
        super().__init__(self._editor.widget)
        self.name = name
        if isinstance(self.widget, QDoubleSpinBox):
            self.widget.setMinimum(told.low - told.step)  # None stands one step below the lowest number
            self.widget.setSpecialValueText(empty)
        elif isinstance(self.widget, QPlainTextEdit):
            self.widget.setPlaceholderText(empty)
        self._editor.edited.connect(self._on_edited)

    @property
    def widget(self) -> QWidget:
        """The control."""
        return self._editor.widget

    def set_value(self, value: object) -> None:
        """Show a value or None; sends nothing."""
        if value is None and isinstance(self.widget, QDoubleSpinBox):
            self._editor.set_value(self.widget.minimum())
        elif self._is_whole:
            self._editor.set_value(value)
        else:
            self._editor.set_value(_NOT_HERE if value is None else value)

    def offer(self, choices: Mapping[str, str]) -> None:
        """Give a list these entries besides "not here"."""
        offer(self._editor, {_NOT_HERE: self._empty, **choices})

    def _described(self) -> Setting:
        choices = self._told.choices
        if choices is not None:
            return replace(self._told, choices=lambda: {_NOT_HERE: self._empty} | _without(choices(), _NOT_HERE))
        return replace(self._told, empty=lambda: self._empty)

    def _on_edited(self, _name: str, value: object) -> None:
        is_none = value is None or value == _NOT_HERE
        if self._is_decimal and isinstance(value, float):
            is_none = value < self._told.low - self._told.step / 2
        self.edited.emit(self.name, None if is_none else value)


def _without(choices: Mapping[str, str], key: str) -> dict[str, str]:
    """Return the choices but one: what means "automatic" among the settings has no place of its own here."""
    return {value: words for value, words in choices.items() if value != key}
