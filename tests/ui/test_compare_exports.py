"""What leaves a comparison: a copy of its report, a CSV file, a table that stays up to date."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QFileDialog

from tests.helpers import compare_values as values
from ui.compare_exports import CompareExports
from ui.panels.compare_results import CompareResults
from ui.plots.table_twin import TableTwinDialog
from ui.tasks import SynchronousTasks
from ui.theme import load_theme


@pytest.fixture
def results(qtbot):
    made = CompareResults(load_theme("dark"))
    qtbot.addWidget(made)
    made.show()
    return made


@pytest.fixture
def exports(results, tmp_path):
    return CompareExports(results, lambda name: tmp_path / f"{name}.json", SynchronousTasks())


def show(results, **fields):
    plan = values.plan()
    results.show_result(plan, values.result(plan, **fields), frozenset())


def test_the_report_is_copied(exports, results, tmp_path, qtbot):
    show(results)
    (tmp_path / "2026-11-30-llama.json").write_text("{}", encoding="utf-8")
    with qtbot.waitSignal(exports.told) as told:
        exports.export_json(tmp_path / "mine.json")
    assert (told.args[0].message, told.args[1]) == ("Saved as mine.json.", False)
    assert (tmp_path / "mine.json").read_text(encoding="utf-8") == "{}"


def test_a_copy_that_fails_is_said(exports, results, tmp_path, qtbot):
    show(results)
    with qtbot.waitSignal(exports.told) as told:
        exports.export_json(tmp_path / "no such folder" / "mine.json")
    assert told.args[0].message.startswith("The file was not written:")
    assert told.args[1] is True


def test_the_table_is_written_as_csv(exports, results, tmp_path, qtbot):
    show(results)
    with qtbot.waitSignal(exports.told) as told:
        exports.export_csv(tmp_path / "table.csv")
    assert told.args[0].message == "Saved as table.csv."
    assert (tmp_path / "table.csv").read_text(encoding="utf-8").startswith("run,quantization,kv_type,bits_per_weight")


def test_without_a_comparison_nothing_happens(exports, tmp_path, qtbot):
    with qtbot.assertNotEmitted(exports.told):
        exports.export_json(tmp_path / "x.json")
        exports.export_csv(tmp_path / "x.csv")
        exports.show_table()
    assert list(tmp_path.iterdir()) == []


def test_the_table_twin_shows_the_newest_figures(exports, results, qtbot):
    show(results, runs=(values.run("F16"),))
    results.table_requested.emit()
    dialog = results.window().findChild(TableTwinDialog)
    assert dialog.model.table.columns[-1].cell_text(1) == "not run yet"
    show(results)
    dialog._on_newest()
    assert dialog.model.table.columns[-1].cell_text(1) == "indistinguishable"
    dialog.close()


def test_both_dialogs_open_without_stopping_the_window(exports, results, qtbot):
    show(results)
    for signal in (results.json_requested, results.csv_requested):
        signal.emit()
        dialog = next(one for one in results.findChildren(QFileDialog) if one.isVisible())
        dialog.reject()
