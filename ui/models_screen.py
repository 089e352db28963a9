"""The Models screen at work: gives the panel what the library and the advisor know, and does what a person asks there.

Whatever touches the disk or an engine runs on the window's background tasks; the panel itself knows neither.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, QTimer, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices

from app.context import AppContext
from app.errors import Words
from app.i18n import _
from app.models.adding import Added, add_paths
from app.models.entry import ModelDefaults, ModelEntry
from app.models.fit_types import Measured
from app.models.library import DiskUse, ScanProgress
from app.models.removal import Deletion, can_undo, deletion_words
from app.models.scan_messages import ScanSummary
from backends import protocol
from backends.protocol import LifeCycle
from ui.bridge import Bridge
from ui.model_fits import ModelFits
from ui.notifications import NoticeBar, NoticeLevel, page_with_notices
from ui.panels.models_panel import ModelsPanel
from ui.quantize_screen import QuantizeScreen
from ui.tasks import Tasks
from ui.theme import Theme

# How often what is free now is looked at while the screen is shown.
_MACHINE_MS = 2000

# Settings that a load depends on.
_LOAD_SETTINGS = frozenset({"context_tokens", "kv_type", "threads"})


class ModelsScreen(QObject):
    """Connects the Models panel with the program's parts.

    Attributes:
        page: the whole screen: notices above the panel.
        notices: what went wrong here.
        panel: everything else.
        quantizing: the window that makes quantizations.
        _entries: what the panel shows, by key.
        _fits: works out whether each of them fits.
        _cancel: set when the window closes: ends what runs in the background.
        _deletion: what a person was asked about.
        _shown: the entry's key and the load that the panel shows as measured.
        _has_speeds: whether the fits say how fast each model would be.
        _is_scanning: whether the disk is being looked at.

    Signals:
        use_requested(entry): a person wants to chat with this model.
        models_changed(): the library has other models, or other words for them.
        file_requested(), folder_requested(): a person wants to choose what to add.
        shown_requested(): there is something to be seen on this screen.
        _progressed(progress), _hashed(key, fraction), _settings_changed(): from another thread.
    """

    use_requested = Signal(object)
    models_changed = Signal()
    file_requested = Signal()
    folder_requested = Signal()
    shown_requested = Signal()
    _progressed = Signal(object)
    _settings_changed = Signal()
    _hashed = Signal(object, float)

    def __init__(
        self, context: AppContext, bridge: Bridge, theme: Theme, tasks: Tasks, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self.panel = panel = ModelsPanel(theme)
        self.notices = NoticeBar(theme)
        self.page = page_with_notices(self.notices, panel)
        self.quantizing = QuantizeScreen(context, theme, tasks, self.page, self)
        self._context = context
        self._tasks = tasks
        self._uses = 0  # adds whose model is to be used: the last one counts
        self._entries: dict[str, ModelEntry] = {}
        self._cancel = threading.Event()
        self._fits = ModelFits(context.advisor, panel, tasks, self._cancel, self)
        self._is_scanning = False
        self._deletion: Deletion | None = None
        self._has_speeds = False
        self._shown: tuple[str, Measured | None] = ("", None)
        self._timer = QTimer(self)
        self._timer.setInterval(_MACHINE_MS)
        self._timer.timeout.connect(self._on_timeout)
        self._connect(bridge)

    def _connect(self, bridge: Bridge) -> None:
        panel = self.panel
        panel.use_requested.connect(self._on_use)
        panel.use_confirmed.connect(self._on_use_confirmed)
        panel.entry_chosen.connect(self._on_entry_chosen)
        panel.question_changed.connect(self._on_question_changed)
        panel.note_changed.connect(self._on_note_changed)
        panel.defaults_changed.connect(self._on_defaults_changed)
        panel.hash_requested.connect(self._on_hash)
        panel.folder_requested.connect(self._on_show_folder)
        panel.delete_requested.connect(self._on_delete)
        panel.delete_confirmed.connect(self._on_delete_confirmed)
        panel.forget_requested.connect(self._on_forget)
        panel.quantize_requested.connect(self.quantizing.open)
        self.quantizing.library_changed.connect(self.on_library_changed)
        panel.add_file_requested.connect(self.file_requested)
        panel.add_folder_requested.connect(self.folder_requested)
        panel.remove_folder_requested.connect(self._on_remove_folder)
        panel.scan_requested.connect(self.scan)
        bridge.engine_event.connect(self._on_engine_event)
        self._progressed.connect(self._on_progress)
        self._hashed.connect(panel.set_hashing)
        self._settings_changed.connect(self.refresh)
        self._stop_listening = self._context.settings.listen(self._on_settings)

    # ----------------------------------------------------------------------------------------- public

    @Slot()
    def refresh(self) -> None:
        """Show what the library has now, and work out what fits."""
        entries = self._context.library.entries()
        self._entries = {entry.key: entry for entry in entries}
        settings = self._context.settings.get()
        self.panel.set_question(settings.context_tokens, settings.kv_type)
        self.panel.set_entries(entries)
        self.panel.set_folders(self._context.library.folders())
        self._show_loaded()
        self._fits.work_out([entry for entry in entries if not entry.fault])
        self._tasks.run(self._context.library.disk_use, self._on_disk_use)

    def show(self) -> None:
        """Keep what is free up to date while the screen is shown."""
        self._on_timeout()
        self._timer.start()
        if self._context.engine.state is not LifeCycle.BUSY:  # it takes every core for a second
            self._tasks.run(self._context.advisor.learn_bandwidth, self._on_bandwidth)

    def hide(self) -> None:
        """Look at nothing any more."""
        self._timer.stop()

    def close(self) -> None:
        """End what runs in the background."""
        self._cancel.set()
        self.quantizing.close()
        self._timer.stop()
        self._stop_listening()

    def set_theme(self, theme: Theme) -> None:
        """Take over another theme's colours."""
        self.notices.set_theme(theme)
        self.panel.set_theme(theme)
        self.quantizing.set_theme(theme)

    @Slot()
    def scan(self) -> None:
        """Look through the folders for models; once at a time."""
        if self._is_scanning:
            return
        self._is_scanning = True
        self.panel.set_scan(1)
        library = self._context.library
        self._tasks.run(
            lambda: library.scan(self._progressed.emit, self._cancel), self._on_scanned, self._on_scan_failed
        )

    def add(self, paths: Sequence[Path], use: bool) -> None:
        """Add files and folders to the library; use the last model among them if wanted, and if no later add was."""
        library, number = self._context.library, self._uses + use
        self._uses = number
        self._tasks.run(lambda: add_paths(library, paths), lambda a: self._on_added(a, use and number == self._uses))

    # ------------------------------------------------------------------------------------- the panel's

    @Slot(object)
    def _on_entry_chosen(self, key: str) -> None:
        if (entry := self._entries.get(key)) is None or entry.fault:
            return
        self._show_measured()
        self._fits.ask(entry, self._context.load_params(entry), is_question=False)

    @Slot(object, object, str)
    def _on_question_changed(self, key: str, context_tokens: int, kv_type: str) -> None:
        entry = self._entries.get(key)
        if entry is None or entry.fault:
            return
        params = self._context.load_params(entry)
        params = msgspec.structs.replace(params, context_tokens=context_tokens, kv_type=kv_type or params.kv_type)
        self._fits.ask(entry, params, is_question=True)

    @Slot(object)
    def _on_use(self, key: str) -> None:
        if (entry := self._entries.get(key)) is not None and not entry.fault:
            self.use_requested.emit(entry)

    @Slot(object)
    def _on_use_confirmed(self, key: str) -> None:
        if (entry := self._entries.get(key)) is not None:
            self._context.gate.agree(entry, self._context.load_params(entry))
            self.use_requested.emit(entry)

    @Slot(object, str)
    def _on_note_changed(self, key: str, text: str) -> None:
        self._tasks.run(lambda: self._context.library.set_note(key, text), self.on_library_changed, self._on_failed)

    @Slot(object, object)
    def _on_defaults_changed(self, key: str, defaults: ModelDefaults) -> None:
        self._tasks.run(
            lambda: self._context.library.set_defaults(key, defaults), self.on_library_changed, self._on_failed
        )

    @Slot(object)
    def _on_hash(self, key: str) -> None:
        library = self._context.library

        def report(done: int, total: int) -> None:
            self._hashed.emit(key, done / total if total else 0.0)

        self.panel.set_hashing(key, 0.0)
        self._tasks.run(
            lambda: library.hash(key, report, self._cancel),
            lambda _sha256: self._on_hashed(key),
            lambda words: self._on_hash_failed(key, words),
        )

    @Slot(object)
    def _on_show_folder(self, key: str) -> None:
        entry = self._entries.get(key)
        if entry is not None:
            folder = entry.path if entry.path.is_dir() else entry.path.parent
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))

    @Slot(object)
    def _on_delete(self, key: str) -> None:
        library, in_use = self._context.library, self._in_use()
        self._tasks.run(lambda: library.delete_preview(key, in_use), lambda deletion: self._on_previewed(key, deletion))

    @Slot(object, bool)
    def _on_delete_confirmed(self, key: str, forever: bool) -> None:
        library, in_use, expected = self._context.library, self._in_use(), self._deletion
        entry = self._entries.get(key)
        if entry is None:
            return
        self._tasks.run(
            lambda: library.delete(key, forever=forever, in_use=in_use, expected=expected),
            lambda done: self._on_deleted(entry, done),
            lambda words: self._on_delete_failed(key, words),
        )

    @Slot(object)
    def _on_forget(self, key: str) -> None:
        self._tasks.run(lambda: self._context.library.remove(key), self.on_library_changed, self._on_failed)

    @Slot(object)
    def _on_remove_folder(self, path: Path) -> None:
        self._tasks.run(lambda: self._context.library.remove_folder(path), self.on_library_changed, self._on_failed)

    # ----------------------------------------------------------------------------- back from the tasks

    @Slot()
    def on_library_changed(self, _result: object = None) -> None:
        """Show what the library has now, and say that it changed."""
        self.refresh()
        self.models_changed.emit()

    def _on_bandwidth(self, bytes_per_s: float) -> None:
        if bytes_per_s and not self._has_speeds:
            self._has_speeds = True
            self._fits.work_out([entry for entry in self._entries.values() if not entry.fault])

    def _on_disk_use(self, use: DiskUse) -> None:
        self.panel.set_disk_use(use.on_disk_bytes, use.duplicate_bytes)

    @Slot(object)
    def _on_progress(self, progress: ScanProgress) -> None:
        self.panel.set_scan(1, progress.looked_count)

    def _on_scanned(self, summary: ScanSummary) -> None:
        self._is_scanning = False
        self.panel.set_scan(None)
        for number, problem in enumerate(summary.problems):
            self.tell(f"scan {number}", Words(problem), NoticeLevel.WARNING)
        for notice in self._context.library.notices():
            self.tell(notice, Words(notice), NoticeLevel.WARNING)
        self.on_library_changed(summary)

    def _on_scan_failed(self, words: Words) -> None:
        self._is_scanning = False
        self.panel.set_scan(None)
        self.tell("scan", words)

    def _on_added(self, added: Added, use: bool) -> None:
        self.on_library_changed(None)
        for path, words in added.problems.items():
            self.tell(f"file {path}", words)
        if added.folders:
            self.scan()
        for entry in added.entries:
            self._on_hash(entry.key)
        if added.entries:
            self.panel.choose(added.entries[-1].key)
        if added.entries and use:
            self.use_requested.emit(added.entries[-1])
        elif added.problems or added.folders:
            self.shown_requested.emit()

    def _on_hashed(self, key: str) -> None:
        self.panel.set_hashing(key, None)
        self.refresh()

    def _on_hash_failed(self, key: str, words: Words) -> None:
        self.panel.set_hashing(key, None)
        if not self._cancel.is_set():
            self.tell(f"hash {key}", words)

    def _on_previewed(self, key: str, deletion: Deletion) -> None:
        self._deletion = deletion
        self.panel.show_deletion(key, deletion)

    def _on_deleted(self, entry: ModelEntry, done: Deletion) -> None:
        key, words = f"deleted {entry.key}", deletion_words(entry.name, done)
        if can_undo(done):
            self.notices.show_notice(key, words, action_text=_("Undo"), callback=lambda: self._undo(key, entry, done))
        else:
            self.tell(key, Words(words), NoticeLevel.FACT)
        self.on_library_changed(done)

    def _undo(self, key: str, entry: ModelEntry, done: Deletion) -> None:
        self.notices.dismiss(key)
        library = self._context.library
        self._tasks.run(lambda: library.undo_delete(entry, done), self.on_library_changed, self._on_failed)

    def _on_failed(self, words: Words) -> None:
        self.tell(words.message, words)
        self.refresh()

    def _on_delete_failed(self, key: str, words: Words) -> None:
        self.tell(f"delete {key}", words)
        self.refresh()

    # ------------------------------------------------------------------------------------ the program's

    @Slot(object)
    def _on_engine_event(self, event: object) -> None:
        if isinstance(event, protocol.ModelLoaded | protocol.RequestFinished):
            self._show_loaded()
            self._show_measured()

    def _on_settings(self, _settings: object, changed: frozenset[str]) -> None:
        if changed & _LOAD_SETTINGS:
            self._settings_changed.emit()

    @Slot()
    def _on_timeout(self) -> None:
        self._show_measured()
        self._tasks.run(self._context.advisor.machine, self.panel.set_machine)

    def tell(self, key: str, words: Words, level: NoticeLevel = NoticeLevel.ERROR) -> None:
        """Show a notice on this screen."""
        self.notices.show_notice(key, words.message, words.hint, level)

    def _show_loaded(self) -> None:
        loaded, entry = self._context.engine.loaded, self._context.entry_in_use()
        if loaded is None or entry is None:
            self.panel.set_loaded("")
        else:
            self.panel.set_loaded(entry.key, loaded.kv_type, loaded.context_tokens)

    def _show_measured(self) -> None:
        """Show what the last load of the chosen model took, where that is new."""
        entry = self.panel.chosen_entry
        measured = self._context.advisor.measured(entry) if entry is not None else None
        if entry is not None and (entry.key, measured) != self._shown:
            self._shown = (entry.key, measured)
            self.panel.set_measured(entry.key, measured)

    def _in_use(self) -> tuple[Path, ...]:
        request = self._context.engine.request
        is_open = request is not None and bool(request.path) and self._context.engine.pid
        return (Path(request.path),) if request is not None and is_open else ()
