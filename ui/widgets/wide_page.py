"""A page of the right side: a head that stays, and a column under it that scrolls, both with the same margins.

The margins are wide where there is room, and no line is longer than can be read across. Knows not what it holds.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import QSize
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QVBoxLayout, QWidget

from ui.widgets.scroll_area import scrolling

_MARGIN_PX, _NARROW_MARGIN_PX = 28, 16
# From this width on things stand side by side.
WIDE_PX: Final = 820
_BELOW_PX: Final = 20


class WidePage(QWidget):
    """The page; what goes into it is added to its two layouts.

    Attributes:
        head: what stays at the top.
        column: what scrolls.
    """

    def __init__(self, most_px: int, parent: QWidget | None = None) -> None:
        """Make an empty page.

        Args:
            most_px: on a large screen nothing is wider than this.
            parent: the widget it stands in.
        """
        super().__init__(parent)
        self._most_px = most_px
        self._free_px = 0
        self._top = QVBoxLayout()
        self.head = QVBoxLayout()
        self.head.setSpacing(12)
        inside = QWidget()
        self.column = QVBoxLayout(inside)
        self.column.setSpacing(20)
        self._area = scrolling(inside)
        self._area.verticalScrollBar().rangeChanged.connect(self._on_range_changed)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 14, 0, 0)
        layout.setSpacing(12)
        layout.addLayout(self.head)
        layout.addWidget(self._area, 1)
        self._place()

    @property
    def is_wide(self) -> bool:
        """Whether there is room for things side by side."""
        return self.width() >= WIDE_PX

    def show_part(self, part: QWidget) -> None:
        """Scroll until a part of the column is seen."""
        self._area.ensureWidgetVisible(part)

    def scroll_to(self, part: QWidget) -> None:
        """Scroll so that a part of the column stands at the top."""
        self._area.verticalScrollBar().setValue(part.y())

    def minimumSizeHint(self) -> QSize:
        """Return what is in it at least; the room that a large screen leaves free is none of that."""
        hint = super().minimumSizeHint()
        return QSize(hint.width() - self._free_px, hint.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Give the margins what is left."""
        super().resizeEvent(event)
        self._place()

    def _on_range_changed(self, _low: int, _high: int) -> None:
        self._place()

    def _place(self) -> None:
        """Let the scroll bar stand in the margin, so that nothing moves when it comes."""
        margin_px = _MARGIN_PX if self.is_wide else _NARROW_MARGIN_PX
        self._free_px = max(0, self.width() - 2 * margin_px - self._most_px)
        right_px = margin_px + self._free_px
        bar = self._area.verticalScrollBar()
        bar_px = bar.sizeHint().width() if bar.maximum() else 0
        self.head.setContentsMargins(margin_px, 0, right_px, 0)
        self.column.setContentsMargins(margin_px, 0, right_px - bar_px, _BELOW_PX)
