"""Behind the hub's tabs: the hub, the picks, the person's token, and what of it all is on this machine already.

The network is asked when a person asked, and at no other time. What is asked for takes the place of what was asked for
before.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Mapping

import msgspec
from PySide6.QtCore import QObject, QUrl, Signal, Slot
from PySide6.QtGui import QDesktopServices

from app.context import AppContext
from app.downloads.types import FileRef
from app.errors import Words
from app.hub.curated import Pick, load_curated, picks
from app.hub.hub_errors import HubErrorKind
from app.hub.tokens import TokenPlace
from app.hub.types import QuantizationRow, RepoDetail, RepoReference, SearchPage, SearchQuery
from app.models.fit_types import Fit
from app.models.http_faults import RemoteError
from app.models.model_name import without_format
from backends import protocol
from backends.client import EngineDied
from ui.bridge import Bridge
from ui.downloads_screen import DownloadsScreen
from ui.hub_questions import Fault, HubQuestions, Latest, fault_words
from ui.models.hub_choice import download_title, entries_here, repos_here, row_of_reference
from ui.panels.hub_panel import HubPanel
from ui.panels.models_panel import ModelsPanel
from ui.tasks import Tasks

_GATES = frozenset({HubErrorKind.GATED, HubErrorKind.NO_ACCESS, HubErrorKind.TOKEN_REFUSED})

Tell = Callable[[str, Words], None]


class HubScreen(QObject):
    """Connects the hub's parts of the Models panel with the program's parts.

    Attributes:
        panel: the parts.
        downloads: the same for the downloads.
        _detail: the repo that is shown.
        _wanted: which repo, revision and row were asked for last.
        _keyring_tasks: what waits for the system's keyring, and so for a person; nothing else waits behind it.

    Signals:
        use_requested(entry): a person wants to chat with this model of the library.
        models_changed(): the library has other models.
        _row_read(question, row, fit): from another thread.
    """

    use_requested = Signal(object)
    models_changed = Signal()
    _row_read = Signal(object, object, object)

    def __init__(
        self,
        context: AppContext,
        bridge: Bridge,
        panel: ModelsPanel,
        tasks: Tasks,
        tell: Tell,
        waiting: Tasks | None = None,
    ) -> None:
        """Connect everything.

        Args:
            context: the program's parts.
            bridge: brings the engine's events.
            panel: the Models screen.
            tasks: the window's background work.
            tell: shows a notice.
            waiting: for what waits for the network; None for threads of its own.
        """
        super().__init__(panel)
        self.panel: HubPanel = panel.hub
        self._models_panel = panel
        self._context = context
        self._network = context.network
        self._tasks = tasks
        self._questions = HubQuestions(self, waiting)
        self._keyring_tasks = Tasks(None, self, 1)
        self.downloads = DownloadsScreen(context, panel.hub, tasks, tell, self._questions)
        self._searching, self._looking, self._comparing = Latest(), Latest(), Latest()
        self._detail: RepoDetail | None = None
        self._wanted = RepoReference(repo="")
        self._connect(bridge)

    def _connect(self, bridge: Bridge) -> None:
        panel = self.panel
        panel.picks_requested.connect(self._on_picks)
        panel.search_requested.connect(self._on_search)
        panel.repo_requested.connect(self._on_repo)
        panel.publishers_requested.connect(self._on_publishers)
        panel.download_requested.connect(self._on_download)
        panel.use_requested.connect(self._on_use)
        panel.token_given.connect(self._on_token)
        panel.token_forgotten.connect(self._on_forget_token)
        panel.link_confirmed.connect(self._on_link)
        bridge.engine_event.connect(self._on_engine_event)
        self._row_read.connect(self._on_row_read)
        self.downloads.use_requested.connect(self.use_requested)
        self.downloads.models_changed.connect(self._on_models_changed)

    # ----------------------------------------------------------------------------------------- public

    def start(self) -> None:
        """Show the downloads that the last run left; nothing is asked of the network."""
        self.downloads.start()
        self.refresh()

    @Slot()
    def refresh(self) -> None:
        """Show what of the hub is on this machine now."""
        detail = self._detail
        rows = detail.rows if detail is not None else ()

        def look() -> tuple[dict[str, str], frozenset[str]]:
            entries = self._context.library.entries()
            return entries_here(rows, entries), repos_here(entries)

        self._tasks.run(look, lambda found: self.panel.set_here(*found))
        self.downloads.refresh()

    def close(self) -> None:
        """Take back every question and tell nothing more; downloads rest when the context is closed."""
        for latest in (self._searching, self._looking, self._comparing):
            latest.end()
        self.downloads.close()
        self._network.tokens.close()

    def finish(self) -> None:
        """Wait for what still runs; the window is hidden by then."""
        self._questions.wait_all()
        self._keyring_tasks.wait_all()

    # ------------------------------------------------------------------------------- searches and picks

    @Slot(object, bool)
    def _on_search(self, query: SearchQuery, is_refresh: bool) -> None:
        question, results = self._searching.begin(), self.panel.results
        results.show_searching()

        def work() -> tuple[SearchPage, RepoReference | None]:
            hub = self._network.hub
            page = hub.search(query, question, refresh=is_refresh)
            return page, hub.parse_reference(query.words)

        def done(found: tuple[SearchPage, RepoReference | None]) -> None:
            page, reference = found
            results.show_page(page)
            named = [one.repo for one in page.items]
            if (
                reference is not None
                and not query.cursor
                and [one.casefold() for one in named] == [reference.repo.casefold()]
            ):
                self._look_at(msgspec.structs.replace(reference, repo=named[0]), is_refresh=False)

        def fault(why: Fault) -> None:
            if isinstance(why, Words):
                results.show_fault(why)
            else:
                results.show_fault(why.words, why.retry_after_s, can_retry=bool(why.action))

        self._questions.ask(question, work, done, fault, results.show_slow)

    @Slot()
    def _on_picks(self) -> None:
        def work() -> tuple[list[Pick], str]:
            curated, advisor = load_curated(), self._context.advisor
            return picks(advisor.machine(), advisor.fit_shape, curated), curated.as_of

        self._tasks.run(work, lambda found: self.panel.set_picks(*found))

    # -------------------------------------------------------------------------------------------- repos

    @Slot(str, str, bool)
    def _on_repo(self, repo: str, wanted: str, is_refresh: bool) -> None:
        is_same = is_refresh and self._wanted.repo == repo
        self._look_at(self._wanted if is_same else RepoReference(repo=repo, quantization=wanted), is_refresh)

    def _look_at(self, reference: RepoReference, is_refresh: bool) -> None:
        """Show a repo, and read its headers."""
        question, view = self._looking.begin(), self.panel.view
        self._comparing.end()
        is_shown = self._detail is not None and self._detail.summary.repo == reference.repo
        self._wanted = reference
        if not (is_refresh and is_shown):
            self.panel.show_loading(reference.repo)
        view.set_busy(True)

        def done(detail: RepoDetail) -> None:
            view.set_busy(False)
            self._show(detail, question)

        def fault(why: Fault) -> None:
            view.set_busy(False)
            if not isinstance(why, Words) and why.kind in _GATES:
                view.show_gate(why.words, self._page_url(reference.repo))
                self._show_keeping()
            else:
                view.show_fault(fault_words(why), can_retry=isinstance(why, Words) or bool(why.action))

        def work() -> RepoDetail:
            return self._network.hub.detail(reference.repo, reference.revision, question, refresh=is_refresh)

        self._questions.ask(question, work, done, fault, lambda: view.show_slow(reference.repo))

    def _show(self, detail: RepoDetail, question: threading.Event) -> None:
        """Show a repo, and read the headers of its files."""
        self._detail = detail
        self.panel.set_repo(detail, row_of_reference(detail, self._wanted))
        advisor = self._context.advisor
        self._tasks.run(advisor.machine, self._models_panel.set_machine)
        self.refresh()
        if detail.summary.gated:
            self._show_keeping()

        def tell(row: QuantizationRow) -> None:
            fit = advisor.fit_shape(row.shape) if row.shape is not None and not row.is_broken else None
            self._row_read.emit(question, row, fit)

        self._questions.ask(
            question,
            lambda: self._network.hub.read_headers(detail, tell, question),
            self._on_headers,
            lambda _why: self._on_headers(detail),
        )

    @Slot(object, object, object)
    def _on_row_read(self, question: threading.Event, row: QuantizationRow, fit: Fit | None) -> None:
        if not question.is_set():
            self.panel.view.page.set_row(row, fit)

    def _on_headers(self, detail: RepoDetail) -> None:
        """Keep what the headers told; of rows that were not read nothing more will come."""
        rows = tuple(_settled(row) for row in detail.rows)
        self._detail = msgspec.structs.replace(detail, rows=rows)
        for row in rows:
            self.panel.view.page.set_row(row, None)
        self._refit()

    def _refit(self) -> None:
        """Work out again what fits of the repo that is shown."""
        detail = self._detail
        if detail is None:
            return
        advisor = self._context.advisor

        def work() -> Mapping[str, Fit]:
            return {
                row.key: advisor.fit_shape(row.shape)
                for row in detail.rows
                if row.shape is not None and not row.is_broken
            }

        def take(fits: Mapping[str, Fit]) -> None:
            if self._detail is detail:
                self.panel.view.page.set_fits(fits)

        self._tasks.run(work, take)

    @Slot(object)
    def _on_publishers(self, detail: RepoDetail) -> None:
        question, page = self._comparing.begin(), self.panel.view.page
        model = next(iter(detail.summary.base_models), without_format(detail.summary.name))

        def fault(why: Fault) -> None:
            words = fault_words(why)
            page.publishers.show_words(f"{words.message} {words.hint}".strip())

        self._questions.ask(
            question, lambda: self._network.hub.publishers(model, question), page.show_publishers, fault
        )

    # ------------------------------------------------------------------------------ downloads and models

    @Slot(object, str, object)
    def _on_download(self, detail: RepoDetail, key: str, files: tuple[FileRef, ...]) -> None:
        row = detail.row(key)
        if row is not None:
            branch = "" if self._wanted.revision else "main"
            self.downloads.add(download_title(detail, row), files, branch)

    @Slot(str)
    def _on_use(self, key: str) -> None:
        entry = next((one for one in self._context.library.entries() if one.key == key), None)
        if entry is not None and not entry.fault:
            self.use_requested.emit(entry)

    @Slot()
    def _on_models_changed(self) -> None:
        self.refresh()
        self.models_changed.emit()

    @Slot(object)
    def _on_engine_event(self, event: object) -> None:
        """Work out again what fits, since what is free has changed."""
        if isinstance(event, protocol.ModelLoaded | EngineDied):
            self._refit()

    # -------------------------------------------------------------------------------- token and licence

    @Slot(str)
    def _on_token(self, token: str) -> None:
        self.panel.view.set_busy(True)

        def keep() -> TokenPlace:
            return self._network.tokens.keep(self._network.hub.endpoint, token)

        def fault(words: Words) -> None:
            self.panel.view.set_busy(False)
            self.panel.view.show_token_fault(words)

        self._keyring_tasks.run(keep, self._on_token_kept, fault)

    def _on_token_kept(self, _place: TokenPlace) -> None:
        self._show_keeping()
        self.downloads.resume_waiting_for_token()
        if self.panel.repo:
            self._on_repo(self.panel.repo, "", True)
        else:
            self.panel.view.set_busy(False)

    @Slot()
    def _on_forget_token(self) -> None:
        def forget() -> None:
            self._network.tokens.forget(self._network.hub.endpoint)

        self._keyring_tasks.run(forget, lambda _nothing: self._show_keeping())

    def _show_keeping(self) -> None:
        """Say where a token is kept; the keyring is asked on a background thread."""

        def look() -> dict[str, bool]:
            tokens, endpoint = self._network.tokens, self._network.hub.endpoint
            place = tokens.place(endpoint)
            has_keyring = place is not TokenPlace.SESSION and tokens.has_keyring()
            is_silent = tokens.is_silent()
            return {"has_keyring": has_keyring, "has_token": place is not TokenPlace.NONE, "is_silent": is_silent}

        self._keyring_tasks.run(look, lambda found: self.panel.set_keeping(**found))

    @Slot(str)
    def _on_link(self, address: str) -> None:
        QDesktopServices.openUrl(QUrl(address, QUrl.ParsingMode.StrictMode))

    def _page_url(self, repo: str) -> str:
        with contextlib.suppress(RemoteError):
            return f"{self._network.clients.endpoint}/{repo}"
        return ""


def _settled(row: QuantizationRow) -> QuantizationRow:
    """Return a row about which nothing more will come: one that was not read is read no more."""
    is_open = row.state in ("unread", "reading") and row.shape is None
    return msgspec.structs.replace(row, state="failed") if is_open else row
