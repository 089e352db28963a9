"""A label of several lines that never forces its column wider, whatever words it holds.

Qt's labels break lines between words only, so one long path would push a window beyond the screen.
"""

from __future__ import annotations

import re

from PySide6.QtWidgets import QWidget

from ui.widgets.labels import PlainLabel

_ZERO_WIDTH_SPACE = "\u200b"

# Where a path or an address may be broken, and how long a word may be that has no such place.
_AFTER_SIGNS = re.compile(r"([/\\_.:?&=-])(?=\S)")
_LONG_RUN = re.compile(rf"([^\s{_ZERO_WIDTH_SPACE}]{{16}})(?=[^\s{_ZERO_WIDTH_SPACE}])")

# The shortest word that is worth breaking; shorter ones fit the narrowest column.
_LONG_WORD = re.compile(r"\S{24,}")


def breakable(text: str) -> str:
    """Return the text with invisible places to break inside its long words."""
    return _LONG_WORD.sub(lambda word: _LONG_RUN.sub(rf"\1{_ZERO_WIDTH_SPACE}", _broken_at_signs(word.group())), text)


def _broken_at_signs(word: str) -> str:
    return _AFTER_SIGNS.sub(rf"\1{_ZERO_WIDTH_SPACE}", word)


class WrappedLabel(PlainLabel):
    """A plain label that wraps; its accessible name is the text without the invisible breaks."""

    def __init__(self, text: str = "", kind: str = "", parent: QWidget | None = None) -> None:
        super().__init__(text, kind, parent)
        self.setWordWrap(True)

    def setText(self, text: str) -> None:
        """Show this text; it may be broken anywhere inside a long word."""
        super().setText(breakable(text))
        self.setAccessibleName(text)
