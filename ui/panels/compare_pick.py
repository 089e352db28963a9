"""A choice among words that change: the button with its list is made anew for each set of them.

Knows not what the choice does.
"""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from ui.theme import Theme
from ui.widgets.choice_button import ChoiceButton


class ComparePick(QWidget):
    """The button; hidden while there is nothing to choose from.

    Signals:
        chosen(key): a person chose another one.
    """

    chosen = Signal(str)

    def __init__(self, spoken: str, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._spoken = spoken
        self._theme = theme
        self._choices: dict[str, str] = {}
        self._button: ChoiceButton | None = None
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.addStretch(1)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)

    @property
    def key(self) -> str:
        """The chosen key; "" where there is nothing to choose from."""
        return self._button.key if self._button is not None else ""

    @property
    def button(self) -> ChoiceButton | None:
        """The button, or None."""
        return self._button

    def set_choices(self, choices: Mapping[str, str], key: str) -> None:
        """Offer these words by their keys, one of them chosen; nothing is sent."""
        if dict(choices) != self._choices:
            self._choices = dict(choices)
            self._make_button()
        if self._button is not None and key in self._choices:
            self._button.choose(key)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._theme = theme
        if self._button is not None:
            self._button.set_theme(theme)

    def _make_button(self) -> None:
        had_focus = self._button is not None and self.window().focusWidget() is self._button
        if self._button is not None:
            self._row.removeWidget(self._button)
            self._button.hide()
            self._button.deleteLater()
            self._button = None
        if self._choices:
            self._button = ChoiceButton(self._choices, self._spoken, self._theme, self)
            self._button.chosen.connect(self.chosen)
            self._row.insertWidget(0, self._button)
            self.setFocusProxy(self._button)
            if had_focus:
                self._button.show()  # the layout shows it only later, and what is hidden takes no focus
                self._button.setFocus()
