"""What all plots share: the linked time axis and cursor, the keyboard, restarts, and drawing only what is seen."""

from __future__ import annotations

import math

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtTest import QTest

from app.telemetry.store import TelemetryStore
from tests.helpers import live_store
from ui.plots.kv_plot import KvPlot
from ui.plots.memory_plot import MemoryPlot
from ui.plots.plot_base import SharedTime, time_label
from ui.plots.speed_plot import SpeedPlot
from ui.theme import load_theme


def test_the_axis_follows_the_newest_reading(qapp):
    time = SharedTime()
    assert time.span(0) == (0, 60)
    assert time.span(45) == (0, 60)
    assert time.span(100) == (40, 100)
    time.set_window(600)
    assert time.span(100) == (0, 600)
    time.set_window(math.inf)
    assert time.span(5) == (0, 60)
    assert time.span(9000) == (0, 9000)


def test_signals_come_only_with_a_change(qtbot):
    time = SharedTime()
    with qtbot.assertNotEmitted(time.window_changed), qtbot.assertNotEmitted(time.cursor_moved):
        time.set_window(60.0)
        time.set_cursor(None)
    with qtbot.waitSignal(time.cursor_moved):
        time.set_cursor(1.0)
    with qtbot.waitSignal(time.window_changed):
        time.set_window(600.0)


def test_times_are_labelled_in_seconds_then_in_minutes_and_hours():
    assert time_label(1040, in_seconds=True) == "1,040"
    assert time_label(150, in_seconds=False) == "2:30"
    assert time_label(3900, in_seconds=False) == "1:05:00"


def test_the_cursor_is_one_for_all_plots(store, shown, time):
    memory, speed = shown(MemoryPlot, store), shown(SpeedPlot, store)
    assert not memory._cursor_line.isVisible()
    memory._on_mouse_moved(memory._plot.getPlotItem().getViewBox().mapViewToScene(QPointF(5.0, 100.0)))
    assert time.cursor_s == pytest.approx(5.0)
    for plot in (memory, speed):
        assert plot._cursor_line.isVisible()
        assert plot._cursor_line.value() == pytest.approx(5.0)
        assert plot.caption.hint == "at 5.0 s"
    memory._on_mouse_moved(QPointF(-5, -5))
    assert time.cursor_s is None
    assert not speed._cursor_line.isVisible()
    assert memory.caption.hint == "system memory"


def test_the_keyboard_moves_the_cursor(store, shown, time):
    plot = shown(KvPlot, store)
    QTest.keyClick(plot, Qt.Key.Key_Left)
    assert time.cursor_s == pytest.approx(store.now_s - 1)
    QTest.keyClick(plot, Qt.Key.Key_Right)
    QTest.keyClick(plot, Qt.Key.Key_Right)
    assert time.cursor_s == pytest.approx(store.now_s)
    QTest.keyClick(plot, Qt.Key.Key_Escape)
    assert time.cursor_s is None
    QTest.keyClick(plot, Qt.Key.Key_Escape)


def test_a_hidden_plot_is_not_drawn_until_it_is_shown(store, shown, timer, qtbot):
    plot = shown(MemoryPlot, store)
    plot.hide()
    before = timer.redraws
    live_store.memory(store, 11.0, 412)
    timer.wake()
    qtbot.waitUntil(lambda: not timer.is_active, timeout=5000)
    assert timer.redraws == before
    assert plot.has_moved()
    plot.show()
    qtbot.waitUntil(lambda: not plot.has_moved(), timeout=5000)
    assert timer.redraws > before


def test_a_flood_of_readings_redraws_once(store, shown, timer, qtbot, monkeypatch):
    plot = shown(MemoryPlot, store)
    drawn = []
    redraw = plot._redraw
    monkeypatch.setattr(plot, "_redraw", lambda: drawn.append(redraw()))
    for number in range(20_000):
        live_store.memory(store, 11.0 + number * 1e-4, 412)
        timer.wake()
    assert drawn == []
    timer._on_timeout()
    assert len(drawn) == 1
    timer._on_timeout()
    assert len(drawn) == 1


def test_a_restart_is_marked_by_a_line(store, shown, timer, qtbot):
    plot = shown(MemoryPlot, store)
    assert plot._restart_lines == []
    store.engine_gone()
    live_store.memory(store, 500.0, 40)
    timer.wake()
    qtbot.waitUntil(lambda: not plot.has_moved(), timeout=5000)
    assert [line.value() for line in plot._restart_lines] == [pytest.approx(store.restarts()[0])]


def test_another_window_is_drawn_for_every_plot(store, shown, time, qtbot):
    plots = [shown(MemoryPlot, store), shown(SpeedPlot, store)]
    time.set_window(600.0)
    qtbot.waitUntil(lambda: not any(plot.has_moved() for plot in plots), timeout=5000)
    for plot in plots:
        assert plot._plot.getPlotItem().getViewBox().viewRange()[0] == [0, 600]


def test_the_theme_changes_at_runtime(store, shown, qtbot):
    plot = shown(MemoryPlot, store, theme="dark")
    for name in ("light", "dark"):
        theme = load_theme(name)
        plot.set_theme(theme)
        qtbot.waitUntil(lambda: not plot.has_moved(), timeout=5000)
        corner = plot.plot_area().topRight().toPoint()
        assert plot.grab().toImage().pixelColor(corner.x() - 4, corner.y() + 14) == theme.color("surface")


@pytest.mark.parametrize("kind", [MemoryPlot, KvPlot, SpeedPlot])
def test_a_plot_without_readings_is_an_empty_axis(kind, shown):
    plot = shown(kind, TelemetryStore())
    assert plot.legend.values == {}
    assert plot.accessibleName()
    assert plot.table().num_rows == 0


@pytest.mark.parametrize("kind", [MemoryPlot, KvPlot, SpeedPlot])
def test_plots_share_their_left_edge(kind, store, shown):
    plot = shown(kind, store)
    assert plot.plot_area().left() == pytest.approx(shown(MemoryPlot, store).plot_area().left())


def test_lines_are_as_thick_to_the_eye_on_a_dense_screen(store, shown, monkeypatch):
    plot = shown(SpeedPlot, store)
    monkeypatch.setattr(plot, "devicePixelRatioF", lambda: 2.0)
    assert plot._line_pen("text", 1.5).widthF() == 3.0


def test_a_plot_is_drawn_again_when_its_axis_has_moved_by_visible_pixels(store, shown, monkeypatch):
    plot = shown(KvPlot, store)
    drawn_s = plot._drawn_s
    width = plot._plot.width()
    visible_s = 2 * 60.0 / width
    for later_s, due in ((0.5 * visible_s, False), (1.5 * visible_s, True)):
        monkeypatch.setattr("time.monotonic", lambda now_s=drawn_s + later_s: now_s)
        assert plot.is_due() is due
    monkeypatch.undo()
    plot._redraw_soon()  # another view is drawn at once
    assert plot.is_due()
