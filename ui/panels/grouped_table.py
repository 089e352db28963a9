"""A table of quantizations: headings among the rows, a painted button in each, all of it by keyboard.

There is no widget per row: the delegate paints, the view turns clicks and keys into wishes. Columns that have no room
are hidden, the least needed first; what they say is in the tooltips and under the table. Knows not what the rows are.
"""

from __future__ import annotations

from typing import Final

from PySide6.QtCore import (
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QKeyEvent, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractItemView, QHeaderView, QSizePolicy, QTableView, QWidget

from app.i18n import _
from ui.models.grouped_table_model import GroupedTableModel
from ui.panels.grouped_table_delegate import PAD_PX, GroupedTableDelegate
from ui.theme import Theme

Index = QModelIndex | QPersistentModelIndex

_ROW_PX: Final = 32
_HEADER_PX: Final = 34
# A table longer than this scrolls inside, so that what stands under it is still found.
_MOST_ROWS_SHOWN: Final = 16
_PLAIN_KEYS: Final = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)


class GroupedTable(QTableView):
    """The view of a GroupedTableModel.

    Attributes:
        _rows: its model.
        _delegate: paints it.

    Signals:
        entry_chosen(key): another row was chosen.
        action_requested(key): the button of a row was pressed, by mouse or key.
        delete_requested(key): the Delete key was pressed on a row.
    """

    entry_chosen = Signal(object)
    action_requested = Signal(object)
    delete_requested = Signal(object)

    def __init__(self, rows: GroupedTableModel, delegate: GroupedTableDelegate, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._rows = rows
        self._delegate = delegate
        rows.setParent(self)
        delegate.setParent(self)
        self._is_choosing = False
        self._build()
        self.selectionModel().selectionChanged.connect(self._on_selection_changed)
        rows.modelReset.connect(self._on_reset)
        rows.dataChanged.connect(self._on_data_changed)

    @property
    def chosen_key(self) -> str:
        """The key of the chosen row; "" for none."""
        rows = self.selectionModel().selectedRows()
        return self._rows.key_at(rows[0].row()) if rows else ""

    def choose(self, key: str) -> bool:
        """Choose a row without a signal; returns whether it is there."""
        row = self._rows.row_of(key)
        if row is None:
            return False
        self._is_choosing = True
        index = self._rows.index(row, 0)
        rows = QItemSelectionModel.SelectionFlag.ClearAndSelect | QItemSelectionModel.SelectionFlag.Rows
        self.selectionModel().setCurrentIndex(index, rows)
        self._is_choosing = False
        return True

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._rows.set_theme(theme)
        self._delegate.theme = theme
        self.viewport().update()

    # ------------------------------------------------------------------------------------- Qt's own

    def sizeHint(self) -> QSize:
        """Return the height of all rows, up to a bound; any width will do."""
        rows = min(self._rows.rowCount(), _MOST_ROWS_SHOWN)
        height = self.horizontalHeader().minimumHeight() + rows * self.row_px() + 2 * self.frameWidth()
        return QSize(480, height)

    def minimumSizeHint(self) -> QSize:
        """Return the same height: a page around the table scrolls."""
        return QSize(240, self.sizeHint().height())

    def button_rect(self, index: QModelIndex) -> QRect:
        """Return where the button of a row is."""
        return self._delegate.button_rect(self.visualRect(index), index)

    def row_px(self) -> int:
        """Return the height of a row."""
        return self.verticalHeader().defaultSectionSize()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Press the row's button with Enter or Space, delete with Delete; Home and End are the first and last entry."""
        key = self.chosen_key
        is_plain = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier == Qt.KeyboardModifier.NoModifier
        if is_plain and event.key() in _PLAIN_KEYS:
            self._press(self.currentIndex().row())
        elif is_plain and event.key() == Qt.Key.Key_Delete and key:
            self.delete_requested.emit(key)
        elif is_plain and event.key() in (Qt.Key.Key_Home, Qt.Key.Key_End):
            self._go_to_end(is_first=event.key() == Qt.Key.Key_Home)
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Press the button under the mouse."""
        super().mousePressEvent(event)
        if event.button() == Qt.MouseButton.LeftButton:
            self._set_button(pressed=self._button_at(event.position().toPoint()))

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Act when the mouse leaves a button where it pressed it."""
        super().mouseReleaseEvent(event)
        pressed, row = self._delegate.pressed_row, self._button_at(event.position().toPoint())
        self._set_button(pressed=-1)
        if row >= 0 and row == pressed:
            self._press(row)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        """Take a double click beside the button for the button."""
        row = self._button_at(event.position().toPoint())
        if row >= 0:
            self._set_button(pressed=row)
            return
        super().mouseDoubleClickEvent(event)
        index = self.indexAt(event.position().toPoint())
        if event.button() == Qt.MouseButton.LeftButton and index.isValid():
            self._press(index.row())

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Show which button is under the mouse."""
        super().mouseMoveEvent(event)
        row = self._button_at(event.position().toPoint())
        if row != self._delegate.hovered_row:
            self._delegate.hovered_row = row
            self.viewport().update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Show as many columns as there is room for."""
        super().resizeEvent(event)
        self._fit_columns()

    # ------------------------------------------------------------------------------------- helpers

    def _build(self) -> None:
        self.setModel(self._rows)
        self.setItemDelegate(self._delegate)
        self.setProperty("kind", "framed")
        self.setAccessibleName(_("Quantizations"))
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)  # Tab leaves the table
        self.setMouseTracking(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.verticalHeader().hide()
        self.verticalHeader().setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        self.verticalHeader().setDefaultSectionSize(max(_ROW_PX, self.fontMetrics().height() + 12))
        header = self.horizontalHeader()
        header.setStyleSheet(f"QHeaderView::section {{ padding: 6px {PAD_PX}px; }}")  # in line with the cells
        header.setHighlightSections(False)
        header.setSectionsClickable(False)
        header.setMinimumSectionSize(24)
        header.setFixedHeight(max(_HEADER_PX, header.fontMetrics().height() + 14))
        header.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)

    def _on_reset(self) -> None:
        self.clearSpans()
        is_long = self._rows.rowCount() > _MOST_ROWS_SHOWN
        as_needed, never = Qt.ScrollBarPolicy.ScrollBarAsNeeded, Qt.ScrollBarPolicy.ScrollBarAlwaysOff
        self.setVerticalScrollBarPolicy(as_needed if is_long else never)
        for row in self._rows.heading_rows():
            self.setSpan(row, 0, 1, len(self._rows.columns))
        self._delegate.hovered_row = self._delegate.pressed_row = -1
        self._fit_columns()
        self.updateGeometry()

    def _on_selection_changed(self, _selected: QItemSelection, _deselected: QItemSelection) -> None:
        key = self.chosen_key
        if key and not self._is_choosing:
            self.entry_chosen.emit(key)

    def _press(self, row: int) -> None:
        if self._rows.can_press(row):
            self.action_requested.emit(self._rows.key_at(row))

    def _go_to_end(self, is_first: bool) -> None:
        rows = range(self._rows.rowCount())
        row = next((row for row in (rows if is_first else reversed(rows)) if self._rows.key_at(row)), None)
        if row is not None:
            self.setCurrentIndex(self._rows.index(row, 0))

    def _set_button(self, pressed: int) -> None:
        self._delegate.pressed_row = pressed
        self.viewport().update()

    def _button_at(self, place: QPoint) -> int:
        """Return the row whose button is at a place, or -1."""
        index = self.indexAt(place)
        if not index.isValid() or index.column() != self._rows.action_column:
            return -1
        is_on_it = self._rows.can_press(index.row()) and self.button_rect(index).contains(place)
        return index.row() if is_on_it else -1

    def _on_data_changed(self, first: QModelIndex, last: QModelIndex) -> None:
        """Make room for other words; a change of the buttons alone needs none."""
        if first.column() != self._rows.action_column or last.column() != self._rows.action_column:
            self._fit_columns()

    def _fit_columns(self) -> None:
        """Give every column what it needs, hide the least needed ones where that is too much, share what is left."""
        columns, action = self._rows.columns, self._rows.action_column
        needed = [self._delegate.column_width(self._rows, column) for column in range(len(columns))]
        room = self.viewport().width()
        shown = {column for column in range(len(columns)) if self.has_words(column)}
        for rank in sorted({column.rank for column in columns} - {0}, reverse=True):
            if sum(needed[column] for column in shown) <= room:
                break
            shown -= {column for column in shown if columns[column].rank == rank}
        spare = max(0, room - sum(needed[column] for column in shown))
        action_px = min(needed[action] + spare, max(needed[action], self._delegate.most_action_width(self._rows)))
        spare -= action_px - needed[action]
        flexible = [column for column in sorted(shown) if column != action]
        for column in range(len(columns)):
            self.setColumnHidden(column, column not in shown)
        for place, column in enumerate(flexible):
            share = spare // len(flexible) + (1 if place < spare % len(flexible) else 0)
            self.setColumnWidth(column, needed[column] + share)
        self.setColumnWidth(action, action_px)

    def has_words(self, column: int) -> bool:
        """Return whether a column has anything to show at all."""
        return True
