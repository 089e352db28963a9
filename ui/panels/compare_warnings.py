"""Sentences that a person must know before believing a figure: a sign and words each, in a quiet frame.

Knows not what they are about.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from app.i18n import _
from ui.theme import Theme
from ui.widgets.icons import icon
from ui.widgets.wrapped_label import WrappedLabel

_ICON_PX: Final = 16


class CompareWarnings(QFrame):
    """The sentences; hidden while there are none."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._lines: list[QWidget] = []
        self._signs: list[QLabel] = []
        self._sentences: tuple[str, ...] = ()
        self.setProperty("kind", "notice")
        self.setProperty("level", "warning")
        self.setAccessibleName(_("Warnings"))
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(12, 8, 12, 8)
        self._column.setSpacing(6)
        self.hide()

    @property
    def sentences(self) -> tuple[str, ...]:
        """What is shown."""
        return self._sentences

    def set_warnings(self, sentences: Sequence[str]) -> None:
        """Show exactly these sentences, each once."""
        wanted = tuple(dict.fromkeys(filter(None, sentences)))
        if wanted == self._sentences:
            return
        self._sentences = wanted
        for line in self._lines:
            self._column.removeWidget(line)
            line.hide()
            line.deleteLater()
        self._lines, self._signs = [], []
        for sentence in wanted:
            self._add_line(sentence)
        self.setAccessibleDescription(" ".join(wanted))
        self.setVisible(bool(wanted))

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._theme = theme
        for sign in self._signs:
            self._draw(sign)

    def _add_line(self, sentence: str) -> None:
        line = QWidget(self)
        row = QHBoxLayout(line)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        sign = QLabel(line)
        self._draw(sign)
        row.addWidget(sign, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(WrappedLabel(sentence), 1)
        self._column.addWidget(line)
        self._lines.append(line)
        self._signs.append(sign)

    def _draw(self, sign: QLabel) -> None:
        sign.setPixmap(icon("alert-outline", self._theme, role="kv").pixmap(_ICON_PX, _ICON_PX))
