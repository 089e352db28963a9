"""A button that is an icon: its words are its tooltip and its accessible name."""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QSize, Qt, QTimer
from PySide6.QtWidgets import QToolButton, QWidget

from ui.theme import Theme
from ui.widgets.icons import icon

_FLASH_MS: Final = 1200


class IconButton(QToolButton):
    """A square button with an icon in the theme's colours.

    Attributes:
        words: what it does, in a few words.
    """

    def __init__(self, icon_name: str, words: str, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.words = words
        self._icon_name = icon_name
        self._theme = theme
        self._flash_end = QTimer(self)
        self._flash_end.setSingleShot(True)
        self._flash_end.timeout.connect(self._on_flash_ended)
        self.setAccessibleName(words)
        self.setToolTip(words)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self.setCursor(Qt.CursorShape.ArrowCursor)
        self.set_theme(theme)

    def set_theme(self, theme: Theme) -> None:
        """Take over another theme's colours."""
        self._theme = theme
        self.setIcon(icon(self._icon_name, theme))

    def set_size(self, size_px: int, icon_px: int) -> None:
        """Give the button and its icon a size in pixels."""
        self.setFixedSize(size_px, size_px)
        self.setIconSize(QSize(icon_px, icon_px))

    def flash(self, icon_name: str) -> None:
        """Show another icon for a moment, to say that it worked."""
        self.setIcon(icon(icon_name, self._theme, "text"))
        self._flash_end.start(_FLASH_MS)

    def _on_flash_ended(self) -> None:
        self.setIcon(icon(self._icon_name, self._theme))
