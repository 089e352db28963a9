"""The last column: words, a bar and a button at the right, in any width."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QRect
from PySide6.QtGui import QFontMetrics

from app.downloads.types import DownloadState
from tests.helpers.hub_values import detail, download, fits
from ui.models.hub_columns import ACTION, HERE
from ui.panels.hub_table import HubTable
from ui.theme import load_theme, ui_font

STATE = DownloadState
THEME = load_theme("dark")


@pytest.fixture
def table(qtbot):
    made = HubTable(THEME)
    qtbot.addWidget(made)
    repo = detail()
    made.quantizations.set_rows(repo.rows, fits(repo), {})
    made.resize(1200, 400)
    made.show()
    return made


def index_of(table, key, column=ACTION):
    return table.quantizations.index(table.quantizations.row_of(key), column)


def colours(table, rect):
    image = table.viewport().grab(rect).toImage()
    return {image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height())}


def beside(table, key):
    """Return what is left of the button."""
    cell, button = table.visualRect(index_of(table, key)), table.button_rect(index_of(table, key))
    return QRect(cell.left(), cell.top(), button.left() - cell.left() - 2, cell.height() - 2)


def test_all_usual_buttons_stand_in_a_column(table):
    states = {"Q2_K": STATE.RUNNING, "Q3_K_M": STATE.PAUSED, "Q5_K_M": STATE.QUEUED}
    table.quantizations.set_downloads({key: download(state, key) for key, state in states.items()})
    places = {table.button_rect(index_of(table, key)).left() for key in (*states, "Q4_K_M")}
    assert len(places) == 1
    table.quantizations.set_downloads({"Q2_K": download(STATE.FAILED, "Q2_K", action="choose")})
    assert table.button_rect(index_of(table, "Q2_K")).left() < places.pop()


def test_a_bar_moves_in_the_accent_and_rests_in_grey(table):
    accent, rest = THEME.roles["accent"], THEME.roles["rest"]
    assert not {accent, rest} & colours(table, beside(table, "Q4_K_M"))
    table.quantizations.set_downloads({"Q4_K_M": download(STATE.RUNNING)})
    assert accent in colours(table, beside(table, "Q4_K_M"))
    table.quantizations.set_downloads({"Q4_K_M": download(STATE.PAUSED)})
    assert rest in colours(table, beside(table, "Q4_K_M"))
    table.quantizations.set_downloads({"Q4_K_M": download(STATE.VERIFYING)})
    assert accent in colours(table, table.visualRect(index_of(table, "Q4_K_M")))


def test_what_is_here_has_words_and_no_bar(table):
    table.quantizations.set_here(frozenset({"Q4_K_M"}))
    shown = colours(table, beside(table, "Q4_K_M"))
    assert THEME.roles["muted"] in shown
    assert THEME.roles["border"] not in shown


def test_where_there_is_little_room_the_fit_is_said_up_to_a_whole_piece(table):
    delegate, model = table._hub_delegate, table.quantizations
    wide = delegate.column_width(model, HERE)
    delegate.is_compact = True
    narrow = delegate.column_width(model, HERE)
    assert narrow < wide
    metrics = QFontMetrics(ui_font())
    assert delegate.shown_text(index_of(table, "Q4_K_M", HERE), metrics, narrow - 16) == "room for 54k"
    assert delegate.shown_text(index_of(table, "Q4_K_M", HERE), metrics, 500) == "room for 54k · q8 KV 101k"
    assert delegate.shown_text(index_of(table, "F16", HERE), metrics, narrow - 16).endswith("…")
    assert delegate.action_width(model) == delegate.most_action_width(model)
