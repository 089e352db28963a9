"""The list of chats: new, search, select, rename in place, delete.

Knows no store: every wish is a signal, and the list changes when the model is given the new chats.
"""

from __future__ import annotations

from PySide6.QtCore import (
    QItemSelection,
    QItemSelectionModel,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QLineEdit,
    QListView,
    QMenu,
    QPushButton,
    QStackedWidget,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from app.i18n import _
from ui.actions import ACTIONS, ActionId, tooltip_for
from ui.models.chat_list_model import CHAT_ID_ROLE, ChatFilter, ChatListModel
from ui.notifications import UndoBar
from ui.theme import Theme
from ui.widgets.empty_state import EmptyState
from ui.widgets.icons import icon
from ui.widgets.labels import TitleLabel

_WIDTH_PX = 248
_ROW_PX = 36
_MAX_TITLE_CHARACTERS = 200


class ChatListPanel(QWidget):
    """The chats at the left of the chat screen.

    Attributes:
        undo_bar: stands under the list; the window offers the undo of a deletion there.
        model: the chats.
        _selected_id: the chat that is open, selected whenever the filter shows it.
        _is_syncing: the selection is being set by us and is no choice of a person.

    Signals:
        chat_selected(chat_id): a person chose a chat; not sent by select().
        new_requested(): a person wants an empty chat.
        rename_requested(chat_id, title): a person typed a title; "" takes the title away.
        delete_requested(chat_id): a person wants this chat deleted; the window deletes it and offers the undo.
    """

    chat_selected = Signal(object)
    new_requested = Signal()
    rename_requested = Signal(object, str)
    delete_requested = Signal(object)

    def __init__(self, model: ChatListModel, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("side")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setFixedWidth(_WIDTH_PX)
        self.model = model
        self.undo_bar = UndoBar()
        self._selected_id: int | None = None
        self._is_syncing = False
        self._filter = ChatFilter(model, self)
        self._new = QPushButton(_("New"))
        self._search = QLineEdit()
        self._list = QListView()
        self._empty = EmptyState("")
        self._pages = QStackedWidget()
        self._rename_action = self._local_action(ActionId.RENAME_CHAT)
        self._delete_action = self._local_action(ActionId.DELETE_CHAT)
        self._build()
        self._connect()
        self.set_theme(theme)
        self._on_rows_changed()

    @property
    def selected_id(self) -> int | None:
        """The chat that is marked as open."""
        return self._selected_id

    def select(self, chat_id: int | None) -> None:
        """Mark a chat as the open one, or none; sends nothing."""
        self._selected_id = chat_id
        self._sync_selection()

    def start_rename(self) -> None:
        """Edit the title of the open chat in place."""
        index = self._list.currentIndex()
        if index.isValid():
            self._list.edit(index)

    def focus_search(self) -> None:
        """Put the cursor into the search box."""
        self._search.setFocus()
        self._search.selectAll()

    def set_theme(self, theme: Theme) -> None:
        """Draw the icons in a theme's colours."""
        self._new.setIcon(icon(ACTIONS[ActionId.NEW_CHAT].icon, theme, role="text"))
        self._rename_action.setIcon(icon(ACTIONS[ActionId.RENAME_CHAT].icon, theme))
        self._delete_action.setIcon(icon(ACTIONS[ActionId.DELETE_CHAT].icon, theme))

    # ------------------------------------------------------------------------------------------------ build

    def _build(self) -> None:
        self._new.setToolTip(tooltip_for(ActionId.NEW_CHAT))
        self._new.setAccessibleName(_("New chat"))
        self._search.setPlaceholderText(_("Search chats"))
        self._search.setAccessibleName(_("Search chats"))
        self._search.setClearButtonEnabled(True)
        self._list.setModel(self._filter)
        self._list.setItemDelegate(_TitleDelegate(self._list))
        self._list.setAccessibleName(_("Chats"))
        self._list.setUniformItemSizes(True)
        self._list.setTextElideMode(Qt.TextElideMode.ElideRight)
        self._list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._list.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self._list.setEditTriggers(QAbstractItemView.EditTrigger.DoubleClicked)
        self._list.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self._list.setSpacing(1)
        self._pages.addWidget(self._list)
        self._pages.addWidget(self._empty)
        top = QHBoxLayout()
        top.setContentsMargins(16, 0, 12, 0)
        top.addWidget(TitleLabel(_("Chats")), 1)
        top.addWidget(self._new)
        search = QHBoxLayout()
        search.setContentsMargins(12, 0, 12, 0)
        search.addWidget(self._search)
        undo = QHBoxLayout()
        undo.setContentsMargins(8, 0, 8, 8)
        undo.addWidget(self.undo_bar)
        views = QHBoxLayout()
        views.setContentsMargins(6, 0, 6, 0)
        views.addWidget(self._pages)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 12, 0, 0)
        layout.setSpacing(8)
        layout.addLayout(top)
        layout.addLayout(search)
        layout.addLayout(views, 1)
        layout.addLayout(undo)

    def _connect(self) -> None:
        self._new.clicked.connect(self._on_new)
        self._search.textChanged.connect(self._on_search)
        self._list.selectionModel().selectionChanged.connect(self._on_selection_changed)
        self._list.customContextMenuRequested.connect(self._on_menu)
        self._empty.action_requested.connect(self._on_empty_action)
        self._rename_action.triggered.connect(self.start_rename)
        self._delete_action.triggered.connect(self._on_delete)
        self.model.rename_requested.connect(self.rename_requested)
        for signal in (self._filter.rowsInserted, self._filter.rowsRemoved, self._filter.modelReset):
            signal.connect(self._on_rows_changed)

    def _local_action(self, action_id: ActionId) -> QAction:
        """Return an action whose keys work in the list only."""
        spec = ACTIONS[action_id]
        action = QAction(spec.words(), self)
        action.setShortcuts([QKeySequence(keys) for keys in spec.keys])
        action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
        self._list.addAction(action)
        return action

    # ------------------------------------------------------------------------------------------------ slots

    def _on_new(self) -> None:
        self._search.clear()
        self.new_requested.emit()

    def _on_empty_action(self) -> None:
        if self._search.text():
            self._search.clear()
        else:
            self._on_new()

    def _on_search(self, text: str) -> None:
        self._is_syncing = True  # Qt moves the selection off rows that the filter hides
        self._filter.search(text)
        self._is_syncing = False
        self._on_rows_changed()

    def _on_selection_changed(self, selected: QItemSelection, _deselected: QItemSelection) -> None:
        if self._is_syncing or not selected.indexes():
            return
        chat_id: int = selected.indexes()[0].data(CHAT_ID_ROLE)
        if chat_id != self._selected_id:
            self._selected_id = chat_id
            self.chat_selected.emit(chat_id)

    def _on_delete(self) -> None:
        index = self._list.currentIndex()
        if index.isValid() and self._list.selectionModel().isSelected(index):
            self.delete_requested.emit(index.data(CHAT_ID_ROLE))

    def _on_menu(self, place: QPoint) -> None:
        if not self._list.indexAt(place).isValid():
            return
        menu = QMenu(self._list)
        menu.addActions([self._rename_action, self._delete_action])
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        menu.popup(self._list.viewport().mapToGlobal(place))

    def _on_rows_changed(self) -> None:
        self._sync_selection()
        if self._filter.rowCount():
            self._pages.setCurrentWidget(self._list)
        elif self._search.text():
            self._empty.show_words(_("No chat has this in its title."), _("Clear the search"))
            self._pages.setCurrentWidget(self._empty)
        else:
            self._empty.show_words(_("No chats yet."))
            self._pages.setCurrentWidget(self._empty)

    # ---------------------------------------------------------------------------------------------- helpers

    def _sync_selection(self) -> None:
        """Select the row of the open chat where the filter shows it, and nothing else."""
        row = None if self._selected_id is None else self.model.row_of(self._selected_id)
        index = QModelIndex() if row is None else self._filter.mapFromSource(self.model.index(row))
        selection = self._list.selectionModel()
        self._is_syncing = True
        if not index.isValid():
            selection.clear()
        elif not selection.isSelected(index) or selection.currentIndex() != index:
            selection.setCurrentIndex(index, QItemSelectionModel.SelectionFlag.ClearAndSelect)
            self._list.scrollTo(index)
        self._is_syncing = False


class _TitleDelegate(QStyledItemDelegate):
    """Draws rows of one height and edits a title of bounded length."""

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        """Return the height of a row; a title never makes a row wider than the list."""
        size = super().sizeHint(option, index)
        size.setHeight(max(_ROW_PX, option.fontMetrics.height() + 16))
        return size

    def createEditor(
        self, parent: QWidget, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QWidget:
        """Return the line that a title is edited in."""
        editor = QLineEdit(parent)
        editor.setMaxLength(_MAX_TITLE_CHARACTERS)
        editor.setProperty("kind", "inline")
        editor.setPlaceholderText(_("New chat"))
        editor.setAccessibleName(_("Title of the chat"))
        return editor
