"""The left column of the compare screen: a new comparison, and those that there are.

Knows no folder: every wish is a signal. Deleting asks first, in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from PySide6.QtCore import QItemSelection, QPoint, Qt, Signal
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QListView,
    QMenu,
    QPushButton,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.i18n import _
from ui.models.compare_list_model import CompareListModel, ComparisonRow
from ui.models.model_choice import one_line
from ui.panels.list_row_delegate import ListRowDelegate
from ui.panels.model_confirm import Answer, ConfirmBar
from ui.theme import Theme
from ui.widgets.empty_state import EmptyState
from ui.widgets.icons import icon
from ui.widgets.labels import TitleLabel
from ui.widgets.list_selection import select_row

_DELETE: Final = "delete"
_RESUMABLE: Final = ("planned", "stopped", "running")


class CompareList(QWidget):
    """The comparisons.

    Attributes:
        rows: the list's model.
        confirm: the question before a deletion.
        _asked: the comparison that the question is about.
        _chosen: the one that is marked.

    Signals:
        new_requested(): a person wants a new comparison.
        chosen(comparison_id): a person wants to see one; not sent by choose().
        resume_requested(comparison_id): a person wants one to go on where it stopped.
        delete_confirmed(comparison_id): a person wants one deleted, and was asked.
    """

    new_requested = Signal()
    chosen = Signal(str)
    resume_requested = Signal(str)
    delete_confirmed = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("side")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.rows = CompareListModel(self)
        self.confirm = ConfirmBar()
        self._asked = ""
        self._chosen = ""
        self._running = ""
        self._is_syncing = False
        self._new = QPushButton(_("New"))
        self._view = QListView()
        self._delegate = ListRowDelegate(theme, self._view)
        self._nothing = EmptyState(_("Past comparisons are listed here."))
        self._pages = QStackedWidget()
        self._resume = QAction(_("Go on"), self)
        self._delete = QAction(_("Delete…"), self)
        self._build()
        self._connect()
        self.set_theme(theme)
        self._show_page()

    # ------------------------------------------------------------------------------------- public

    @property
    def chosen_id(self) -> str:
        """The comparison that is marked; "" for none."""
        return self._chosen

    def set_rows(self, rows: Sequence[ComparisonRow]) -> None:
        """Show exactly these comparisons; the marked one stays so."""
        self._is_syncing = True
        self.rows.set_rows(rows)
        self._is_syncing = False
        self._show_page()
        self.choose(self._chosen)

    def put(self, row: ComparisonRow) -> None:
        """Add a comparison, or show how far it is now."""
        self._is_syncing = True
        self.rows.put(row)
        self._is_syncing = False
        self._show_page()
        self.choose(self._chosen)

    def choose(self, comparison_id: str) -> None:
        """Mark a comparison without a signal; "" for none."""
        self._chosen = comparison_id
        self._is_syncing = True
        select_row(self._view, self.rows.row_of(comparison_id))
        self._is_syncing = False

    def set_running(self, comparison_id: str) -> None:
        """Say which comparison is under way: it can be neither deleted nor begun a second time; "" for none."""
        self._running = comparison_id
        if comparison_id and self._asked == comparison_id:
            self.confirm.close_question()

    def focus_list(self) -> None:
        """Go to the list."""
        self._view.setFocus()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._delegate.theme = theme
        self._new.setIcon(icon("plus", theme, role="text"))
        self._view.viewport().update()

    # ------------------------------------------------------------------------------------- build

    def _build(self) -> None:
        self._new.setAccessibleName(_("New comparison"))
        self._new.setToolTip(_("New comparison"))
        self._build_view()
        self._pages.addWidget(self._view)
        self._pages.addWidget(self._nothing)
        top = QHBoxLayout()
        top.setContentsMargins(16, 0, 12, 0)
        top.addWidget(TitleLabel(_("Compare")), 1)
        top.addWidget(self._new)
        middle = QHBoxLayout()
        middle.setContentsMargins(6, 0, 6, 0)
        middle.addWidget(self._pages)
        question = QHBoxLayout()
        question.setContentsMargins(8, 0, 8, 8)
        question.addWidget(self.confirm)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 12, 0, 0)
        layout.setSpacing(8)
        layout.addLayout(top)
        layout.addLayout(middle, 1)
        layout.addLayout(question)

    def _build_view(self) -> None:
        view = self._view
        view.setModel(self.rows)
        view.setItemDelegate(self._delegate)
        view.setAccessibleName(_("Comparisons"))
        view.setUniformItemSizes(True)
        view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        view.setMouseTracking(True)
        view.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self._delete.setShortcut(QKeySequence(Qt.Key.Key_Delete))
        self._delete.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        view.addAction(self._delete)

    def _connect(self) -> None:
        self._new.clicked.connect(self._on_new)
        self._view.selectionModel().selectionChanged.connect(self._on_selection_changed)
        self._view.customContextMenuRequested.connect(self._on_menu)
        self._resume.triggered.connect(self._on_resume)
        self._delete.triggered.connect(self.ask_to_delete)
        self.confirm.answered.connect(self._on_answered)
        self.confirm.left.connect(self.focus_list)

    # ------------------------------------------------------------------------------------- slots

    def ask_to_delete(self) -> None:
        """Ask whether the marked comparison is to be deleted."""
        place = self.rows.row_of(self._chosen)
        row = self.rows.row_at(place) if place is not None else None
        if row is None:
            return
        self._asked = row.comparison_id
        if row.comparison_id == self._running:
            self.confirm.ask(_("This comparison is running."), _("Stop it first."), ())
            return
        self.confirm.ask(
            _("Delete the comparison of {title}?").format(title=one_line(row.title)),
            _("What it measured is gone then. The models stay."),
            (Answer(_DELETE, _("Delete"), is_danger=True),),
        )

    def _on_new(self) -> None:
        self.confirm.close_question()
        self.new_requested.emit()

    def _on_selection_changed(self, _selected: QItemSelection, _deselected: QItemSelection) -> None:
        indexes = self._view.selectionModel().selectedIndexes()
        row = self.rows.row_at(indexes[0].row()) if indexes else None
        if self._is_syncing or row is None or row.comparison_id == self._chosen:
            return
        self._chosen = row.comparison_id
        self.confirm.close_question()
        self.chosen.emit(row.comparison_id)

    def _on_menu(self, place: QPoint) -> None:
        row = self.rows.row_at(self._view.indexAt(place).row())
        if row is None:
            return
        menu = QMenu(self._view)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        if row.state in _RESUMABLE and not row.fault and not self._running:
            menu.addAction(self._resume)
        menu.addAction(self._delete)
        menu.popup(self._view.viewport().mapToGlobal(place))

    def _on_resume(self) -> None:
        if self._chosen:
            self.resume_requested.emit(self._chosen)

    def _on_answered(self, answer: str) -> None:
        if answer == _DELETE and self._asked != self._running:
            self.delete_confirmed.emit(self._asked)

    def _show_page(self) -> None:
        self._pages.setCurrentWidget(self._view if self.rows.rowCount() else self._nothing)
