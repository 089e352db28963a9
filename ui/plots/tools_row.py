"""The controls under a group of plots: how much time they show, their tables, and CSV export.

Knows the plots only as names with a table.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QButtonGroup, QHBoxLayout, QMenu, QToolButton, QWidget

from app.i18n import _
from app.telemetry.export import Table
from ui.plots.plot_base import WINDOWS_S, SharedTime
from ui.plots.table_twin import TableTwinDialog, ask_for_file, export_table
from ui.theme import Theme


class Plot(Protocol):
    """What has numbers that can be shown as a table."""

    def accessibleName(self) -> str:
        """Return its name for a menu."""

    def table(self) -> Table:
        """Return the numbers that are drawn."""


class ToolsRow(QWidget):
    """Window choice on the left, table and CSV on the right.

    Signals:
        told(str): a sentence about an export, for whoever shows such sentences.
    """

    told = Signal(str)

    def __init__(self, time: SharedTime, plots: Sequence[Plot], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._time = time
        self._plots = plots
        self._windows = QButtonGroup(self)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        for number, (label, spoken) in enumerate(
            (
                (_("1 min"), _("Show the last minute")),
                (_("10 min"), _("Show the last ten minutes")),
                (_("All"), _("Show everything that is kept")),
            )
        ):
            row.addWidget(self._window_button(number, label, spoken))
        row.addStretch(1)
        self.table_button = self._menu_button(_("Show as table"), self.show_table)
        self.csv_button = self._menu_button(_("CSV"), self.ask_for_csv)
        self.csv_button.setAccessibleName(_("Export CSV"))
        row.addWidget(self.table_button)
        row.addWidget(self.csv_button)
        self._windows.idClicked.connect(self._on_window_clicked)
        time.window_changed.connect(self._on_window_changed)
        self._on_window_changed()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        rules = (
            f"QToolButton {{ color: {theme.roles['muted']}; font-size: 12px; padding: 2px 5px; }}"
            f"QToolButton:checked {{ background: {theme.roles['raised']}; color: {theme.roles['text']}; }}"
        )
        self.setStyleSheet(rules)

    def show_table(self, plot: Plot) -> TableTwinDialog:
        """Open the table of a plot."""
        dialog = TableTwinDialog(plot.table, self.window())
        dialog.show()
        return dialog

    def ask_for_csv(self, plot: Plot) -> None:
        """Ask for a file and write a plot's numbers to it."""
        table = plot.table()

        def write(path: Path) -> None:
            self.told.emit(export_table(table, path))

        ask_for_file(self, table, write)

    def _on_window_clicked(self, number: int) -> None:
        self._time.set_window(WINDOWS_S[number])

    def _on_window_changed(self) -> None:
        self._windows.button(WINDOWS_S.index(self._time.window_s)).setChecked(True)

    def _window_button(self, number: int, label: str, spoken: str) -> QToolButton:
        button = QToolButton(self)
        button.setText(label)
        button.setCheckable(True)
        button.setAccessibleName(spoken)
        button.setToolTip(spoken)
        self._windows.addButton(button, number)
        return button

    def _menu_button(self, label: str, act: Callable[[Plot], object]) -> QToolButton:
        button = QToolButton(self)
        button.setText(label)
        button.setAccessibleName(label)
        button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu = QMenu(button)
        for plot in self._plots:
            menu.addAction(plot.accessibleName()).triggered.connect(partial(self._on_chosen, act, plot))
        button.setMenu(menu)
        return button

    def _on_chosen(self, act: Callable[[Plot], object], plot: Plot) -> None:
        act(plot)
