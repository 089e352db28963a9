"""What a hub has, as a list: a name and a line of facts each, and a last row that asks for more.

Knows no hub: it is given rows that are worded already.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from app.hub.curated import Pick
from app.hub.types import RepoSummary
from app.i18n import _
from ui.models.hub_words import model_title, pick_line, summary_line
from ui.models.model_list_model import FAULTY_ROLE, NAME_MARK_ROLE, SECOND_ROLE
from ui.widgets.labels import plain_tooltip

Index = QModelIndex | QPersistentModelIndex

# The key of the row that asks for more: no repo is called so.
MORE: Final = "more"


@dataclass(frozen=True, slots=True)
class HubListRow:
    """One row.

    Attributes:
        key: the repo, owner/name; MORE for the row that asks for more.
        name: as it is shown.
        second: the line under it.
        mark: what stands beside the name: "gated", "on this machine".
        about: more about it, for the tooltip.
    """

    key: str
    name: str
    second: str
    mark: str = ""
    about: str = ""


def row_of_summary(summary: RepoSummary, now: datetime.datetime, is_here: bool = False) -> HubListRow:
    """Return the row of a repo that a search found."""
    mark = _("here") if is_here else _("gated") if summary.gated else ""
    return HubListRow(summary.repo, model_title(summary.name), summary_line(summary, now), mark, summary.repo)


def row_of_pick(pick: Pick, is_here: bool = False) -> HubListRow:
    """Return the row of a model that was picked for this machine."""
    mark = _("here") if is_here else ""
    return HubListRow(pick.repo, model_title(pick.name), pick_line(pick), mark, pick.reason)


class HubListModel(QAbstractListModel):
    """The rows of a search, or the picks."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[HubListRow] = []

    def set_rows(self, rows: Sequence[HubListRow], has_more: bool = False) -> None:
        """Show exactly these rows, and whether more can be asked for."""
        self.beginResetModel()
        self._rows = [*rows, *([_more_row()] if has_more else [])]
        self.endResetModel()

    def add_rows(self, rows: Sequence[HubListRow], has_more: bool = False) -> None:
        """Show these too, below; those that are there already are not shown twice."""
        known = {row.key for row in self._rows}
        fresh = [row for row in rows if row.key not in known]
        if self._rows and self._rows[-1].key == MORE:
            last = len(self._rows) - 1
            self.beginRemoveRows(QModelIndex(), last, last)
            self._rows.pop()
            self.endRemoveRows()
        added = [*fresh, *([_more_row()] if has_more else [])]
        if added:
            first = len(self._rows)
            self.beginInsertRows(QModelIndex(), first, first + len(added) - 1)
            self._rows += added
            self.endInsertRows()

    def set_more_words(self, words: str) -> None:
        """Say something else on the last row: that more is being asked for; "" says that it can be."""
        if self._rows and self._rows[-1].key == MORE:
            self._rows[-1] = HubListRow(MORE, words or _more_row().name, "")
            index = self.index(len(self._rows) - 1)
            self.dataChanged.emit(index, index)

    def key_at(self, row: int) -> str:
        """Return the key of a row; "" where there is none."""
        return self._rows[row].key if 0 <= row < len(self._rows) else ""

    def row_of(self, key: str) -> int | None:
        """Return the row of a key, or None."""
        return next((row for row, told in enumerate(self._rows) if told.key == key), None)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own default
        """Return the number of rows, the last one included."""
        return 0 if parent.isValid() else len(self._rows)

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return what a row shows for a role."""
        if not index.isValid() or index.row() >= len(self._rows):
            return None
        row = self._rows[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return row.name
        if role == SECOND_ROLE:
            return row.second
        if role == NAME_MARK_ROLE:
            return row.mark
        if role == FAULTY_ROLE:
            return False
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return ", ".join(filter(None, (row.name, row.mark, row.second, row.about)))
        if role == Qt.ItemDataRole.ToolTipRole:
            return plain_tooltip("\n".join(filter(None, (row.name, row.second, row.about))))
        return None


def _more_row() -> HubListRow:
    return HubListRow(MORE, _("More results"), "")
