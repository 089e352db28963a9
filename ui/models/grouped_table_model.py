"""What every table of quantizations has in common: rows under headings, columns that give way, a button at the end.

Knows not what the rows are: a subclass says what a cell holds.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from app.i18n import _
from app.models.quantization import group_title
from ui.theme import Theme

Index = QModelIndex | QPersistentModelIndex

# What the view asks for besides Qt's own roles.
MARK_ROLE: Final = int(Qt.ItemDataRole.UserRole)  # words beside a quantization: "recommended", "loaded"
ACTION_ROLE: Final = MARK_ROLE + 1  # a RowAction
NOTE_ROLE: Final = MARK_ROLE + 2  # a sign beside a number that its tooltip explains
IS_RECOMMENDED_ROLE: Final = MARK_ROLE + 3  # whether the mark is the recommendation

# The first column is the quantization, the last one the button.
QUANTIZATION: Final = 0


class RowAction(Protocol):
    """What the button of a row does."""

    def words(self) -> str:
        """Return what stands on the button; "" for none."""

    @property
    def can_press(self) -> bool:
        """Whether it is a button at all, and not only words."""


class Group(enum.Enum):
    """A heading among the rows, in their order."""

    SMALL = "small"
    BALANCED = "balanced"
    LARGE = "large"
    OTHER = "other"  # nobody knows how many bits a weight has
    FAULTY = "faulty"

    def words(self) -> str:
        """Return the heading."""
        match self.value:
            case "small" | "balanced" | "large" as group:
                return group_title(group)
            case "other":
                return _("Other")
            case _:
                return _("Cannot be used")


class ColumnFacts(Protocol):
    """What the view and the header need of a column.

    Attributes:
        title: its heading.
        about: how its figures were got.
        is_number: whether it stands at the right.
        rank: the columns of the highest rank go first where there is no room; 0 stays.
        has_notes: whether its cells may have a sign beside them.
    """

    @property
    def title(self) -> Callable[[], str]:
        """Its heading."""

    @property
    def about(self) -> Callable[[], str]:
        """How its figures were got."""

    @property
    def is_number(self) -> bool:
        """Whether it stands at the right."""

    @property
    def rank(self) -> int:
        """When it goes."""

    @property
    def has_notes(self) -> bool:
        """Whether its cells may have a sign beside them."""


@dataclass(frozen=True, slots=True)
class _Row:
    """A heading (no key) or a row."""

    group: Group
    key: str = ""


class GroupedTableModel(QAbstractTableModel):
    """Rows under their headings.

    Attributes:
        columns: from left to right.
        theme: the colours.
        _rows: headings and keys from top to bottom.
    """

    def __init__(self, columns: Sequence[ColumnFacts], theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.columns = columns
        self.theme = theme
        self._rows: list[_Row] = []

    # ------------------------------------------------------------------------------ for the subclass

    def cell_data(self, key: str, column: int, role: int) -> Any:
        """Return what a cell shows for a role."""
        raise NotImplementedError

    def action_of_key(self, key: str) -> RowAction | None:
        """Return what the button of a row does."""
        raise NotImplementedError

    def _show_rows(self, rows: Iterable[tuple[Group, str]]) -> None:
        """Show these rows, each under its heading; the order of those under one heading is kept."""
        by_group: dict[Group, list[str]] = {}
        for group, key in rows:
            by_group.setdefault(group, []).append(key)
        shown: list[_Row] = []
        for group in Group:
            if group in by_group:
                shown += [_Row(group), *(_Row(group, key) for key in by_group[group])]
        self._set_rows(shown)

    def _show_plain_rows(self, keys: Iterable[str]) -> None:
        """Show these rows without a heading: they are all of one kind."""
        self._set_rows([_Row(Group.OTHER, key) for key in keys])

    def _set_rows(self, rows: list[_Row]) -> None:
        self.beginResetModel()
        self._rows = rows
        self.endResetModel()

    def _tell_all(self) -> None:
        if self._rows:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self._rows) - 1, len(self.columns) - 1))

    def _tell_row(self, key: str) -> None:
        row = self.row_of(key)
        if row is not None:
            self.dataChanged.emit(self.index(row, 0), self.index(row, len(self.columns) - 1))

    # ------------------------------------------------------------------------------------ for the view

    @property
    def action_column(self) -> int:
        """The column of the buttons."""
        return len(self.columns) - 1

    def set_theme(self, theme: Theme) -> None:
        """Take over a theme's colours."""
        self.theme = theme
        self._tell_all()

    def key_at(self, row: int) -> str:
        """Return the key of a row; "" for a heading."""
        return self._rows[row].key if 0 <= row < len(self._rows) else ""

    def row_of(self, key: str) -> int | None:
        """Return the row of a key, or None."""
        return next((row for row, told in enumerate(self._rows) if told.key and told.key == key), None)

    def keys(self) -> list[str]:
        """Return the keys from top to bottom."""
        return [told.key for told in self._rows if told.key]

    def heading_rows(self) -> list[int]:
        """Return the rows that are headings."""
        return [row for row, told in enumerate(self._rows) if not told.key]

    def can_press(self, row: int) -> bool:
        """Return whether a row has a button that does something."""
        key = self.key_at(row)
        action = self.action_of_key(key) if key else None
        return action is not None and action.can_press

    # ---------------------------------------------------------------------------------------- Qt's own

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own default
        """Return the number of headings and rows."""
        return 0 if parent.isValid() else len(self._rows)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own default
        """Return the number of columns."""
        return 0 if parent.isValid() else len(self.columns)

    def flags(self, index: Index) -> Qt.ItemFlag:
        """Return that rows can be chosen and headings cannot."""
        if not index.isValid() or not self.key_at(index.row()):
            return Qt.ItemFlag.NoItemFlags
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | Qt.ItemFlag.ItemNeverHasChildren

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a column's name, its side and how its figures were got."""
        if orientation is not Qt.Orientation.Horizontal:
            return None
        column = self.columns[section]
        if role == Qt.ItemDataRole.DisplayRole:
            return column.title()
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return column.title() or _("Action")
        if role == Qt.ItemDataRole.ToolTipRole:
            return column.about() or None
        return alignment(column) if role == Qt.ItemDataRole.TextAlignmentRole else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return what a cell shows for a role."""
        if not index.isValid() or index.row() >= len(self._rows):
            return None
        row = self._rows[index.row()]
        if not row.key:
            is_words = role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole)
            return row.group.words() if is_words and index.column() == 0 else None
        return self.cell_data(row.key, index.column(), role)


def alignment(column: ColumnFacts) -> int:
    """Return the side on which a column's words stand."""
    side = Qt.AlignmentFlag.AlignRight if column.is_number else Qt.AlignmentFlag.AlignLeft
    return int(side | Qt.AlignmentFlag.AlignVCenter)
