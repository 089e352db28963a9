"""Who offers quantizations of one model, side by side. Knows no hub: it is given values."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any, Final

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from app.errors import one_line
from app.hub.types import Publisher
from app.i18n import _
from ui.models.grouped_table_model import alignment
from ui.models.hub_columns import HubColumn
from ui.models.hub_words import publisher_cells
from ui.widgets.labels import plain_tooltip

Index = QModelIndex | QPersistentModelIndex


def _column(title: Callable[[], str], about: Callable[[], str], is_number: bool = False) -> HubColumn:
    return HubColumn(title, lambda _facts: "", about, is_number)


COLUMNS: Final = (
    _column(lambda: _("publisher"), lambda: _("Who offers these files.")),
    _column(
        lambda: _("importance matrix"),
        lambda: _("Whether the quantizations were made with one: it keeps more of the model in few bits."),
    ),
    _column(lambda: _("changed"), lambda: _("When the files were changed last."), is_number=True),
    _column(lambda: _("downloads"), lambda: _("In the last month, as the hub counts them."), is_number=True),
    _column(lambda: _("quantizations"), lambda: _("What there is to choose from.")),
)


class HubPublishersModel(QAbstractTableModel):
    """The publishers, the most downloaded first.

    Attributes:
        _shown: the repo that is open.
    """

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._publishers: list[Publisher] = []
        self._shown = ""
        self._now = datetime.datetime.now(datetime.UTC)

    def set_publishers(self, publishers: Sequence[Publisher], shown: str, now: datetime.datetime) -> None:
        """Show exactly these.

        Args:
            publishers: of one model.
            shown: the repo that is open; it is marked.
            now: what ages are counted from.
        """
        self.beginResetModel()
        self._publishers, self._shown, self._now = list(publishers), shown, now
        self.endResetModel()

    def repo_at(self, row: int) -> str:
        """Return the repo of a row; "" where there is none."""
        return self._publishers[row].repo if 0 <= row < len(self._publishers) else ""

    def shown_row(self) -> int | None:
        """Return the row of the repo that is open, or None."""
        return next((row for row, one in enumerate(self._publishers) if one.repo == self._shown), None)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own default
        """Return the number of publishers."""
        return 0 if parent.isValid() else len(self._publishers)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own default
        """Return the number of columns."""
        return 0 if parent.isValid() else len(COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a column's name, its side and what it says."""
        if orientation is not Qt.Orientation.Horizontal:
            return None
        column = COLUMNS[section]
        if role == Qt.ItemDataRole.DisplayRole:
            return column.title()
        if role == Qt.ItemDataRole.ToolTipRole:
            return column.about()
        return alignment(column) if role == Qt.ItemDataRole.TextAlignmentRole else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return what a cell shows for a role."""
        if not index.isValid() or index.row() >= len(self._publishers):
            return None
        publisher = self._publishers[index.row()]
        if role == Qt.ItemDataRole.TextAlignmentRole:
            return alignment(COLUMNS[index.column()])
        if role == Qt.ItemDataRole.ToolTipRole:
            names = ", ".join(one_line(name, 24) for name in publisher.quantizations)
            return plain_tooltip(f"{one_line(publisher.repo, 120)}\n{names}".strip())
        if role not in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return None
        text = publisher_cells(publisher, self._now)[index.column()]
        if index.column() == 0 and publisher.repo == self._shown:
            return _("{name} (shown)").format(name=text)
        if role == Qt.ItemDataRole.AccessibleTextRole and index.column():
            return f"{COLUMNS[index.column()].title()} {text}"
        return text
