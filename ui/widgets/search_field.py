"""A search field: a magnifier, a button that clears it, Esc clears it too, and Down leaves it for what was found.

Knows not what is searched.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QKeyEvent
from PySide6.QtWidgets import QLineEdit, QToolButton, QWidget

from app.i18n import _
from ui.theme import Theme
from ui.widgets.icons import icon

# Nobody types more; what is pasted by mistake must not be searched for.
_MAX_CHARACTERS = 500

# A stylesheet's padding comes on top of the room that Qt leaves after the magnifier.
_TEXT_MARGIN_PX = -8


class SearchField(QLineEdit):
    """One line to search with.

    Signals:
        left_downwards(): a person wants to go on to what was found (Down or Enter).
    """

    left_downwards = Signal()

    def __init__(self, words: str, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._magnifier = QAction(words, self)
        self.addAction(self._magnifier, QLineEdit.ActionPosition.LeadingPosition)
        self.setPlaceholderText(words)
        self.setAccessibleName(words)
        self.setClearButtonEnabled(True)
        for button in self.findChildren(QToolButton):  # Qt's own, one of them without a name
            button.setAccessibleName(button.text() or _("Clear the search"))
        self.setMaxLength(_MAX_CHARACTERS)
        self.setTextMargins(_TEXT_MARGIN_PX, 0, 0, 0)
        self._magnifier.triggered.connect(self.go_to)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Draw the magnifier in a theme's colours."""
        self._magnifier.setIcon(icon("magnify", theme))

    def go_to(self) -> None:
        """Put the cursor here, ready to search for something else."""
        self.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self.selectAll()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Clear with Esc, leave with Down or Enter; everything else is text."""
        if event.key() == Qt.Key.Key_Escape and self.text():
            self.clear()
        elif event.key() in (Qt.Key.Key_Down, Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.left_downwards.emit()
        else:
            super().keyPressEvent(event)
