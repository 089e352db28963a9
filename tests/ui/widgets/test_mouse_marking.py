"""Dragging past the edge scrolls and marks on, and stops when the button is let go."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QObject, QPointF, Qt
from PySide6.QtGui import QMouseEvent

from ui.widgets.mouse_marking import MouseMarking
from ui.widgets.text_selection import Position, TextSelection


class FakeView:
    """A view in which every pixel down is one letter on."""

    def __init__(self):
        self.scrolled_px = 0

    def position_at(self, point):
        return Position(0, max(0, round(point.y()) + self.scrolled_px))

    def height_px(self):
        return 100

    def scroll_by(self, distance_px):
        self.scrolled_px += distance_px


def event_at(y):
    none = Qt.KeyboardModifier.NoModifier
    button = Qt.MouseButton.LeftButton
    return QMouseEvent(QEvent.Type.MouseMove, QPointF(0, y), QPointF(0, y), button, button, none)


def test_dragging_past_the_edge_scrolls_and_marks_on(qapp, qtbot):
    owner, view = QObject(), FakeView()
    selection = TextSelection(lambda position, _unit: (position, position))
    marking = MouseMarking(view, selection, owner)
    marking.press(event_at(50))
    assert marking.is_dragging
    marking.move(event_at(110))
    qtbot.waitUntil(lambda: view.scrolled_px >= 30)
    assert selection.start == Position(0, 50)
    assert selection.end == Position(0, 110 + view.scrolled_px)
    marking.release()
    assert not marking.is_dragging
    assert not marking._drag_scroll.isActive()


def test_scrolling_stops_when_the_mouse_comes_back(qapp):
    owner, view = QObject(), FakeView()
    marking = MouseMarking(view, TextSelection(lambda position, _unit: (position, position)), owner)
    marking.press(event_at(50))
    marking.move(event_at(-5))
    assert marking._drag_scroll.isActive()
    marking.move(event_at(5))
    assert not marking._drag_scroll.isActive()
