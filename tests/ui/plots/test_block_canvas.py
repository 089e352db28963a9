"""The cells on screen: what is painted where, what is painted again, and the cursor."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QFocusEvent, QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from tests.helpers.block_maps import FREE, MAP, USED, large_map, view_of
from ui.plots.block_canvas import BlockCanvas
from ui.theme import load_theme


@pytest.fixture
def canvas_of(qtbot):
    def build(view, theme="dark", size=(300, 130), *, grows=True, padding_px=0):
        canvas = BlockCanvas(60, grows=grows, padding_px=padding_px)
        qtbot.addWidget(canvas)
        canvas.set_theme(load_theme(theme))
        canvas.resize(*size)
        canvas.show()
        canvas.set_view(view)
        return canvas

    return build


def is_color(color, role, name="dark"):
    """Say whether a colour is a role's, as far as antialiasing rounds."""
    wanted = load_theme(name).color(role)
    return all(abs(a - b) <= 3 for a, b in zip(color.getRgb(), wanted.getRgb(), strict=True))


def color_in(canvas, block):
    return canvas.grab().toImage().pixelColor((canvas.area_of(block).topLeft() + QPointF(4, 3)).toPoint())


def changed(block, state):
    states = bytearray(MAP.states)
    states[block] = state
    return view_of(msgspec.structs.replace(MAP, states=bytes(states)))


@pytest.mark.parametrize("name", ["dark", "light"])
@pytest.mark.parametrize("padding_px", [0, 8])
def test_each_block_is_painted_at_its_place(canvas_of, name, padding_px):
    canvas = canvas_of(view_of(), name, padding_px=padding_px)
    assert is_color(color_in(canvas, 0), "kv", name)
    assert not is_color(color_in(canvas, 4), "kv", name)
    assert is_color(color_in(canvas, 5), "surface", name)  # a ring
    assert canvas.area_of(0).topLeft() == QPointF(padding_px, padding_px)
    assert canvas.area_of(8).isEmpty()


def test_only_the_cells_that_changed_are_drawn_again(canvas_of):
    canvas = canvas_of(view_of(large_map(512)))
    drawn = canvas.cells_drawn
    canvas.set_view(view_of(large_map(512)))
    assert canvas.cells_drawn == drawn
    canvas = canvas_of(view_of())
    drawn = canvas.cells_drawn
    canvas.set_view(changed(4, USED))
    assert canvas.cells_drawn == drawn + 1
    assert is_color(color_in(canvas, 4), "kv")
    canvas.set_view(view_of())
    assert not is_color(color_in(canvas, 4), "kv")


def test_another_size_theme_or_number_of_blocks_is_laid_out_anew(canvas_of):
    canvas = canvas_of(view_of())
    for act in (
        lambda: canvas.resize(200, 90),
        lambda: canvas.set_theme(load_theme("light")),
        lambda: canvas.set_view(view_of(large_map(64))),
    ):
        drawn = canvas.cells_drawn
        act()
        QApplication.processEvents()
        assert canvas.cells_drawn >= drawn + canvas.grid.num_cells
    canvas.set_view(None)
    assert canvas.grid is None
    assert canvas.grab().toImage().pixelColor(3, 3) == load_theme("light").color("surface")


def test_twenty_thousand_blocks_share_cells(canvas_of):
    canvas = canvas_of(view_of(large_map(20_000)), size=(340, 126))
    assert canvas.grid.per_cell == 18
    assert canvas.area_of(19_999).bottom() <= 126
    canvas.set_cursor(35)
    assert canvas.cursor_blocks == range(18, 36)


def test_a_map_that_does_not_grow_takes_no_more_height_than_it_needs(canvas_of):
    canvas = canvas_of(view_of(), size=(300, 200), grows=False)
    assert canvas.sizeHint().height() == 14
    canvas.set_view(view_of(large_map(20_000)))
    assert 50 <= canvas.sizeHint().height() <= 60
    canvas.set_view(None)
    assert canvas.sizeHint().height() == 60
    assert canvas_of(view_of(), size=(300, 200)).minimumSizeHint().height() == 60


def test_the_mouse_moves_the_cursor(canvas_of, qtbot):
    canvas = canvas_of(view_of())
    with qtbot.waitSignal(canvas.cursor_moved):
        QTest.mouseMove(canvas, canvas.area_of(3).center().toPoint())
    assert canvas.cursor_blocks == range(3, 4)
    QTest.mouseMove(canvas, QPoint(250, 100))
    assert not canvas.cursor_blocks
    canvas.set_cursor(3)
    QApplication.sendEvent(canvas, QEvent(QEvent.Type.Leave))
    assert not canvas.cursor_blocks


def test_resting_on_a_cell_wants_its_words(canvas_of, qtbot):
    canvas = canvas_of(view_of())
    point = canvas.area_of(3).center().toPoint()
    rest = QHelpEvent(QEvent.Type.ToolTip, point, canvas.mapToGlobal(point))
    with qtbot.assertNotEmitted(canvas.words_wanted):
        QApplication.sendEvent(canvas, rest)
    canvas.set_cursor(3)
    with qtbot.waitSignal(canvas.words_wanted):
        QApplication.sendEvent(canvas, rest)


def test_the_arrow_keys_move_the_cursor_and_stay_on_the_map(canvas_of):
    canvas = canvas_of(view_of(large_map(64)), size=(140, 130))
    columns = canvas.grid.columns
    last = 63

    def press(key):
        QTest.keyClick(canvas, key)
        return canvas.cursor_blocks.start

    assert press(Qt.Key.Key_Right) == 0  # the first press shows the cursor
    assert press(Qt.Key.Key_Right) == 1
    assert press(Qt.Key.Key_Down) == 1 + columns
    assert press(Qt.Key.Key_Up) == 1
    assert press(Qt.Key.Key_Up) == 1
    assert press(Qt.Key.Key_Left) == 0
    assert press(Qt.Key.Key_Left) == 0
    assert press(Qt.Key.Key_End) == last
    assert press(Qt.Key.Key_Right) == last
    assert press(Qt.Key.Key_Down) == last
    assert press(Qt.Key.Key_Home) == 0
    QTest.keyClick(canvas, Qt.Key.Key_Escape)
    assert not canvas.cursor_blocks


def test_tab_shows_where_the_keyboard_is_and_leaving_takes_it_away(canvas_of):
    canvas = canvas_of(view_of())
    assert canvas.focusPolicy() is Qt.FocusPolicy.StrongFocus
    QApplication.sendEvent(canvas, QFocusEvent(QEvent.Type.FocusIn, Qt.FocusReason.TabFocusReason))
    assert canvas.cursor_blocks == range(1)
    QApplication.sendEvent(canvas, QFocusEvent(QEvent.Type.FocusOut, Qt.FocusReason.TabFocusReason))
    assert not canvas.cursor_blocks


def test_the_sequence_under_the_cursor_is_marked_where_there_are_others(canvas_of):
    canvas = canvas_of(view_of())
    before = canvas.grab().toImage()
    canvas.set_cursor(3)
    corner = canvas.area_of(0).topLeft().toPoint() + QPoint(4, 0)
    assert canvas.grab().toImage().pixelColor(corner) != before.pixelColor(corner)
    canvas.set_cursor(-1)
    assert canvas.grab().toImage() == before


def test_the_cursor_goes_with_its_block(canvas_of):
    canvas = canvas_of(view_of(large_map(64)))
    canvas.set_cursor(60)
    canvas.set_view(view_of())
    assert not canvas.cursor_blocks
    assert changed(2, FREE).count(USED) == 1
