"""The models screen: models at the left (picked, at the hub, on this machine), the quantizations of one at the right.

Knows no library, no hub, no engine and no disk: every wish is a signal, and the screen changes when it is given new
values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeySequence, QResizeEvent, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QStackedWidget, QWidget

from app.errors import Words
from app.i18n import _, ngettext
from app.models.entry import ModelEntry
from app.models.fit_types import Fit, Machine, Measured
from app.models.removal import Deletion
from app.units import bytes_text, count_text
from ui.models.model_choice import NamedModel
from ui.panels.hub_panel import HUB, HubPanel
from ui.panels.model_list_panel import HERE, ModelListPanel
from ui.panels.model_page import ModelPage
from ui.theme import Theme
from ui.widgets.empty_state import EmptyState

# The list's width, and its width in a small window.
_LIST_PX: Final = 320
_NARROW_LIST_PX: Final = 256
_NARROW_BELOW_PX: Final = 1016
_SEARCH_KEYS: Final = ("Ctrl+F", "/")


class ModelsPanel(QWidget):
    """The models screen.

    Attributes:
        list: the left column.
        page: the right side for what is on this machine.
        hub: the hub's parts, and the downloads.

    Signals:
        use_requested(key): a person wants to chat with this entry.
        use_confirmed(key): a person was asked by show_confirmation() and wants to load it anyway.
        entry_chosen(key): this entry is shown now; what a load of it took may be given with set_measured().
        question_changed(key, context_tokens, kv_type): a person asks about another load; answered by set_answer().
        note_changed(key, text), defaults_changed(key, ModelDefaults): a person wrote something to be kept.
        hash_requested(key): a person wants the SHA-256; set_hashing() shows how far it is.
        folder_requested(key): a person wants to see the file in the system's file manager.
        delete_requested(key): a person wants the files deleted; answered by show_deletion().
        delete_confirmed(key, forever): a person said how; False is the trash.
        forget_requested(key): a person wants this entry off the list; the file stays.
        quantize_requested(key): a person wants other quantizations made of this entry.
        add_file_requested(), add_folder_requested(): a person wants to choose what to add.
        remove_folder_requested(path): a person wants a folder not to be looked in any more.
        scan_requested(): a person wants the disk to be looked at again.
        told(str): a sentence about an export.
    """

    use_requested = Signal(object)
    use_confirmed = Signal(object)
    entry_chosen = Signal(object)
    question_changed = Signal(object, object, str)
    note_changed = Signal(object, str)
    defaults_changed = Signal(object, object)
    hash_requested = Signal(object)
    folder_requested = Signal(object)
    delete_requested = Signal(object)
    delete_confirmed = Signal(object, bool)
    forget_requested = Signal(object)
    quantize_requested = Signal(object)
    add_file_requested = Signal()
    add_folder_requested = Signal()
    remove_folder_requested = Signal(object)
    scan_requested = Signal()
    told = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._entries: tuple[ModelEntry, ...] = ()
        self._has_entries = False
        self._scan_words = ""
        self.hub = HubPanel(theme, self)
        self.list = ModelListPanel(theme, self.hub)
        self.page = ModelPage(theme)
        self._empty = EmptyState("")
        self._pages = QStackedWidget()
        self._sides = QStackedWidget()
        self._build()
        self._connect()
        self.show_loading()

    # ------------------------------------------------------------------------------------- public

    @property
    def chosen_entry(self) -> ModelEntry | None:
        """The entry that is shown, or None."""
        return self.page.table.chosen_entry if self._pages.currentWidget() is self.page else None

    def show_tab(self, key: str) -> None:
        """Show a tab: PICKED, HUB or HERE."""
        self.list.show_tab(key)
        self.hub.show_tab(key)
        self._sides.setCurrentWidget(self._pages if key == HERE else self.hub.right)

    def show_loading(self) -> None:
        """Say that model files are being looked for."""
        self._empty.show_words(_("Looking for model files…"))
        self._pages.setCurrentWidget(self._empty)

    def set_entries(self, entries: Sequence[ModelEntry]) -> None:
        """Show the library's entries; the chosen one stays chosen."""
        self._entries = tuple(entries)
        self._has_entries = True
        self.list.set_entries(self._entries)
        model = self._model_to_show()
        if model is None:
            self._show_nothing()
            return
        chosen = self.chosen_entry
        self._pages.setCurrentWidget(self.page)
        self.list.choose(model.name)
        self._show_model(model, chosen.key if chosen is not None else "")

    def set_fits(self, fits: Mapping[str, Fit]) -> None:
        """Show whether each entry fits, by key; an entry that is missing is being worked out."""
        self.list.set_fits(fits)
        self.page.set_fits(fits)

    def set_answer(self, key: str, fit: Fit) -> None:
        """Show the answer to question_changed()."""
        self.page.set_answer(key, fit)

    def set_machine(self, machine: Machine) -> None:
        """Show what there is to fit into now."""
        self.page.set_machine(machine)
        self.hub.set_machine(machine)

    def set_measured(self, key: str, measured: Measured | None) -> None:
        """Show what a load of an entry took; None when there was none."""
        self.page.set_measured(key, measured)

    def set_loaded(self, key: str, kv_type: str = "", context_tokens: int = 0) -> None:
        """Mark the entry that is in use and say how it was loaded; "" for none."""
        tokens = _("{count} tokens").format(count=count_text(context_tokens)) if context_tokens else ""
        words = _("Loaded: {facts}").format(facts=" · ".join(filter(None, (tokens, kv_type))))
        self.list.rows.set_loaded(key)
        self.page.set_loaded(key, words if key else "")

    def set_question(self, context_tokens: int, kv_type: str) -> None:
        """Take over how the settings load a model: what is asked unless a model has defaults of its own."""
        self.page.set_question(context_tokens, kv_type)

    def set_scan(self, places_count: int | None, files_count: int = 0) -> None:
        """Say how far the look at the disk is: in how many places, how many files so far; None when it has ended."""
        self._scan_words = "" if places_count is None else _scan_words(places_count, files_count)
        self.list.set_scan(self._scan_words)
        if self._has_entries and not self._entries:
            self._show_nothing()

    def set_disk_use(self, on_disk_bytes: int, duplicate_bytes: int) -> None:
        """Say what the library takes on disk, and how much of it are copies."""
        count = len(self.list.rows.all_models)
        words = ngettext("{count} model", "{count} models", count).format(count=count_text(count))
        if on_disk_bytes:
            words = f"{words} · {bytes_text(on_disk_bytes)}"
        if duplicate_bytes:
            words = _("{use}; {size} are copies").format(use=words, size=bytes_text(duplicate_bytes))
        self.list.set_disk(words if count else "")

    def set_folders(self, folders: Sequence[Path]) -> None:
        """Offer to stop looking in these folders, which a person added."""
        self.list.set_folders(folders)

    def set_hashing(self, key: str, fraction: float | None) -> None:
        """Show how far the hashing of an entry is, 0 to 1; None when it has ended."""
        entry = self.page.detail.entry
        if entry is not None and entry.key == key:
            self.page.detail.file.set_hashing(fraction)

    def show_deletion(self, key: str, deletion: Deletion) -> None:
        """Ask how an entry is to be deleted, or say why it cannot be."""
        if self._is_shown(key):
            self.page.detail.show_deletion(deletion)

    def show_confirmation(self, key: str, words: Words) -> None:
        """Ask before a load; answered by use_confirmed()."""
        if self._is_shown(key):
            self.page.detail.show_confirmation(words)

    def choose(self, key: str) -> None:
        """Show an entry; nothing happens when it is not there."""
        if self.list.choose_entry(key):
            model = self.list.chosen_model
            if model is not None:
                self._show_model(model, key)

    def set_theme(self, theme: Theme) -> None:
        """Take over a theme's colours."""
        self.list.set_theme(theme)
        self.page.set_theme(theme)
        self.hub.set_theme(theme)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Make the list narrower in a small window."""
        super().resizeEvent(event)
        self.list.setFixedWidth(_NARROW_LIST_PX if self.width() < _NARROW_BELOW_PX else _LIST_PX)

    # ------------------------------------------------------------------------------------- build

    def _build(self) -> None:
        self.list.setFixedWidth(_LIST_PX)
        self._pages.addWidget(self.page)
        self._pages.addWidget(self._empty)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(self.list)
        self._sides.addWidget(self._pages)
        self._sides.addWidget(self.hub.right)
        row.addWidget(self._sides, 1)
        for keys in _SEARCH_KEYS:
            shortcut = QShortcut(QKeySequence(keys), self)
            shortcut.setContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
            shortcut.activated.connect(self.list.go_to_search)

    def _connect(self) -> None:
        detail, table = self.page.detail, self.page.table
        self.list.tab_chosen.connect(self.show_tab)
        self.hub.search_requested.connect(self._on_hub_search)
        self.hub.picks.search_requested.connect(self._on_hub_wanted)
        self.hub.downloads_toggled.connect(self._on_downloads_toggled)
        self.list.model_chosen.connect(self._on_model_chosen)
        self.list.entered.connect(table.setFocus)
        self.list.add_file_requested.connect(self.add_file_requested)
        self.list.add_folder_requested.connect(self.add_folder_requested)
        self.list.remove_folder_requested.connect(self.remove_folder_requested)
        self.list.scan_requested.connect(self.scan_requested)
        self._empty.action_requested.connect(self.add_file_requested)
        table.action_requested.connect(self.use_requested)
        table.delete_requested.connect(self._on_delete_key)
        self.page.entry_chosen.connect(self.entry_chosen)
        detail.use_requested.connect(self.use_requested)
        detail.use_confirmed.connect(self.use_confirmed)
        detail.forget_requested.connect(self.forget_requested)
        detail.quantize_requested.connect(self.quantize_requested)
        detail.delete_requested.connect(self.delete_requested)
        detail.delete_confirmed.connect(self.delete_confirmed)
        detail.question_changed.connect(self.question_changed)
        detail.defaults_changed.connect(self.defaults_changed)
        detail.confirm.left.connect(table.setFocus)
        detail.memory.told.connect(self.told)
        detail.file.folder_requested.connect(self.folder_requested)
        detail.file.hash_requested.connect(self.hash_requested)
        detail.file.note_changed.connect(self.note_changed)

    # ------------------------------------------------------------------------------------- slots

    def _on_hub_search(self, _query: object, _is_refresh: bool) -> None:
        if self.list.tab != HUB:
            self.show_tab(HUB)

    def _on_hub_wanted(self) -> None:
        self.show_tab(HUB)
        self.list.go_to_search()

    def _on_downloads_toggled(self, is_open: bool) -> None:
        is_here = self.list.tab == HERE and not is_open
        self._sides.setCurrentWidget(self._pages if is_here else self.hub.right)

    def _on_model_chosen(self, model: NamedModel) -> None:
        self.hub.close_downloads()
        self._show_model(model, "")

    def _on_delete_key(self, key: str) -> None:
        button = self.page.detail.delete_button
        if not button.isHidden() and button.isEnabled():
            self.delete_requested.emit(key)

    # ------------------------------------------------------------------------------------- helpers

    def _show_model(self, model: NamedModel, key: str) -> None:
        before = self.page.detail.entry
        self.page.set_model(model, self._entries, key)
        entry = self.page.detail.entry
        if entry is not None and (before is None or before.key != entry.key):
            self.entry_chosen.emit(entry.key)

    def _model_to_show(self) -> NamedModel | None:
        """Return the model that is shown already, whether the search shows it or not, else the first one."""
        shown = self.page.model
        models = self.list.rows.all_models
        same = next((model for model in models if shown is not None and model.is_same_as(shown)), None)
        return same or next(iter(models), None)

    def _is_shown(self, key: str) -> bool:
        entry = self.page.detail.entry
        return entry is not None and entry.key == key

    def _show_nothing(self) -> None:
        if self._scan_words:
            self._empty.show_words(self._scan_words, _("Add a model file…"))
        else:
            self._empty.show_words(_("There is no model file on this machine yet."), _("Add a model file…"))
        self._pages.setCurrentWidget(self._empty)


def _scan_words(places: int, files: int) -> str:
    words = _("Looking for models…")
    if places > 1:
        words = _("Looking in {count} places…").format(count=count_text(places))
    if not files:
        return words
    found = ngettext("{count} file", "{count} files", files).format(count=count_text(files))
    return f"{words} {found}"
