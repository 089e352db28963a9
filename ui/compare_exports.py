"""What can be taken out of a comparison: all figures as a table, a CSV file of it, a copy of its report.

Knows where the report lies and nothing else of the folder.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal, Slot
from PySide6.QtWidgets import QFileDialog

from app.errors import AppError, Words
from app.i18n import _
from app.telemetry.export import Table
from ui.models.compare_export import results_table
from ui.panels.compare_results import CompareResults
from ui.plots.table_twin import TableTwinDialog, ask_for_file, export_table
from ui.tasks import Tasks


class CompareExports(QObject):
    """Does what the results page asks for.

    Signals:
        told(words, is_error): whether a file was written.
    """

    told = Signal(object, bool)

    def __init__(
        self,
        results: CompareResults,
        report_path: Callable[[str], Path],
        tasks: Tasks,
        parent: QObject | None = None,
    ) -> None:
        super().__init__(parent)
        self._results = results
        self._report_path = report_path
        self._tasks = tasks
        results.table_requested.connect(self.show_table)
        results.csv_requested.connect(self._on_csv)
        results.json_requested.connect(self._on_json)

    @Slot()
    def show_table(self) -> None:
        """Open the table twin of the comparison that is shown; it shows the newest figures when asked for them."""
        if self._results.shown is None:
            return
        comparison_id, last = self._results.shown[0].comparison_id, [self._results.shown]

        def newest() -> Table:
            shown = self._results.shown
            if shown is not None and shown[0].comparison_id == comparison_id:
                last[0] = shown
            return results_table(*last[0])

        dialog = TableTwinDialog(newest, self._results.window())
        dialog.show()

    def export_json(self, target: Path) -> None:
        """Copy the report of the comparison that is shown."""
        if self._results.shown is not None:
            source = self._report_path(self._results.shown[0].comparison_id)
            self._tasks.run(lambda: _copied(source, target), self._on_copied, self._on_failed)

    def export_csv(self, target: Path) -> None:
        """Write the table of the comparison that is shown."""
        if self._results.shown is not None:
            self.told.emit(Words(export_table(results_table(*self._results.shown), target)), False)

    @Slot()
    def _on_csv(self) -> None:
        if self._results.shown is not None:
            ask_for_file(self._results, results_table(*self._results.shown), self.export_csv)

    @Slot()
    def _on_json(self) -> None:
        dialog = QFileDialog(self._results, _("Export the report"), "comparison.json", _("JSON files (*.json)"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setDefaultSuffix("json")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(self._on_json_file)
        dialog.open()

    @Slot(str)
    def _on_json_file(self, name: str) -> None:
        self.export_json(Path(name))

    def _on_copied(self, target: Path) -> None:
        self.told.emit(Words(_("Saved as {name}.").format(name=target.name)), False)

    def _on_failed(self, words: Words) -> None:
        self.told.emit(words, True)


def _copied(source: Path, target: Path) -> Path:
    """Copy a file; raises AppError."""
    try:
        shutil.copyfile(source, target)
    except OSError as error:
        reason = error.strerror or str(error)
        message = _("The file was not written: {reason}.").format(reason=reason)
        raise AppError(Words(message, _("Choose another folder."))) from error
    return target
