"""Marking text with the mouse: click, double click, triple click, and dragging past the edge.

Knows places on the screen and a selection; where letters are it asks its view.
"""

from __future__ import annotations

from typing import Final, Protocol

from PySide6.QtCore import QObject, QPointF, Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QMouseEvent

from ui.widgets.text_selection import Position, TextSelection, Unit

# While the mouse is held outside the view, it scrolls this often, by as many pixels as the mouse is outside.
_DRAG_SCROLL_MS: Final = 30


class MarkedView(Protocol):
    """What the view has to answer."""

    def position_at(self, point: QPointF) -> Position:
        """Return the place in the text nearest to a place on the screen."""

    def height_px(self) -> int:
        """Return the height of the visible part."""

    def scroll_by(self, distance_px: int) -> None:
        """Scroll by this much, down where positive."""


class MouseMarking(QObject):
    """Turns the mouse's events into a selection.

    Attributes:
        is_dragging: whether the button is held.

    Signals:
        changed(): something else is marked.
    """

    changed = Signal()

    def __init__(self, view: MarkedView, selection: TextSelection, parent: QObject) -> None:
        super().__init__(parent)
        self._view = view
        self._selection = selection
        self._drag_point: QPointF | None = None
        self._drag_scroll = QTimer(self)
        self._drag_scroll.setInterval(_DRAG_SCROLL_MS)
        self._drag_scroll.timeout.connect(self._on_drag_scroll)
        self._third_click_wait = QTimer(self)
        self._third_click_wait.setSingleShot(True)

    @property
    def is_dragging(self) -> bool:
        """Whether the button is held."""
        return self._drag_point is not None

    def press(self, event: QMouseEvent) -> None:
        """Begin to mark; soon after a double click, mark the paragraph."""
        position = self._view.position_at(event.position())
        if self._third_click_wait.isActive():
            self._third_click_wait.stop()
            self._selection.begin(position, Unit.PARAGRAPH)
        elif event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self._selection.extend(position)
        else:
            self._selection.begin(position, Unit.LETTER)
        self._drag_point = event.position()
        self.changed.emit()

    def double_click(self, event: QMouseEvent) -> None:
        """Mark a word."""
        self._selection.begin(self._view.position_at(event.position()), Unit.WORD)
        self._drag_point = event.position()
        self._third_click_wait.start(QGuiApplication.styleHints().mouseDoubleClickInterval())
        self.changed.emit()

    def move(self, event: QMouseEvent) -> None:
        """Mark up to the mouse, scrolling while it is outside."""
        self._drag_point = event.position()
        self._selection.extend(self._view.position_at(event.position()))
        is_inside = 0 <= event.position().y() < self._view.height_px()
        if is_inside:
            self._drag_scroll.stop()
        elif not self._drag_scroll.isActive():
            self._drag_scroll.start()
        self.changed.emit()

    def release(self) -> None:
        """End marking."""
        self._drag_point = None
        self._drag_scroll.stop()

    def _on_drag_scroll(self) -> None:
        if self._drag_point is None:
            return
        y = self._drag_point.y()
        self._view.scroll_by(round(y if y < 0 else y - self._view.height_px()))
        self._selection.extend(self._view.position_at(self._drag_point))
        self.changed.emit()
