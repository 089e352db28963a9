"""The models on this machine: a table, and what can be done with the chosen one.

Knows no library and no engine: every wish is a signal, and the table changes when it is given the new entries.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QModelIndex, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QStackedWidget,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from app.i18n import _, ngettext
from app.models.library import ModelEntry
from app.units import bytes_text, number_text
from ui.models.model_table_model import ModelTableModel
from ui.theme import Theme
from ui.widgets.empty_state import EmptyState
from ui.widgets.icons import icon
from ui.widgets.labels import MutedLabel, TitleLabel
from ui.widgets.wrapped_label import WrappedLabel

_ROW_PX = 36
_UNIT_NAMES = ((1e12, "T"), (1e9, "B"), (1e6, "M"))


class ModelsPanel(QWidget):
    """The models screen.

    Attributes:
        _model: the table's entries.

    Signals:
        use_requested(key): a person wants to chat with this entry.
        add_file_requested(): a person wants to choose a model file.
        forget_requested(key): a person wants this entry off the list; the file stays.
    """

    use_requested = Signal(str)
    add_file_requested = Signal()
    forget_requested = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._model = ModelTableModel(theme, self)
        self._count = MutedLabel()
        self._add = QPushButton(_("Add a model file…"))
        self._table = QTableView()
        self._detail = WrappedLabel(kind="muted")
        self._use = QPushButton(_("Use"))
        self._forget = QPushButton(_("Forget"))
        self._empty = EmptyState("")
        self._pages = QStackedWidget()
        self._build()
        self._connect()
        self.set_theme(theme)
        self.show_loading()

    def show_loading(self) -> None:
        """Say that model files are being looked for."""
        self._count.setText("")
        self._empty.show_words(_("Looking for model files…"))
        self._pages.setCurrentIndex(1)

    def set_entries(self, entries: Sequence[ModelEntry]) -> None:
        """Show the library's entries; the chosen one stays chosen."""
        chosen = self.chosen_entry
        self._model.set_entries(entries)
        self._count.setText(_summary(entries))
        self._empty.show_words(_("There is no model file on this machine yet."), _("Add a model file…"))
        self._add.setVisible(bool(entries))
        self._pages.setCurrentIndex(0 if entries else 1)
        row = self._model.row_of(chosen.key) if chosen is not None else None
        if entries:
            self._table.selectRow(row or 0)
        self._on_chosen()

    @property
    def chosen_entry(self) -> ModelEntry | None:
        """The entry of the chosen row, or None."""
        rows = self._table.selectionModel().selectedRows()
        return self._model.entry_at(rows[0].row()) if rows else None

    def choose(self, key: str) -> None:
        """Choose the row of an entry; nothing happens when it is not there."""
        row = self._model.row_of(key)
        if row is not None:
            self._table.selectRow(row)

    def set_theme(self, theme: Theme) -> None:
        """Take over a theme's colours."""
        self._model.set_theme(theme)
        self._add.setIcon(icon("plus", theme, role="text"))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Let Enter in the table use the chosen model."""
        if watched is self._table and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            is_plain = event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier == Qt.KeyboardModifier.NoModifier
            if is_plain and event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._on_use()
                return True
        return super().eventFilter(watched, event)

    # ------------------------------------------------------------------------------------------------ build

    def _build(self) -> None:
        self._build_table()
        self._use.setProperty("kind", "primary")
        self._forget.setToolTip(_("Take this model off the list. The file stays where it is."))
        head = QHBoxLayout()
        head.setSpacing(12)
        head.addWidget(TitleLabel(_("Models")))
        head.addWidget(self._count, 1)
        head.addWidget(self._add)
        foot = QHBoxLayout()
        foot.setSpacing(8)
        foot.addWidget(self._detail, 1)
        foot.addWidget(self._forget)
        foot.addWidget(self._use)
        listed = QWidget()
        inside = QVBoxLayout(listed)
        inside.setContentsMargins(0, 0, 0, 0)
        inside.setSpacing(12)
        inside.addWidget(self._table, 1)
        inside.addLayout(foot)
        self._pages.addWidget(listed)
        self._pages.addWidget(self._empty)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(28, 16, 28, 16)
        layout.setSpacing(12)
        layout.addLayout(head)
        layout.addWidget(self._pages, 1)

    def _build_table(self) -> None:
        table = self._table
        table.setModel(self._model)
        table.setAccessibleName(_("Models on this machine"))
        table.setProperty("kind", "framed")
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        table.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        table.setShowGrid(False)
        table.setWordWrap(False)
        table.setTabKeyNavigation(False)  # Tab leaves the table
        table.setTextElideMode(Qt.TextElideMode.ElideRight)
        table.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        table.verticalHeader().hide()
        table.verticalHeader().setDefaultSectionSize(max(_ROW_PX, table.fontMetrics().height() + 16))
        header = table.horizontalHeader()
        header.setHighlightSections(False)
        header.setMinimumSectionSize(72)
        header.setSectionResizeMode(QHeaderView.ResizeMode.ResizeToContents)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        table.installEventFilter(self)

    def _connect(self) -> None:
        self._add.clicked.connect(self._on_add)
        self._empty.action_requested.connect(self._on_add)
        self._use.clicked.connect(self._on_use)
        self._forget.clicked.connect(self._on_forget)
        self._table.doubleClicked.connect(self._on_double_clicked)
        self._table.selectionModel().selectionChanged.connect(self._on_chosen)

    # ------------------------------------------------------------------------------------------------ slots

    def _on_add(self) -> None:
        self.add_file_requested.emit()

    def _on_double_clicked(self, _index: QModelIndex) -> None:
        self._on_use()

    def _on_use(self) -> None:
        entry = self.chosen_entry
        if entry is not None and not entry.fault:
            self.use_requested.emit(entry.key)

    def _on_forget(self) -> None:
        entry = self.chosen_entry
        if entry is not None:
            self.forget_requested.emit(entry.key)

    def _on_chosen(self) -> None:
        entry = self.chosen_entry
        self._use.setEnabled(entry is not None and not entry.fault)
        # only what a person added is on a list that it can be taken off
        self._forget.setVisible(entry is not None and entry.origin == "imported")
        self._detail.setText("" if entry is None else _detail(entry))
        self._detail.setProperty("kind", "error" if entry is not None and entry.fault else "muted")
        self._detail.style().unpolish(self._detail)
        self._detail.style().polish(self._detail)


def _summary(entries: Sequence[ModelEntry]) -> str:
    if not entries:
        return ""
    count = ngettext("{count} model on this machine", "{count} models on this machine", len(entries))
    total = bytes_text(sum(entry.size_bytes for entry in entries))
    return f"{count.format(count=len(entries))} · {total}"


def _detail(entry: ModelEntry) -> str:
    """Return the chosen entry's fault, or what the table has no room for."""
    if entry.fault:
        return f"{entry.fault} · {entry.path}"
    facts = [entry.architecture, _parameters(entry.parameters_count), str(entry.path)]
    return " · ".join(fact for fact in facts if fact)


def _parameters(count: int) -> str:
    for size, name in _UNIT_NAMES:
        if count >= size:
            return _("{count} parameters").format(count=f"{number_text(count / size)} {name}")
    return ""
