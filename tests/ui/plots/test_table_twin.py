"""The table twin: the same numbers in words, by keyboard, and as a file."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtTest import QAbstractItemModelTester, QTest
from PySide6.QtWidgets import QFileDialog, QPushButton

from app.telemetry.export import blocks_table, csv_text, memory_table, speed_table
from app.units import NBSP
from tests.helpers import block_maps, live_store
from ui.plots import table_twin
from ui.plots.table_twin import TableTwinDialog, TableTwinModel


def opened(qtbot, read):
    dialog = TableTwinDialog(read)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose, False)
    qtbot.addWidget(dialog)
    dialog.show()
    return dialog


def test_the_model_keeps_qts_rules(store):
    model = TableTwinModel(memory_table(store))
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    model.set_table(speed_table(store))
    assert model.rowCount() == speed_table(store).num_rows > 50
    assert model.rowCount(model.index(0, 0)) == 0
    assert model.columnCount(model.index(0, 0)) == 0
    tester.deleteLater()


def test_cells_are_worded_and_numbers_stand_at_the_right(store):
    model = TableTwinModel(speed_table(store))
    cells = [model.data(model.index(0, column)) for column in range(4)]
    assert cells == [f"2.00{NBSP}s", "reading", f"160{NBSP}tokens/s", f"1.00{NBSP}s"]
    sides = [model.data(model.index(0, column), Qt.ItemDataRole.TextAlignmentRole) for column in (1, 2)]
    assert sides[0] & Qt.AlignmentFlag.AlignLeft
    assert sides[1] & Qt.AlignmentFlag.AlignRight
    assert model.data(QModelIndex()) is None
    assert model.data(model.index(0, 0), Qt.ItemDataRole.DecorationRole) is None


def test_columns_are_named_and_rows_are_counted(store):
    model = TableTwinModel(speed_table(store))
    assert model.headerData(0, Qt.Orientation.Horizontal) == "seconds since load"
    assert model.headerData(0, Qt.Orientation.Vertical) == "1"
    assert model.headerData(0, Qt.Orientation.Horizontal, Qt.ItemDataRole.DecorationRole) is None


def test_the_keyboard_moves_in_the_table_and_tab_leaves_it(qtbot, store):
    dialog = opened(qtbot, lambda: memory_table(store))
    qtbot.waitUntil(dialog.isVisible, timeout=5000)
    dialog.view.setCurrentIndex(dialog.model.index(0, 0))
    QTest.keyClick(dialog.view, Qt.Key.Key_Down)
    QTest.keyClick(dialog.view, Qt.Key.Key_Right)
    assert (dialog.view.currentIndex().row(), dialog.view.currentIndex().column()) == (1, 1)
    assert not dialog.view.tabKeyNavigation()
    assert all(button.text() for button in dialog.findChildren(QPushButton))
    assert dialog.view.accessibleName() == "Memory over time by owner"


def test_the_newest_numbers_are_read_when_asked_for(qtbot, store):
    dialog = opened(qtbot, lambda: memory_table(store))
    rows = dialog.model.rowCount()
    assert dialog.status_text() == f"{rows} readings"
    live_store.memory(store, 11.0, 412)
    assert dialog.model.rowCount() == rows
    dialog._on_newest()
    assert dialog.model.rowCount() == rows + 1
    assert dialog.status_text() == f"{rows + 1} readings"


def test_the_file_holds_the_numbers_shown(qtbot, store, tmp_path):
    dialog = opened(qtbot, lambda: memory_table(store))
    path = tmp_path / "memory.csv"
    dialog.export_to(path)
    assert path.read_text(encoding="utf-8") == csv_text(dialog.model.table)
    assert dialog.status_text() == "Saved as memory.csv."


def test_a_file_that_cannot_be_written_is_said_in_words(qtbot, store, tmp_path):
    dialog = opened(qtbot, lambda: memory_table(store))
    dialog.export_to(tmp_path / "missing" / "memory.csv")
    assert dialog.status_text() == "The file was not written: No such file or directory. Choose another folder."


def test_export_asks_for_a_file_without_stopping_the_window(qtbot, store, tmp_path, monkeypatch):
    dialog = opened(qtbot, lambda: memory_table(store))
    asked = []

    def open_unseen(dialog):
        asked.append(dialog)

    monkeypatch.setattr(QFileDialog, "open", open_unseen)
    dialog._on_export()
    path = tmp_path / "chosen.csv"
    asked[0].fileSelected.emit(str(path))
    assert path.is_file()
    assert asked[0].defaultSuffix() == "csv"


def test_the_reason_is_told_even_without_the_systems_words(store, monkeypatch):
    def refuse(table, path):
        raise OSError("odd")

    monkeypatch.setattr(table_twin, "write_csv", refuse)
    sentence = table_twin.export_table(memory_table(store), Path("a.csv"))
    assert sentence == "The file was not written: odd. Choose another folder."


def test_rows_of_one_moment_are_not_called_readings_and_stay_at_the_top(qtbot):
    dialog = opened(qtbot, lambda: blocks_table(block_maps.store_with(block_maps.large_map(512), 512)))
    assert dialog.status_text() == "512 rows"
    buttons = {button.text(): button for button in dialog.findChildren(QPushButton)}
    buttons["Newest numbers"].click()
    assert dialog.view.verticalScrollBar().value() == 0
