"""Paints the table of the quantizations on this machine; what it has beyond the other tables is its buttons' width.

Knows the model's roles and nothing else.
"""

from __future__ import annotations

from PySide6.QtGui import QFontMetrics

from ui.models.grouped_table_model import GroupedTableModel
from ui.models.model_table_model import Action
from ui.panels.grouped_table_delegate import BUTTON_PAD_PX, PAD_PX, GroupedTableDelegate
from ui.theme import MUTED_PX, ui_font


class ModelTableDelegate(GroupedTableDelegate):
    """Paints every cell."""

    def action_width(self, model: GroupedTableModel) -> int:
        """Return the width of the longest button, so that the column never moves."""
        metrics = QFontMetrics(ui_font(MUTED_PX))
        widest = max(metrics.horizontalAdvance(action.words()) for action in Action)
        return widest + 2 * (BUTTON_PAD_PX + PAD_PX)
