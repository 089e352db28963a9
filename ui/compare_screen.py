"""The Compare screen at work: gives the panel what is known, begins, stops and resumes comparisons.

A comparison runs on a thread of its own; what it says comes to the window's thread by a queued signal. Whatever else
touches the disk or an engine runs on background tasks; the panel itself knows neither.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, Qt, Signal, Slot

from app.compare.plan import ComparisonPlan, RunSpec
from app.compare.results import ComparisonResult
from app.compare.runner_events import ResultChanged, RunEnded, RunnerEvent
from app.context import AppContext
from app.errors import Words
from app.i18n import _
from app.models.entry import ModelEntry
from ui.compare_exports import CompareExports
from ui.compare_services import CompareServices, Runner, row_of
from ui.compare_setting_up import CompareSettingUp
from ui.models.compare_list_model import ComparisonRow
from ui.models.compare_progress import CompareProgress
from ui.notifications import NoticeBar, NoticeLevel, page_with_notices
from ui.panels.compare_panel import ComparePanel
from ui.tasks import Tasks
from ui.theme import Theme

Opened = tuple[ComparisonPlan, ComparisonResult]


class CompareScreen(QObject):
    """Connects the Compare panel with the program's parts.

    Attributes:
        page: the whole screen: notices above the panel.
        notices: what went wrong here.
        panel: everything else.
        setting_up: the page of a new comparison at work.
        exports: what can be taken out of a comparison.
        _work: the thread of the comparison under way, and no other.
        _runner: works it off; None while none does.
        _progress: how far it is.
        _running: its id; "" for none.
        _viewed: the comparison that is shown; "" for the setup page.

    Signals:
        use_requested(entry): a person wants to chat with this model.
        models_requested(): a person wants to see the models.
        quantize_requested(key): a person wants to make quantizations of this model.
        told(sentence): something that is worth knowing on every screen.
        _happened(comparison_id, event): from the runner's thread.
    """

    use_requested = Signal(object)
    models_requested = Signal()
    quantize_requested = Signal(object)
    told = Signal(str)
    _happened = Signal(str, object)

    def __init__(
        self,
        context: AppContext,
        theme: Theme,
        tasks: Tasks,
        parent: QObject | None = None,
        services: CompareServices | None = None,
    ) -> None:
        super().__init__(parent)
        self._context = context
        self._tasks = tasks
        self._services = services if services is not None else CompareServices(context)
        self.panel = panel = ComparePanel(theme)
        self.notices = NoticeBar(theme)
        self.page = page_with_notices(self.notices, panel)
        self.setting_up = CompareSettingUp(context, self._services, panel.setup, tasks, self)
        self.exports = CompareExports(panel.results, self._services.result_path, tasks, self)
        self._work = Tasks(None, self, 1)
        self._runner: Runner | None = None
        self._progress: CompareProgress | None = None
        self._running = ""
        self._viewed = ""
        self._has_rows = False
        self._is_closed = False
        self._connect()

    def _connect(self) -> None:
        panel = self.panel
        panel.models_requested.connect(self.models_requested)
        panel.quantize_requested.connect(self._on_quantize)
        panel.list.new_requested.connect(self.show_setup)
        panel.list.chosen.connect(self.open)
        panel.list.resume_requested.connect(self.resume)
        panel.list.delete_confirmed.connect(self._on_delete)
        panel.setup.start_requested.connect(self._on_start)
        panel.progress.stop_requested.connect(self._on_stop)
        panel.results.use_requested.connect(self._on_use)
        panel.results.resume_requested.connect(self._on_resume)
        self.exports.told.connect(self._on_exported)
        self.setting_up.told.connect(self._on_setup_told)
        self.setting_up.emptied.connect(self._on_nothing_to_compare)
        # queued: the runner's thread emits, the GUI thread receives, even where Qt cannot tell the two apart
        self._happened.connect(self._on_event, Qt.ConnectionType.QueuedConnection)

    # ----------------------------------------------------------------------------------------- public

    @property
    def running_id(self) -> str:
        """The comparison under way; "" for none."""
        return self._running

    @Slot()
    def refresh(self) -> None:
        """Show what comparisons and models there are now."""
        self.setting_up.refresh()
        self._tasks.run(self._services.rows, self._on_rows, self._on_failed)

    def show(self) -> None:
        """Predict how long a comparison takes while the screen is shown."""
        self.setting_up.set_shown(True)

    def hide(self) -> None:
        """Predict nothing any more."""
        self.setting_up.set_shown(False)

    def close(self) -> None:
        """Stop what runs; everything measured is kept."""
        self._is_closed = True
        self.setting_up.close()
        if self._runner is not None:
            self._runner.stop()

    def finish(self) -> None:
        """Wait until what was stopped has ended; the window is hidden by then."""
        self._work.wait_all()
        self.setting_up.finish()

    def set_theme(self, theme: Theme) -> None:
        """Take over another theme's colours."""
        self.notices.set_theme(theme)
        self.panel.set_theme(theme)

    @Slot()
    def show_setup(self) -> None:
        """Show the page of a new comparison, or why there can be none."""
        self._viewed = ""
        self.panel.list.choose("")
        if self.setting_up.has_models:
            self.panel.show_setup()
        else:
            source = self.setting_up.source
            self.panel.show_nothing_to_compare(source.name if source is not None else "")

    @Slot(str)
    def open(self, comparison_id: str) -> None:
        """Show a comparison: how far it is while it runs, else what it found."""
        self._viewed = comparison_id
        self.panel.list.choose(comparison_id)
        if comparison_id == self._running:
            self._show_progress()
            return
        services = self._services
        self._tasks.run(
            lambda: services.open(comparison_id),
            self._on_opened,
            lambda words: self._on_not_opened(comparison_id, words),
        )

    @Slot(str)
    def resume(self, comparison_id: str) -> None:
        """Let a comparison go on where it stopped."""
        services = self._services
        self._tasks.run(lambda: services.open(comparison_id), self._begin, self._on_failed)

    def tell(self, key: str, words: Words, level: NoticeLevel = NoticeLevel.ERROR) -> None:
        """Show a notice on this screen."""
        self.notices.show_notice(key, words.message, words.hint, level)

    # ------------------------------------------------------------------------------------- the panel's

    @Slot()
    def _on_start(self) -> None:
        if self._running:
            return
        choice, entries, services = self.panel.setup.choice, self.setting_up.entries, self._services
        self.panel.setup.set_can_start(False)
        self.setting_up.pause()
        self._tasks.run(
            lambda: services.create(choice, entries),
            lambda plan: self._begin((plan, ComparisonResult(comparison_id=plan.comparison_id))),
            self._on_not_started,
        )

    @Slot()
    def _on_stop(self) -> None:
        if self._runner is not None and self._progress is not None:
            self._runner.stop()
            self._progress.stopping()
            self.panel.progress.set_stopping(True)
            self._show_progress()

    @Slot()
    def _on_resume(self) -> None:
        if self._viewed:
            self.resume(self._viewed)

    @Slot(str)
    def _on_delete(self, comparison_id: str) -> None:
        services = self._services
        self._tasks.run(
            lambda: services.delete(comparison_id), lambda _none: self._on_deleted(comparison_id), self._on_failed
        )

    @Slot(object)
    def _on_use(self, run_id: str) -> None:
        shown, services = self.panel.results.shown, self._services
        spec = shown[0].run(run_id) if shown is not None else None
        entry = self._entry_of(spec) if spec is not None else None
        if spec is not None and entry is not None:
            found = entry
            self._tasks.run(lambda: services.keep_kv_type(found, spec), self.use_requested.emit, self._on_failed)

    @Slot(object)
    def _on_setup_told(self, words: Words) -> None:
        self.tell(f"setup {words.message}", words)

    @Slot()
    def _on_quantize(self) -> None:
        source = self.setting_up.source
        if source is not None:
            self.quantize_requested.emit(source.key)

    @Slot(object, bool)
    def _on_exported(self, words: Words, is_error: bool) -> None:
        self.tell("export", words, NoticeLevel.ERROR if is_error else NoticeLevel.FACT)

    @Slot()
    def _on_nothing_to_compare(self) -> None:
        if self._has_rows and not self._viewed:
            self.show_setup()

    # ----------------------------------------------------------------------------- back from the tasks

    def _on_rows(self, rows: list[ComparisonRow]) -> None:
        is_first, self._has_rows = not self._has_rows, True
        known = [self._running_row() or row if row.comparison_id == self._running else row for row in rows]
        self.panel.list.set_rows(known)
        if self._viewed:
            return
        newest = max(rows, key=lambda row: row.created_s, default=None)
        if self._running:
            self.open(self._running)
        elif is_first and newest is not None and not newest.fault:
            self.open(newest.comparison_id)
        else:
            self.show_setup()

    def _on_opened(self, opened: Opened) -> None:
        plan, result = opened
        if plan.comparison_id != self._viewed or plan.comparison_id == self._running:
            return
        self._show_result(plan, result)

    def _on_not_opened(self, comparison_id: str, words: Words) -> None:
        if comparison_id == self._viewed:
            self.panel.show_fault(" ".join(filter(None, (words.message, words.hint))))

    def _begin(self, opened: Opened) -> None:
        """Begin a comparison, or let it go on; one at a time."""
        plan, result = opened
        if self._running or self._is_closed:
            return
        comparison_id = plan.comparison_id
        self._running = self._viewed = comparison_id
        self._progress = CompareProgress(plan, result)
        self.setting_up.pause()
        self._show_can_start()
        self.panel.progress.set_stopping(False)
        self.panel.list.put(self._running_row() or row_of(plan, result))
        self.open(comparison_id)
        self._work.run(
            lambda: self._worked(comparison_id),
            lambda ended: self._on_ended(comparison_id, ended),
            lambda words: self._on_broken(comparison_id, words),
        )

    def _worked(self, comparison_id: str) -> ComparisonResult:
        """Work a comparison off; on the thread of its own."""
        runner = self._services.runner(comparison_id)
        self._runner = runner
        if self._is_closed:
            runner.stop()
        return runner.run(lambda event: self._happened.emit(comparison_id, event))

    def _on_not_started(self, words: Words) -> None:
        self.tell("start", words)
        self._show_can_start()

    def _on_ended(self, comparison_id: str, result: ComparisonResult) -> None:
        progress = self._progress
        self._end()
        if progress is None or self._is_closed:
            return
        self.panel.list.put(row_of(progress.plan, result))
        if self._viewed == comparison_id:
            self._show_result(progress.plan, result)
        if result.state == "done":
            words = _("The comparison of {title} is finished.").format(title=progress.plan.title)
            self.told.emit(" ".join(filter(None, (words, result.sentence))))

    def _on_broken(self, comparison_id: str, words: Words) -> None:
        self._end()
        if self._is_closed:
            return
        self.tell(f"run {comparison_id}", words)
        self.refresh()
        if self._viewed == comparison_id:
            self.open(comparison_id)

    def _on_deleted(self, comparison_id: str) -> None:
        if self._viewed == comparison_id:
            self._viewed = ""
            self.show_setup()
        self.refresh()

    def _on_failed(self, words: Words) -> None:
        self.tell(words.message, words)

    # ------------------------------------------------------------------------------------ the runner's

    @Slot(str, object)
    def _on_event(self, comparison_id: str, event: RunnerEvent) -> None:
        if comparison_id != self._running or self._progress is None or self._is_closed:
            return
        self._progress.take(event)
        if isinstance(event, RunEnded | ResultChanged):
            row = self._running_row()
            if row is not None:
                self.panel.list.put(row)
        if self._viewed == comparison_id:
            self._show_progress()

    # ------------------------------------------------------------------------------------- helpers

    def _end(self) -> None:
        self._runner, self._progress, self._running = None, None, ""
        self.panel.list.set_running("")
        self._show_can_start()

    def _show_can_start(self) -> None:
        is_free = not self._running
        self.panel.list.set_running(self._running)
        self.panel.setup.set_can_start(is_free)
        self.panel.results.set_can_resume(is_free)
        self.setting_up.set_free(is_free)

    def _show_progress(self) -> None:
        if self._progress is not None:
            self.panel.progress.show_progress(self._progress)
            self.panel.show_progress()

    def _show_result(self, plan: ComparisonPlan, result: ComparisonResult) -> None:
        usable = frozenset(run.run_id for run in plan.runs if self._entry_of(run) is not None)
        self.panel.results.show_result(plan, result, usable)
        self.panel.results.set_can_resume(not self._running)
        self.panel.show_results()

    def _running_row(self) -> ComparisonRow | None:
        """Return how the comparison under way is listed."""
        if self._progress is None:
            return None
        plan, result = self._progress.plan, self._progress.result
        row = row_of(plan, result or ComparisonResult(comparison_id=plan.comparison_id))
        return ComparisonRow(row.comparison_id, row.title, row.created_s, "running", row.done_runs, row.all_runs)

    def _entry_of(self, spec: RunSpec) -> ModelEntry | None:
        """Return the library's model of a run; None where it is gone or damaged."""
        entries = self._context.library.entries()
        return next((one for one in entries if one.key == spec.key and not one.fault), None)
