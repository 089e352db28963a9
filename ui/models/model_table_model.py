"""The library's model files as a table: name, quantization, size, context, and where each lies.

Knows no library: it is given the entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from app.i18n import _
from app.models.library import ModelEntry
from app.units import NBSP, bytes_text, count_text
from ui.theme import Theme
from ui.widgets.labels import plain_tooltip

Index = QModelIndex | QPersistentModelIndex


@dataclass(frozen=True, slots=True)
class _Column:
    """One column: its heading, what it shows, whether it holds numbers, and why a heading needs explaining."""

    title: Callable[[], str]
    text: Callable[[ModelEntry], str]
    is_number: bool = False
    about: Callable[[], str] = lambda: ""


def _origin_words(entry: ModelEntry) -> str:
    words = {"starter": _("comes with Cutaway"), "folder": _("models folder"), "imported": _("added by you")}
    return _("cannot be used") if entry.fault else words[entry.origin]


COLUMNS: tuple[_Column, ...] = (
    _Column(lambda: _("Model"), lambda entry: entry.name),
    _Column(lambda: _("Quantization"), lambda entry: entry.quantization or "–"),
    _Column(
        lambda: _("Size"),
        lambda entry: bytes_text(entry.size_bytes) if entry.size_bytes else "–",
        is_number=True,
        about=lambda: _("The size of the file"),
    ),
    _Column(
        lambda: _("Context"),
        lambda entry: f"{count_text(entry.context_tokens)}{NBSP}{_('tokens')}" if entry.context_tokens else "–",
        is_number=True,
        about=lambda: _("How much the model was trained to see at once, from the file's header"),
    ),
    _Column(lambda: _("Where"), _origin_words),
)


class ModelTableModel(QAbstractTableModel):
    """The entries of the library, one a row.

    Attributes:
        _entries: in the order of the rows.
        _theme: gives the colour of what cannot be used.
    """

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._entries: list[ModelEntry] = []
        self._theme = theme

    def set_entries(self, entries: Iterable[ModelEntry]) -> None:
        """Show exactly these entries, by name."""
        self.beginResetModel()
        self._entries = sorted(entries, key=lambda entry: (entry.name.casefold(), entry.size_bytes, entry.key))
        self.endResetModel()

    def set_theme(self, theme: Theme) -> None:
        """Take over a theme's colours."""
        self._theme = theme
        if self._entries:
            self.dataChanged.emit(self.index(0, 0), self.index(len(self._entries) - 1, len(COLUMNS) - 1))

    def entry_at(self, row: int) -> ModelEntry:
        """Return the entry of a row."""
        return self._entries[row]

    def row_of(self, key: str) -> int | None:
        """Return the row of an entry, or None."""
        return next((row for row, entry in enumerate(self._entries) if entry.key == key), None)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own default
        """Return the number of entries."""
        return 0 if parent.isValid() else len(self._entries)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008 - Qt's own default
        """Return the number of columns."""
        return 0 if parent.isValid() else len(COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a heading, its place and what it means."""
        if orientation is not Qt.Orientation.Horizontal:
            return None
        column = COLUMNS[section]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return column.title()
            case Qt.ItemDataRole.ToolTipRole:
                return column.about() or None
            case Qt.ItemDataRole.TextAlignmentRole:
                return _alignment(column)
            case _:
                return None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return what a cell shows for a role."""
        if not index.isValid() or index.row() >= len(self._entries):
            return None
        entry, column = self._entries[index.row()], COLUMNS[index.column()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return column.text(entry)
            case Qt.ItemDataRole.TextAlignmentRole:
                return _alignment(column)
            case Qt.ItemDataRole.ToolTipRole:
                return plain_tooltip(entry.fault or str(entry.path))
            case Qt.ItemDataRole.ForegroundRole:
                return self._theme.color("limit" if column is COLUMNS[-1] else "muted") if entry.fault else None
            case _:
                return None


def _alignment(column: _Column) -> Qt.AlignmentFlag:
    side = Qt.AlignmentFlag.AlignRight if column.is_number else Qt.AlignmentFlag.AlignLeft
    return side | Qt.AlignmentFlag.AlignVCenter
