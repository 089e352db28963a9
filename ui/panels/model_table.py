"""The table of a model's quantizations on this machine.

Knows no library.
"""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app.models.entry import ModelEntry
from ui.models.model_table_model import ModelTableModel
from ui.panels.grouped_table import GroupedTable
from ui.panels.model_table_delegate import ModelTableDelegate
from ui.theme import Theme


class ModelTable(GroupedTable):
    """The view of a ModelTableModel.

    Attributes:
        quantizations: its model.
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        quantizations = ModelTableModel(theme)
        super().__init__(quantizations, ModelTableDelegate(theme), parent)
        self.quantizations = quantizations

    @property
    def chosen_entry(self) -> ModelEntry | None:
        """The entry of the chosen row, or None."""
        rows = self.selectionModel().selectedRows()
        return self.quantizations.entry_at(rows[0].row()) if rows else None
