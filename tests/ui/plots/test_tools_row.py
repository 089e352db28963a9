"""Window choice, tables and CSV under the plots."""

from __future__ import annotations

import math

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QToolButton

from ui.plots.kv_plot import KvPlot
from ui.plots.memory_plot import MemoryPlot
from ui.plots.tools_row import ToolsRow
from ui.theme import load_theme


@pytest.fixture
def tools(store, shown, time, qtbot):
    plots = (shown(MemoryPlot, store), shown(KvPlot, store))
    tools = ToolsRow(time, plots)
    qtbot.addWidget(tools)
    tools.set_theme(load_theme("dark"))
    return tools


def checked(tools):
    return [button.text() for button in tools.findChildren(QToolButton) if button.isChecked()]


def test_the_window_is_chosen_by_a_button(tools, time):
    assert checked(tools) == ["1 min"]
    buttons = {button.text(): button for button in tools.findChildren(QToolButton)}
    buttons["10 min"].click()
    assert time.window_s == 600
    buttons["All"].click()
    assert math.isinf(time.window_s)
    assert checked(tools) == ["All"]


def test_the_button_follows_a_window_chosen_elsewhere(tools, time):
    time.set_window(600.0)
    assert checked(tools) == ["10 min"]


def test_every_control_has_a_name_for_a_screen_reader(tools):
    assert all(button.accessibleName() for button in tools.findChildren(QToolButton))
    assert tools.csv_button.accessibleName() == "Export CSV"


def test_every_plot_has_its_table(tools, qtbot):
    names = [action.text() for action in tools.table_button.menu().actions()]
    assert names == ["Memory of the engine over time, by owner", "KV cache over time: used, predicted and reserved"]
    dialog = tools.show_table(tools._plots[1])
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    qtbot.addWidget(dialog)
    assert dialog.windowTitle() == "KV cache over time"
    assert dialog.isVisible()


def test_a_menu_entry_exports_its_plot(tools, qtbot, tmp_path, monkeypatch):
    asked = []

    def open_unseen(dialog):
        asked.append(dialog)

    monkeypatch.setattr(QFileDialog, "open", open_unseen)
    tools.csv_button.menu().actions()[0].trigger()
    with qtbot.waitSignal(tools.told) as told:
        asked[0].fileSelected.emit(str(tmp_path / "memory.csv"))
    assert told.args == ["Saved as memory.csv."]
    assert (tmp_path / "memory.csv").read_text().startswith("time_s,measured_bytes")
