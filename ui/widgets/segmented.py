"""A segmented control: some words side by side, exactly one of them chosen; the arrows choose another.

Knows not what the choice shows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QToolButton, QWidget

from ui.theme import MUTED_PX, Theme
from ui.widgets.labels import plain_words

_GAP_PX: Final = 4


class SegmentedControl(QWidget):
    """Words side by side, one of them chosen.

    Attributes:
        _buttons: by the key of their segment.
        _long, _short: the words of each, and those for where there is no room for them.

    Signals:
        chosen(key): a person chose another segment; not sent by choose().
    """

    chosen = Signal(str)

    def __init__(self, segments: Mapping[str, str], spoken: str, theme: Theme, parent: QWidget | None = None) -> None:
        """Build the segments; the first one is chosen.

        Args:
            segments: key and words of each.
            spoken: what the choice is about, for a screen reader.
            theme: gives the colours.
            parent: the widget it stands in.
        """
        super().__init__(parent)
        self._group = QButtonGroup(self)
        self._buttons: dict[str, QToolButton] = {}
        self._long = segments
        self._short: Mapping[str, str] = {}
        self.setAccessibleName(spoken)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(_GAP_PX)
        for key, words in segments.items():
            row.addWidget(self._add_button(key, words))
        row.addStretch(1)
        self._group.idClicked.connect(self._on_clicked)
        self.set_theme(theme)
        self.choose(next(iter(segments)))

    @property
    def chosen_key(self) -> str:
        """The key of the chosen segment."""
        return list(self._buttons)[self._group.checkedId()]

    def choose(self, key: str) -> None:
        """Choose a segment; KeyError for an unknown one."""
        self._buttons[key].setChecked(True)
        for button in self._buttons.values():  # Tab stops once, at the chosen one
            is_chosen = button.isChecked()
            button.setFocusPolicy(Qt.FocusPolicy.StrongFocus if is_chosen else Qt.FocusPolicy.ClickFocus)

    def set_short_words(self, words: Mapping[str, str]) -> None:
        """Give words for where there is no room for the long ones; those stay what a screen reader says."""
        self._short = words
        self._fit_words()

    def minimumSizeHint(self) -> QSize:
        """Return a width that never makes the column wider."""
        hint = super().minimumSizeHint()
        return QSize(0, hint.height()) if self._short else hint

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Take the short words where the long ones do not fit."""
        super().resizeEvent(event)
        self._fit_words()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self.setStyleSheet(
            f"QToolButton {{ color: {theme.roles['muted']}; padding: 3px 5px; font-size: {MUTED_PX}px; }}"
            f"QToolButton:hover {{ color: {theme.roles['text']}; }}"
            f"QToolButton:checked {{ background: {theme.roles['raised']}; color: {theme.roles['text']}; }}"
        )

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Let the arrows choose the next segment."""
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            step = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}.get(Qt.Key(event.key()), 0)
            if step:
                self._step(step)
                return True
        return super().eventFilter(watched, event)

    def _add_button(self, key: str, words: str) -> QToolButton:
        button = QToolButton(self)
        button.setText(plain_words(words))
        button.setAccessibleName(words)
        button.setCheckable(True)
        button.installEventFilter(self)
        self._group.addButton(button, len(self._buttons))
        self._buttons[key] = button
        return button

    def _fit_words(self) -> None:
        if not self._short:
            return
        self._show_words(self._long)
        spacing = _GAP_PX * (len(self._buttons) - 1)
        needed = sum(button.sizeHint().width() for button in self._buttons.values()) + spacing
        if needed > self.width():
            self._show_words({**self._long, **self._short})

    def _show_words(self, words: Mapping[str, str]) -> None:
        for key, button in self._buttons.items():
            shown = plain_words(words[key])
            if button.text() != shown:
                button.setText(shown)
                button.setToolTip("" if words[key] == self._long[key] else self._long[key])

    def _step(self, step: int) -> None:
        keys = list(self._buttons)
        key = keys[(keys.index(self.chosen_key) + step) % len(keys)]
        if key != self.chosen_key:
            self.choose(key)
            self._buttons[key].setFocus()
            self.chosen.emit(key)

    def _on_clicked(self, number: int) -> None:
        key = list(self._buttons)[number]
        self.choose(key)
        self.chosen.emit(key)
