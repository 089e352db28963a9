"""The cutaway panel: figures with their origin, the live line, folding, and its states."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QAbstractButton

from app.telemetry.store import LiveFigures, TelemetryStore
from app.units import NBSP
from tests.helpers import live_store
from tests.helpers.live_store import MIB
from ui.panels import cutaway_panel
from ui.panels.cutaway_panel import CutawayPanel
from ui.plots.redraw import RedrawTimer
from ui.theme import load_theme


@pytest.fixture
def timer(qapp):
    timer = RedrawTimer(cores=16)
    yield timer
    timer.stop()


@pytest.fixture
def panel_of(qtbot, timer):
    def build(store):
        panel = CutawayPanel(store, timer)
        qtbot.addWidget(panel)
        panel.set_theme(load_theme("dark"))
        panel.resize(panel.width(), 880)
        panel.set_folded(False)
        qtbot.waitUntil(lambda: not timer.is_active, timeout=5000)
        return panel

    return build


def words(text):
    return text.replace(NBSP, " ")


def test_the_panel_begins_folded_and_says_when_that_changes(qtbot, timer):
    panel = CutawayPanel(TelemetryStore(), timer)
    qtbot.addWidget(panel)
    assert panel.is_folded
    with qtbot.waitSignal(panel.folded_changed) as changed:
        panel.set_folded(False)
    assert changed.args == [False]
    assert panel.isVisible()
    with qtbot.assertNotEmitted(panel.folded_changed):
        panel.set_folded(False)
    with qtbot.waitSignal(panel.folded_changed) as changed:
        panel._fold.click()
    assert changed.args == [True]
    assert not panel.isVisible()


def test_without_an_engine_one_sentence_is_shown(panel_of):
    panel = panel_of(TelemetryStore())
    assert panel._state.isVisible()
    assert panel._state.text().startswith("No engine runs.")
    assert not panel.plots[0].isVisible()
    assert panel.live_text == ""


def test_three_figures_are_live(panel_of):
    panel = panel_of(live_store.filled_store())
    assert not panel._state.isVisible()
    assert words(panel._speed.text()) == "10.0 tokens/s writing now"
    assert words(panel._kv.text()) == "57.5 MiB KV of 180 MiB"
    assert words(panel._memory.text()) == "412 MiB system memory"


def test_every_figure_says_how_it_was_got(panel_of):
    panel = panel_of(live_store.filled_store())
    for figure in (panel._speed, panel._kv, panel._memory):
        assert figure.toolTip()
        assert figure._number.toolTip() == ""  # so that the figure's own is shown
        assert figure.accessibleName()
        assert figure.accessibleDescription()
    assert words(panel._memory.toolTip()).endswith("Highest so far: 412 MiB.")


def test_the_live_line_follows_the_engine_while_folded(qtbot, timer):
    store = live_store.filled_store()
    window = cutaway_panel.QWidget()
    qtbot.addWidget(window)
    panel = CutawayPanel(store, timer, window)
    window.show()
    assert panel.is_folded
    assert words(panel.live_text) == "10.0 tokens/s · KV 57.5 of 180 MiB · memory 412 MiB"
    with qtbot.waitSignal(panel.live_text_changed, timeout=5000) as changed:
        live_store.memory(store, 11.0, 500)
        timer.wake()
    assert words(changed.args[0]).endswith("memory 500 MiB")
    with qtbot.waitSignal(panel.live_text_changed, timeout=5000) as changed:
        store.engine_gone()
        timer.wake()
    assert changed.args == [""]


def test_an_engine_that_is_gone_leaves_its_plots_and_says_so(panel_of, timer, qtbot):
    store = live_store.filled_store()
    panel = panel_of(store)
    store.engine_gone()
    timer.wake()
    qtbot.waitUntil(panel._state.isVisible, timeout=5000)
    assert panel._state.text().startswith("The engine is gone.")
    assert panel.plots[0].isVisible()


def test_connections_are_counted_in_words(panel_of):
    panel = panel_of(TelemetryStore())
    assert panel._connections.text() == "0 network connections since start"
    panel.set_connections(1)
    assert panel._connections.text() == "1 network connection since start"
    panel.set_connections(1200)
    assert panel._connections.text() == "1,200 network connections since start"


def test_device_memory_is_named_and_never_read_as_markup():
    live = LiveFigures(memory_bytes=5000 * MIB, device_name="<img src=x>", device_total_bytes=24000 * MIB)
    value, what, origin = cutaway_panel.memory_figure(live)
    assert words(value) == "4.88 GiB"
    assert what == "device memory of <img src=x>"
    assert words(origin) == "Measured by the card's driver: used by all programs, of 23.4 GiB."


def test_a_strangers_device_name_is_no_markup_in_a_tooltip(qtbot):
    figure = cutaway_panel.LiveFigure()
    qtbot.addWidget(figure)
    figure.show_figure("", "device memory of <img src=x>", "Measured.")
    assert "<img" not in figure.toolTip()
    assert figure.text() == "–  device memory of <img src=x>"


def test_figures_that_are_not_there_are_a_dash():
    assert cutaway_panel.speed_figure(LiveFigures())[:2] == ("", "last writing")
    assert cutaway_panel.kv_figure(LiveFigures())[:2] == ("", "KV used")
    assert cutaway_panel.memory_figure(LiveFigures())[:2] == ("", "system memory")
    assert cutaway_panel.live_text(LiveFigures(has_engine=True)) == ""


def test_all_of_the_panel_fits_its_width(panel_of):
    panel = panel_of(live_store.filled_store())
    assert panel.width() == 372
    right = panel.tools.mapTo(panel, panel.tools.rect().bottomRight()).x()
    assert right <= panel.width()
    assert panel._content.horizontalScrollBar().maximum() == 0
    canvas = panel.blocks.canvas
    assert canvas.mapTo(panel, canvas.area_of(canvas.view.num_blocks - 1).bottomRight().toPoint()).x() <= panel.width()


def test_the_map_of_the_blocks_stands_above_the_plots_and_in_the_menus(panel_of):
    panel = panel_of(live_store.filled_store())
    assert panel.blocks.isVisible()
    assert panel.blocks.caption.hint == "logical map: echo shows no cells"
    assert panel.blocks.y() < panel.plots[0].y()
    actions = [action.text() for action in panel.tools.table_button.menu().actions()]
    assert actions[0] == panel.blocks.accessibleName()
    assert panel.tools.show_table(panel.blocks).model.table.num_rows == 45
    empty = panel_of(TelemetryStore())
    assert not empty.blocks.isVisible()


def test_every_control_has_an_accessible_name(panel_of):
    panel = panel_of(live_store.filled_store())
    buttons = [button for button in panel.findChildren(QAbstractButton) if button.isVisible()]
    assert len(buttons) == 6
    assert all(button.accessibleName() or button.text() for button in buttons)


def test_the_theme_changes_at_runtime(panel_of, qtbot, timer):
    panel = panel_of(live_store.filled_store())
    light = load_theme("light")
    panel.set_theme(light)
    qtbot.waitUntil(lambda: not timer.is_active, timeout=5000)
    plot = panel.plots[0]
    corner = plot.plot_area().topRight().toPoint()
    assert plot.grab().toImage().pixelColor(corner.x() - 4, corner.y() + 10) == light.color("surface")
