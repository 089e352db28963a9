"""The table of a repo by keys, and that nothing counts or repaints that nobody sees."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtCore import Qt

from app.downloads.types import DownloadState
from tests.helpers.hub_values import detail, download, fits, llama_3, read_row
from ui.models.hub_choice import published_figures
from ui.models.hub_columns import HERE, KL, SIZE, WORDS
from ui.panels.hub_table import HubTable
from ui.theme import load_theme

STATE = DownloadState


@pytest.fixture
def table(qtbot):
    made = HubTable(load_theme("dark"))
    qtbot.addWidget(made)
    repo = detail()
    made.quantizations.set_rows(repo.rows, fits(repo), {})
    made.resize(1100, 400)
    made.show()
    made.choose("Q4_K_M")
    return made


def press(qtbot, table, key, signal):
    with qtbot.waitSignal(signal) as caught:
        qtbot.keyClick(table, key)
    return caught.args


def test_enter_presses_space_pauses_delete_cancels(table, qtbot):
    assert press(qtbot, table, Qt.Key.Key_Return, table.action_requested) == ["Q4_K_M"]
    assert press(qtbot, table, Qt.Key.Key_Space, table.action_requested) == ["Q4_K_M"]
    for state in (STATE.RUNNING, STATE.QUEUED, STATE.WAITING, STATE.PAUSED):
        table.quantizations.set_downloads({"Q4_K_M": download(state)})
        assert press(qtbot, table, Qt.Key.Key_Space, table.pause_requested) == ["Q4_K_M"]
    assert press(qtbot, table, Qt.Key.Key_Delete, table.delete_requested) == ["Q4_K_M"]
    table.quantizations.set_downloads({"Q4_K_M": download(STATE.VERIFYING)})
    with qtbot.assertNotEmitted(table.pause_requested), qtbot.assertNotEmitted(table.action_requested):
        qtbot.keyClick(table, Qt.Key.Key_Space)


def test_a_click_on_the_button_presses_it(table, qtbot):
    row = table.quantizations.row_of("Q6_K")
    place = table.button_rect(table.quantizations.index(row, table.quantizations.action_column)).center()
    with qtbot.waitSignal(table.action_requested) as caught:
        qtbot.mouseClick(table.viewport(), Qt.MouseButton.LeftButton, pos=place)
    assert caught.args == ["Q6_K"]


def test_the_chosen_row_stays_chosen_when_headers_move_it(table):
    table.choose("Q2_K")
    rows = list(detail(is_read=False).rows)
    table.quantizations.set_rows(rows, {}, {})
    rows[0] = read_row(rows[0], 5.2)
    table.quantizations.set_rows(rows, {}, {})
    assert table.chosen_key == "Q2_K"
    table.quantizations.set_rows([msgspec.structs.replace(rows[3], key="other")], {}, {})
    assert table.chosen_key == ""


def test_columns_give_way_in_the_order_in_which_they_are_needed(table):
    repo = llama_3()
    table.quantizations.set_rows(repo.rows, fits(repo), published_figures(repo))
    table.resize(1300, 400)
    assert not any(table.isColumnHidden(column) for column in range(8))
    table.resize(560, 400)
    assert table.isColumnHidden(WORDS)
    assert table.isColumnHidden(KL)
    assert not table.isColumnHidden(SIZE)
    assert not table.isColumnHidden(HERE)
    assert table._hub_delegate.is_compact


def test_it_counts_down_only_while_it_is_seen(table):
    assert table._tick.isActive()
    table.hide()
    assert not table._tick.isActive()
