"""The hub's parts of the models screen and how they go together.

Two tabs at the left, one repo or the downloads at the right, the line at the foot: the models panel places them.
Knows no hub and no queue: `ui/hub_screen.py` answers its signals.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QStackedWidget

from app.downloads.types import Download, DownloadState, FileRef
from app.errors import Words
from app.hub.curated import Pick
from app.hub.recommend import Recommendation
from app.hub.types import RepoDetail, SearchQuery
from app.i18n import _
from app.models.fit_types import Machine
from ui.models.download_words import Button
from ui.panels.download_announcer import DownloadAnnouncer, announce_from
from ui.panels.download_list import DownloadList
from ui.panels.download_strip import DownloadStrip
from ui.panels.hub_list_panel import HubListPanel
from ui.panels.hub_picks_panel import HubPicksPanel
from ui.panels.hub_view import HubView
from ui.theme import Theme

PICKED: Final = "picked"
HUB: Final = "hub"


class HubPanel(QObject):
    """The parts.

    Attributes:
        picks: the tab "Picked for you".
        results: the tab "Hub", with its search field.
        view: one repo.
        downloads: the list of downloads.
        strip: the line at the foot.
        right: the view or the list of downloads.

    Signals:
        picks_requested(): the picks are shown for the first time.
        search_requested(SearchQuery, is_refresh): a person looks for something.
        repo_requested(repo, wanted, is_refresh): a person wants to see a repo, and a certain row of it or none.
        publishers_requested(RepoDetail): a person wants to see who else offers this.
        download_requested(RepoDetail, key, files): a person wants these files of a row.
        download_pressed(download_id, Button): a person wants this done with a download.
        use_requested(key): a person wants to chat with this entry of the library.
        path_use_requested(path): the same, with a file that was just downloaded.
        token_given(token), token_forgotten(): a person gave a token, or wants it removed.
        link_confirmed(address): a person saw where a link leads and wants it opened.
        downloads_toggled(is_open): the list of downloads comes to the right side, or goes.
    """

    picks_requested = Signal()
    search_requested = Signal(object, bool)
    repo_requested = Signal(str, str, bool)
    publishers_requested = Signal(object)
    download_requested = Signal(object, str, object)
    download_pressed = Signal(str, object)
    use_requested = Signal(str)
    path_use_requested = Signal(object)
    token_given = Signal(str)
    token_forgotten = Signal()
    link_confirmed = Signal(str)
    downloads_toggled = Signal(bool)

    def __init__(self, theme: Theme, parent: QObject | None = None, now: Callable[[], float] = time.time) -> None:
        super().__init__(parent)
        self._has_picks = False
        self._repo = ""
        self._downloads: Sequence[Download] = ()
        self._here: Mapping[str, str] = {}
        self._wanted_words: Words | None = None
        self.picks = HubPicksPanel(theme)
        self.results = HubListPanel(theme)
        self.view = HubView(theme, now)
        self.downloads = DownloadList(theme)
        self.strip = DownloadStrip(theme)
        self.right = QStackedWidget()
        self.right.addWidget(self.view)
        self.right.addWidget(self.downloads)
        self._announcer = DownloadAnnouncer(announce_from(self.strip))
        self._connect()

    def _connect(self) -> None:
        page = self.view.page
        for side in (self.picks, self.results):
            side.repo_chosen.connect(self._on_repo_chosen)
            side.entered.connect(self.view.focus_table)
        self.results.search_requested.connect(self._on_search)
        self.results.refresh_requested.connect(self._on_refresh)
        self.view.retry_requested.connect(self._on_retry)
        self.view.token_given.connect(self.token_given)
        self.view.token_forgotten.connect(self.token_forgotten)
        self.view.link_confirmed.connect(self.link_confirmed)
        page.download_requested.connect(self._on_download)
        page.download_pressed.connect(self._on_pressed)
        page.use_requested.connect(self._on_use)
        page.publishers.publishers_requested.connect(self._on_publishers)
        page.publishers.repo_chosen.connect(self._on_repo_chosen)
        self.downloads.pressed.connect(self._on_pressed)
        self.downloads.left.connect(self.close_downloads)
        self.strip.clicked.connect(self._on_strip)

    # ------------------------------------------------------------------------------------- public

    @property
    def repo(self) -> str:
        """The repo that is shown, or is being asked for; "" for none."""
        return self._repo

    @property
    def is_showing_downloads(self) -> bool:
        """Whether the list of downloads is at the right."""
        return self.right.currentWidget() is self.downloads

    def show_tab(self, key: str) -> None:
        """Take note of the tab that is shown now: PICKED, HUB or another one."""
        if key == PICKED and not self._has_picks:
            self._has_picks = True
            self.picks_requested.emit()
        self.close_downloads()

    def set_picks(self, picks: Sequence[Pick], as_of: str) -> None:
        """Show the models that suit this machine."""
        self.picks.set_picks(picks, as_of)

    def show_loading(self, repo: str) -> None:
        """Say that a repo is being asked for."""
        self._repo = repo
        self._mark()
        self.view.show_loading(repo)

    def set_repo(self, repo: RepoDetail, wanted: str = "") -> None:
        """Show a repo, and a certain row of it."""
        self._repo = repo.summary.repo
        self._mark()
        self.view.set_repo(repo, wanted, self._pick(repo))
        self.view.page.set_downloads(self._downloads)
        if self._wanted_words is not None:
            self.view.page.show_token_card(self._wanted_words)
            self._wanted_words = None

    def set_machine(self, machine: Machine) -> None:
        """Take over what there is to fit into now."""
        self.view.page.set_machine(machine)
        self.results.set_machine(machine)

    def set_here(self, here: Mapping[str, str], repos: frozenset[str]) -> None:
        """Say what is on this machine.

        Args:
            here: of the repo that is shown, the library's key by the row's.
            repos: of which repos something is here.
        """
        self._here = here
        self.view.page.set_here(here)
        self.picks.set_here(repos)
        self.results.set_here(repos)

    def set_downloads(self, downloads: Sequence[Download], changed: Sequence[Download] | None = None) -> None:
        """Show how far these are.

        Args:
            downloads: all of them.
            changed: those that are different now; None when nothing of it is news.
        """
        shown = [one for one in downloads if not _is_over(one)]
        self._downloads = shown
        if changed is None:
            self._announcer.start_with(shown)
        else:
            self._announcer.tell(changed, shown)
        self.strip.set_downloads(shown)
        self.downloads.set_downloads(shown)
        self.view.page.set_downloads(shown)
        if not shown and self.is_showing_downloads:
            self.close_downloads()

    def set_keeping(self, *, has_keyring: bool, has_token: bool, is_silent: bool = False) -> None:
        """Say where a token is kept, and whether one is known; see TokenCard."""
        for card in self.view.cards:
            card.set_keeping(has_keyring=has_keyring, has_token=has_token, is_silent=is_silent)

    def show_downloads(self) -> None:
        """Bring the list of downloads to the right side."""
        self.right.setCurrentWidget(self.downloads)
        self.strip.setChecked(True)
        self.downloads_toggled.emit(True)
        self.downloads.focus_first()

    def close_downloads(self) -> None:
        """Go back from the list of downloads."""
        self.strip.setChecked(False)
        if self.is_showing_downloads:
            self.right.setCurrentWidget(self.view)
            self.downloads_toggled.emit(False)

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        for part in (self.picks, self.results, self.view, self.downloads, self.strip):
            part.set_theme(theme)

    # ------------------------------------------------------------------------------------- slots

    def _on_repo_chosen(self, repo: str) -> None:
        self.close_downloads()
        self.repo_requested.emit(repo, "", False)

    def _on_retry(self) -> None:
        if self._repo:
            self.repo_requested.emit(self._repo, "", True)

    def _on_search(self, query: SearchQuery) -> None:
        self.close_downloads()
        self.search_requested.emit(query, False)

    def _on_refresh(self, query: SearchQuery) -> None:
        self.search_requested.emit(query, True)

    def _on_publishers(self) -> None:
        repo = self.view.page.repo
        if repo is not None:
            self.view.page.publishers.show_looking()
            self.publishers_requested.emit(repo)

    def _on_download(self, key: str, files: tuple[FileRef, ...]) -> None:
        repo = self.view.page.repo
        if repo is not None:
            self.download_requested.emit(repo, key, files)

    def _on_use(self, key: str) -> None:
        entry_key = self._here.get(key, "")
        download = self.view.page.table.quantizations.download(key)
        if entry_key:
            self.use_requested.emit(entry_key)
        elif download is not None and download.path is not None:
            self.path_use_requested.emit(download.path)

    def _on_pressed(self, download_id: str, button: Button) -> None:
        download = next((one for one in self._downloads if one.download_id == download_id), None)
        if download is None:
            return
        if button is Button.USE:
            self.path_use_requested.emit(download.path)
        elif button in (Button.TOKEN, Button.CHOOSE) and download.files:
            self._show_repo_of(download, button)
        else:
            self.download_pressed.emit(download_id, button)

    def _show_repo_of(self, download: Download, button: Button) -> None:
        """Show the repo of a download: for its token card, or to choose another row."""
        repo = download.files[0].repo
        self.close_downloads()
        words = download.words or Words(_("The hub gives these files only with a token."))
        shown = self.view.page.repo
        if button is Button.TOKEN and shown is not None and shown.summary.repo == repo:
            self.view.page.show_token_card(words)
            return
        self._wanted_words = words if button is Button.TOKEN else None
        self.repo_requested.emit(repo, "", False)

    def _on_strip(self) -> None:
        if self.is_showing_downloads:
            self.close_downloads()
        else:
            self.show_downloads()

    def _pick(self, repo: RepoDetail) -> Recommendation | None:
        """Return what was picked of a repo for this machine, where it has that row."""
        pick = self.picks.pick_of(repo.summary.repo)
        row = repo.row(pick.quantization) if pick is not None else None
        return Recommendation(row.key, pick.reason) if pick is not None and row is not None else None

    def _mark(self) -> None:
        for side in (self.picks, self.results):
            side.view.choose(self._repo)


def _is_over(download: Download) -> bool:
    """Whether nothing is left of a download that was cancelled."""
    return download.state is DownloadState.CANCELLED and not download.done_bytes
