"""A line that opens and closes what stands under it: for what a person looks at only sometimes.

Knows not what it hides.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QToolButton, QVBoxLayout, QWidget

from ui.theme import Theme
from ui.widgets.icons import icon
from ui.widgets.labels import plain_words


class CompareFold(QWidget):
    """The line and what it hides; closed at first.

    Attributes:
        button: the line.

    Signals:
        toggled(is_open): a person opened or closed it.
    """

    toggled = Signal(bool)

    def __init__(self, words: str, inside: QWidget, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._inside = inside
        self.button = QToolButton()
        self.button.setText(plain_words(words))
        self.button.setAccessibleName(words)
        self.button.setCheckable(True)
        self.button.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.button.toggled.connect(self._on_toggled)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addWidget(self.button, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(inside)
        inside.hide()
        self.set_theme(theme)

    @property
    def is_open(self) -> bool:
        """Whether what it hides is shown."""
        return self.button.isChecked()

    def set_open(self, is_open: bool) -> None:
        """Open or close it."""
        self.button.setChecked(is_open)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._theme = theme
        name = "chevron-down" if self.is_open else "chevron-right"
        self.button.setIcon(icon(name, theme))
        self.button.setStyleSheet(
            f"QToolButton {{ color: {theme.roles['muted']}; font-size: 12px; font-weight: 600; "
            "padding: 2px 6px 2px 0; }"
            f"QToolButton:hover, QToolButton:checked {{ color: {theme.roles['text']}; }}"
        )

    def _on_toggled(self, is_open: bool) -> None:
        self._inside.setVisible(is_open)
        self.set_theme(self._theme)
        self.toggled.emit(is_open)
