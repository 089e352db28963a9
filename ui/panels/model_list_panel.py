"""The left column of the models screen: three tabs, each with its search and its list, and what the library takes.

Knows no library and no hub: every wish is a signal. The lists of the hub's tabs are parts that it is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from PySide6.QtCore import (
    QItemSelection,
    QModelIndex,
    QPersistentModelIndex,
    Qt,
    Signal,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QListView,
    QMenu,
    QPushButton,
    QSizePolicy,
    QStackedWidget,
    QVBoxLayout,
    QWidget,
)

from app.i18n import _
from app.models.entry import ModelEntry
from app.models.fit_types import Fit
from ui.models.model_choice import NamedModel, one_line
from ui.models.model_list_model import ModelListModel
from ui.panels.hub_panel import HUB, PICKED, HubPanel
from ui.panels.list_row_delegate import ListRowDelegate
from ui.theme import Theme
from ui.widgets.empty_state import EmptyState
from ui.widgets.icons import icon
from ui.widgets.labels import ElidedLabel, TitleLabel, plain_words
from ui.widgets.list_selection import select_row
from ui.widgets.search_field import SearchField
from ui.widgets.segmented import SegmentedControl
from ui.widgets.wrapped_label import WrappedLabel

Index = QModelIndex | QPersistentModelIndex

_ROW_PX: Final = 48
_PAD_PX: Final = 12
_RADIUS_PX: Final = 8
HERE: Final = "here"


class ModelListPanel(QWidget):
    """The models by name.

    Attributes:
        rows: the list's model.
        search: the search field of what is on this machine.
        _chosen_name: the model that is chosen, marked whenever the search shows it.
        _is_syncing: the selection is being set by us and is no choice of a person.

    Signals:
        tab_chosen(key): a person chose PICKED, HUB or HERE.
        model_chosen(NamedModel): a person chose a model; not sent by choose().
        entered(): a person wants to go on from the list to the quantizations.
        add_file_requested(): a person wants to choose a model file.
        add_folder_requested(): a person wants to choose a folder to look in.
        remove_folder_requested(path): a person wants a folder not to be looked in any more; its files stay.
        scan_requested(): a person wants the disk to be looked at again.
    """

    tab_chosen = Signal(str)
    model_chosen = Signal(object)
    entered = Signal()
    add_file_requested = Signal()
    add_folder_requested = Signal()
    remove_folder_requested = Signal(object)
    scan_requested = Signal()

    def __init__(self, theme: Theme, hub: HubPanel, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._hub = hub
        self.setObjectName("side")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.rows = ModelListModel(self)
        self.search = SearchField(_("Search models"), theme)
        tabs = {PICKED: _("Picked for you"), HUB: _("Hub"), HERE: _("On this machine")}
        self._tabs = SegmentedControl(tabs, _("Which models"), theme)
        self._searches = QStackedWidget()
        self._bodies = QStackedWidget()
        self._list = QListView()
        self._delegate = ListRowDelegate(theme, self._list)
        self._nothing = EmptyState(_("No model has these words."), _("Clear the search"))
        self._pages = QStackedWidget()
        self._here = QWidget()
        self._scan = ElidedLabel()
        self._disk = WrappedLabel(kind="muted")
        self._add = QPushButton(_("Add"))
        self._again = QPushButton(_("Look again"))
        self._menu = QMenu(self._add)
        self._folders = QMenu(_("Stop looking in"), self._menu)
        self._chosen_name = ""
        self._is_syncing = False
        self._build()
        self._connect()
        self.set_theme(theme)

    # ------------------------------------------------------------------------------------- public

    @property
    def chosen_model(self) -> NamedModel | None:
        """The chosen model, or None."""
        indexes = self._list.selectionModel().selectedIndexes()
        return self.rows.model_at(indexes[0].row()) if indexes else None

    @property
    def tab(self) -> str:
        """The tab that is shown."""
        return self._tabs.chosen_key

    def show_tab(self, key: str) -> None:
        """Show a tab without a signal."""
        self._tabs.choose(key)
        is_here = key == HERE
        self._searches.setCurrentWidget(self.search if is_here else self._hub.results.search)
        self._bodies.setCurrentWidget(
            self._here if is_here else self._hub.picks if key == PICKED else self._hub.results
        )

    def go_to_search(self) -> None:
        """Put the cursor into the search field of the tab that is shown."""
        (self.search if self.tab == HERE else self._hub.results.search).go_to()

    def set_entries(self, entries: Sequence[ModelEntry]) -> None:
        """Show the library's models; the chosen one stays chosen."""
        self._is_syncing = True
        self.rows.set_entries(entries)
        self._is_syncing = False
        self._on_rows_changed()

    def set_fits(self, fits: Mapping[str, Fit]) -> None:
        """Take over what fits now."""
        self.rows.set_fits(fits)

    def choose(self, name: str) -> bool:
        """Mark a model without a signal; returns whether the list shows it."""
        self._chosen_name = name
        return self._sync()

    def choose_entry(self, key: str) -> bool:
        """Mark the model of an entry, taking back a search that hides it; returns whether it is there."""
        row = self.rows.row_of(key)
        if row is None:
            self.search.clear()
            row = self.rows.row_of(key)
        return row is not None and self.choose(self.rows.model_at(row).name)

    def set_scan(self, words: str) -> None:
        """Say how far the look at the disk is; "" when none is under way."""
        self._scan.setText(words)
        self._scan.setVisible(bool(words))
        self._again.setEnabled(not words)

    def set_disk(self, words: str) -> None:
        """Say what the library takes."""
        self._disk.setText(words)
        self._disk.setVisible(bool(words))

    def set_folders(self, folders: Sequence[Path]) -> None:
        """Offer to stop looking in these folders."""
        self._folders.clear()
        for folder in folders:
            action = self._folders.addAction(plain_words(one_line(str(folder))))
            action.triggered.connect(partial(self._on_remove_folder, folder))
        self._folders.menuAction().setVisible(bool(folders))

    def focus_list(self) -> None:
        """Go to the list."""
        self._list.setFocus()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self._delegate.theme = theme
        self._tabs.set_theme(theme)
        self.search.set_theme(theme)
        self._add.setIcon(icon("plus", theme, role="text"))
        self._list.viewport().update()

    # ------------------------------------------------------------------------------------- build

    def _build(self) -> None:
        self._build_list()
        self._build_menu()
        self._again.setToolTip(_("Look for models in every place again"))
        self._scan.hide()
        self._disk.hide()
        top = QVBoxLayout()
        top.setContentsMargins(12, 0, 12, 0)
        top.setSpacing(8)
        title = TitleLabel(_("Models"))
        title.setContentsMargins(4, 0, 0, 0)
        self._searches.addWidget(self.search)
        self._searches.addWidget(self._hub.results.search)
        self._searches.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        for widget in (title, self._searches, self._tabs):
            top.addWidget(widget)
        for body in (self._build_here(), self._hub.picks, self._hub.results):
            self._bodies.addWidget(body)
        strip = QHBoxLayout()
        strip.setContentsMargins(12, 0, 12, 12)
        strip.addWidget(self._hub.strip)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 12, 0, 0)
        layout.setSpacing(8)
        layout.addLayout(top)
        layout.addWidget(self._bodies, 1)
        layout.addLayout(strip)
        self._tabs.set_short_words({PICKED: _("Picked"), HERE: _("Here")})
        self.show_tab(HERE)

    def _build_here(self) -> QWidget:
        self._pages.addWidget(self._list)
        self._pages.addWidget(self._nothing)
        middle = QHBoxLayout()
        middle.setContentsMargins(6, 0, 6, 0)
        middle.addWidget(self._pages)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self._add)
        buttons.addWidget(self._again)
        buttons.addStretch(1)
        foot = QVBoxLayout()
        foot.setContentsMargins(16, 4, 16, 4)
        foot.setSpacing(6)
        for words in (self._scan, self._disk):
            foot.addWidget(words)
        foot.addLayout(buttons)
        column = QVBoxLayout(self._here)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addLayout(middle, 1)
        column.addLayout(foot)
        return self._here

    def _build_list(self) -> None:
        view = self._list
        view.setObjectName("models_here")
        view.setModel(self.rows)
        view.setItemDelegate(self._delegate)
        view.setAccessibleName(_("Models on this machine"))
        view.setUniformItemSizes(True)
        view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        view.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        view.setEditTriggers(QAbstractItemView.EditTrigger.NoEditTriggers)
        view.setMouseTracking(True)

    def _build_menu(self) -> None:
        self._menu.addAction(_("Model file…")).triggered.connect(self._on_add_file)
        self._menu.addAction(_("Folder to look in…")).triggered.connect(self._on_add_folder)
        self._menu.addMenu(self._folders)
        self._folders.menuAction().setVisible(False)
        self._add.setMenu(self._menu)
        self._add.setAccessibleName(_("Add models"))

    def _connect(self) -> None:
        self._tabs.chosen.connect(self._on_tab)
        self.search.textChanged.connect(self._on_search)
        self.search.left_downwards.connect(self.focus_list)
        self._list.selectionModel().selectionChanged.connect(self._on_selection_changed)
        self._list.activated.connect(self._on_activated)
        self._nothing.action_requested.connect(self.search.clear)
        self._again.clicked.connect(self._on_again)

    # ------------------------------------------------------------------------------------- slots

    def _on_tab(self, key: str) -> None:
        self.show_tab(key)
        self.tab_chosen.emit(key)

    def _on_search(self, text: str) -> None:
        self._is_syncing = True
        self.rows.search(text)
        self._is_syncing = False
        self._on_rows_changed()

    def _on_rows_changed(self) -> None:
        self._sync()
        is_nothing = not self.rows.rowCount() and not self.rows.is_empty
        self._pages.setCurrentWidget(self._nothing if is_nothing else self._list)

    def _on_selection_changed(self, _selected: QItemSelection, _deselected: QItemSelection) -> None:
        model = self.chosen_model
        if not self._is_syncing and model is not None and model.name != self._chosen_name:
            self._chosen_name = model.name
            self.model_chosen.emit(model)

    def _on_activated(self, _index: QModelIndex) -> None:
        self.entered.emit()

    def _on_add_file(self) -> None:
        self.add_file_requested.emit()

    def _on_add_folder(self) -> None:
        self.add_folder_requested.emit()

    def _on_remove_folder(self, folder: Path) -> None:
        self.remove_folder_requested.emit(folder)

    def _on_again(self) -> None:
        self.scan_requested.emit()

    # ------------------------------------------------------------------------------------- helpers

    def _sync(self) -> bool:
        """Select the row of the chosen model where the search shows it, and nothing else."""
        row = self.rows.row_of_name(self._chosen_name)
        self._is_syncing = True
        select_row(self._list, row)
        self._is_syncing = False
        return row is not None
