"""Inspect: the plots at full size, estimates, the log's tail, and its empty state."""

from __future__ import annotations

import pytest

from app.telemetry.store import TelemetryStore
from tests.helpers import block_maps, live_store
from ui.panels.inspect_panel import LOG_LINES, InspectPanel
from ui.plots.estimate_table import EstimateRow
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
        panel = InspectPanel(store, timer)
        qtbot.addWidget(panel)
        panel.set_theme(load_theme("dark"))
        panel.resize(1100, 800)
        panel.show()
        qtbot.waitUntil(lambda: not timer.is_active, timeout=5000)
        return panel

    return build


def test_the_empty_state_goes_with_the_first_reading(panel_of, timer, qtbot):
    store = TelemetryStore()
    panel = panel_of(store)
    assert not panel.plots[0].isVisible()
    live_store.memory(store, 0.0, 40)
    timer.wake()
    qtbot.waitUntil(panel.plots[0].isVisible, timeout=5000)


def test_all_three_plots_are_drawn(panel_of):
    panel = panel_of(live_store.filled_store())
    assert all(plot.isVisible() and not plot.has_moved() for plot in panel.plots)
    assert panel.plots[0].legend.values["weights"] == "95.0"
    assert panel.plots[0].width() > 400


def test_the_map_of_the_blocks_is_drawn_at_full_size(panel_of):
    panel = panel_of(block_maps.store_with(block_maps.large_map(512), 512))
    assert panel.blocks.isVisible()
    assert panel.blocks.width() > 400
    assert panel.blocks.canvas.grid.per_cell == 1
    assert panel.tools.table_button.menu().actions()[-1].text() == panel.blocks.accessibleName()


def test_estimates_replace_the_sentence_that_there_are_none(panel_of):
    panel = panel_of(live_store.filled_store())
    assert not panel.estimate.isVisible()
    panel.set_estimate([EstimateRow("weights", 100, 101)])
    assert panel.estimate.isVisible()
    assert panel.estimate.estimates.rowCount() == 1
    panel.set_estimate([])
    assert not panel.estimate.isVisible()


def test_log_lines_gather_until_the_next_redraw(panel_of, timer, qtbot):
    panel = panel_of(live_store.filled_store())
    panel.append_log("one\ntwo\n")
    panel.append_log("three")
    assert panel.log_text() == ""
    qtbot.waitUntil(lambda: panel.log_text() == "one\ntwo\nthree", timeout=5000)


def test_only_the_last_lines_of_a_flood_are_kept(panel_of, timer, qtbot):
    panel = panel_of(live_store.filled_store())
    for number in range(5000):
        panel.append_log(f"line {number}")
    qtbot.waitUntil(lambda: not timer.is_active, timeout=5000)
    lines = panel.log_text().split("\n")
    assert len(lines) == LOG_LINES
    assert (lines[0], lines[-1]) == ("line 4500", "line 4999")


def test_control_characters_of_a_log_are_shown_not_obeyed(panel_of, timer, qtbot):
    panel = panel_of(live_store.filled_store())
    panel.append_log("\x1b[31mred <b>bold</b>")
    qtbot.waitUntil(lambda: not timer.is_active, timeout=5000)
    assert panel.log_text() == "\u241b[31mred <b>bold</b>"


def test_the_facts_are_plain_text(panel_of):
    panel = panel_of(TelemetryStore())
    panel.set_facts("<b>model</b> · CPU")
    assert panel._facts.text() == "<b>model</b> · CPU"
