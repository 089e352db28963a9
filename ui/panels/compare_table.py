"""The table of what a comparison found, a row for each run.

Knows no folder.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QWidget

from app.i18n import _
from ui.models.compare_table_model import CompareTableModel, UseAction
from ui.models.grouped_table_model import GroupedTableModel
from ui.panels.grouped_table import GroupedTable
from ui.panels.grouped_table_delegate import BUTTON_PAD_PX, PAD_PX, GroupedTableDelegate
from ui.theme import MUTED_PX, Theme, ui_font

# The cells of the first column stand this far in; the heading stands in line with them.
_FIRST_PAD_PX: Final = 20


class CompareTable(GroupedTable):
    """The view of a CompareTableModel.

    Attributes:
        runs: its model.
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        runs = CompareTableModel(theme)
        super().__init__(runs, CompareTableDelegate(theme), parent)
        self.runs = runs
        self.setAccessibleName(_("Results"))
        indent_header(self)


class CompareTableDelegate(GroupedTableDelegate):
    """Paints every cell."""

    def action_width(self, model: GroupedTableModel) -> int:
        """Return the width of the button, so that the column never moves."""
        return QFontMetrics(ui_font(MUTED_PX)).horizontalAdvance(UseAction.USE.words()) + 2 * (
            2 * BUTTON_PAD_PX + PAD_PX
        )


def indent_header(table: GroupedTable, first_pad_px: int = _FIRST_PAD_PX) -> None:
    """Put the first heading in line with the cells under it."""
    table.horizontalHeader().setStyleSheet(
        f"QHeaderView::section {{ padding: 6px {PAD_PX}px; }}"
        f"QHeaderView::section:first {{ padding-left: {first_pad_px}px; }}"
    )
