"""One repo of the hub: what it is, which of its quantizations to take, how far their downloads are, who else offers it.

Knows no hub and no queue: it is given values, and passes on the wishes of its parts.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec
from PySide6.QtCore import QTimer, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QSizePolicy, QWidget

from app.downloads.types import Download, FileRef
from app.errors import Words
from app.hub.access import access_words
from app.hub.hub_errors import stale_words
from app.hub.recommend import Recommendation
from app.hub.types import Publisher, QuantizationRow, RepoDetail
from app.i18n import _
from app.models.fit_types import Fit, Machine, Verdict
from ui.models.download_words import Button, is_pausable
from ui.models.hub_choice import (
    downloads_by_row,
    files_of,
    projector_of,
    published_figures,
    recommendation,
    usual_key,
)
from ui.models.hub_words import banner_text, facts_line, files_text, model_title
from ui.panels.hub_publishers import HubPublishers
from ui.panels.hub_row_detail import HubRowDetail
from ui.panels.hub_table import HubTable
from ui.panels.token_card import TokenCard
from ui.theme import READING_PX, Theme, ui_font
from ui.widgets.labels import ElidedLabel
from ui.widgets.wide_page import WidePage
from ui.widgets.wrapped_label import WrappedLabel

_MOST_PX: Final = 1360


class HubPage(WidePage):
    """One repo.

    Attributes:
        table: its quantizations.
        detail: the chosen one.
        token: the card for gated files.
        publishers: who offers it.
        card_button: shows the model card.

    Signals:
        download_requested(key, files): a person wants these files of a row.
        use_requested(key): a person wants to chat with a row that is on this machine.
        download_pressed(download_id, Button): a person wants this done with a download.
        refresh_requested(): a person wants the hub to be asked again.
        card_requested(): a person wants to read the model card.
        link_confirmed(address): a person saw where a link leads and wants it opened.
    """

    download_requested = Signal(str, object)
    use_requested = Signal(str)
    download_pressed = Signal(str, object)
    refresh_requested = Signal()
    card_requested = Signal()
    link_confirmed = Signal(str)

    def __init__(self, theme: Theme, now: Callable[[], float] = time.time, parent: QWidget | None = None) -> None:
        super().__init__(_MOST_PX, parent)
        self._now = now
        self._repo: RepoDetail | None = None
        self._rows: dict[str, QuantizationRow] = {}
        self._fits: dict[str, Fit] = {}
        self._machine: Machine | None = None
        self._downloads: Sequence[Download] = ()
        self._here: Mapping[str, str] = {}
        self._wanted = ""
        self._pick: Recommendation | None = None
        self._has_chosen = False
        self._name = ElidedLabel(kind="title")
        self._facts = ElidedLabel()
        self.card_button = QPushButton(_("Model card"))
        self._stale = QFrame()
        self._stale_words = WrappedLabel()
        self._again = QPushButton(_("Try again"))
        self._banner = QFrame()
        self._banner_words = WrappedLabel()
        self.table = HubTable(theme, now)
        self.detail = HubRowDetail(theme)
        self.token = TokenCard()
        self.publishers = HubPublishers()
        self._build()
        self._connect()

    # ------------------------------------------------------------------------------------- public

    @property
    def repo(self) -> RepoDetail | None:
        """The repo that is shown."""
        return self._repo

    def set_repo(self, repo: RepoDetail, wanted: str = "", pick: Recommendation | None = None) -> None:
        """Show a repo.

        Args:
            repo: its files, as far as they are known.
            wanted: the row to choose; "" chooses the recommended one when it is known.
            pick: what was picked of it for this machine, and why; None for nothing.
        """
        self._pick = pick
        is_same = self._repo is not None and self._repo.summary.repo == repo.summary.repo
        if not is_same or self._repo is None or self._repo.revision != repo.revision:
            self._fits = {}
        self._repo = repo
        self._rows = {row.key: row for row in repo.rows}
        if not is_same or wanted:
            self._wanted, self._has_chosen = wanted, False
        self._name.setText(model_title(repo.summary.name))
        self.card_button.setVisible(bool(repo.card_markdown))
        self._show_stale(repo)
        self._show_access(repo)
        self.publishers.set_detail(repo, self._moment())
        self._show_rows()
        self._show_downloads()

    def set_row(self, row: QuantizationRow, fit: Fit | None) -> None:
        """Show what a row's header told, and whether it fits."""
        if row.key not in self._rows:
            return
        self._rows[row.key] = row
        if fit is not None:
            self._fits[row.key] = fit
        self._show_rows()

    def set_fits(self, fits: Mapping[str, Fit]) -> None:
        """Take over what fits now, by the row's key."""
        self._fits = {key: fit for key, fit in fits.items() if key in self._rows}
        self._show_rows()

    def set_machine(self, machine: Machine) -> None:
        """Take over what there is to fit into now."""
        self._machine = machine
        self._show_banner()

    def set_downloads(self, downloads: Sequence[Download]) -> None:
        """Show how far these are, as far as they are of this repo."""
        self._downloads = downloads
        self._show_downloads()

    def set_here(self, here: Mapping[str, str]) -> None:
        """Say which rows are on this machine: the library's key by the row's."""
        self._here = here
        self.table.quantizations.set_here(frozenset(here))
        self._show_action()

    def show_publishers(self, publishers: Sequence[Publisher]) -> None:
        """Show who offers this model."""
        self.publishers.set_publishers(publishers, self._moment())

    def choose(self, key: str) -> None:
        """Choose a row, as a person would; "" for nothing."""
        if key and self.table.choose(key):
            self._has_chosen = True
            self._show_chosen()

    def show_token_card(self, words: Words) -> None:
        """Ask for the token or the licence, since a download needs it."""
        if self._repo is not None:
            self.token.show_words(words, self._repo.page_url)
            self.token.show()
            self.show_part(self.token)
            self.token.field.setFocus()

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of a theme."""
        self.table.set_theme(theme)
        self.detail.set_theme(theme)

    # ------------------------------------------------------------------------------------- build

    def _build(self) -> None:
        line = QHBoxLayout()
        line.setSpacing(12)
        self._name.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Preferred)
        line.addWidget(self._name)
        line.addWidget(self._facts, 1)
        line.addWidget(self.card_button)
        stale = QHBoxLayout(self._stale)
        stale.setContentsMargins(16, 8, 12, 8)
        stale.addWidget(self._stale_words, 1)
        stale.addWidget(self._again)
        inside_banner = QHBoxLayout(self._banner)
        inside_banner.setContentsMargins(16, 9, 16, 9)
        inside_banner.addWidget(self._banner_words)
        self._banner_words.setFont(ui_font(READING_PX))
        for frame in (self._stale, self._banner):
            frame.setProperty("kind", "notice")
        self._stale.setProperty("level", "warning")
        self.head.addLayout(line)
        self.head.addWidget(self._stale)
        self.head.addWidget(self._banner)
        for part in (self.token, self.table, self.publishers, self.detail):
            self.column.addWidget(part)
        self.column.addStretch(1)
        self.token.hide()

    def _connect(self) -> None:
        self.table.entry_chosen.connect(self._on_chosen)
        self.table.action_requested.connect(self._on_action)
        self.table.pause_requested.connect(self._on_pause)
        self.table.delete_requested.connect(self._on_delete)
        self.detail.button_pressed.connect(self._on_button)
        self.detail.download_pressed.connect(self.download_pressed)
        self.detail.download.confirm.asked.connect(self._on_asked)
        self.detail.download.confirm.left.connect(self.table.setFocus)
        self.token.link_confirmed.connect(self.link_confirmed)
        self._again.clicked.connect(self.refresh_requested)
        self.card_button.clicked.connect(self.card_requested)

    # ------------------------------------------------------------------------------------- slots

    def _on_chosen(self, _key: str) -> None:
        self._has_chosen = True
        self._show_chosen()

    def _on_button(self) -> None:
        self._on_action(self.table.chosen_key)

    def _on_action(self, key: str) -> None:
        """Do what stands on a row's button."""
        kind = self.table.quantizations.action_of_key(key).kind
        row, repo = self._rows.get(key), self._repo
        if row is None or repo is None or not kind:
            return
        if kind == "download":
            files: tuple[FileRef, ...] = files_of(repo, row, self.detail.projector.isChecked())
            self.download_requested.emit(key, files)
            return
        download = self.table.quantizations.download(key)
        if kind == "use":
            self.use_requested.emit(key)
        elif kind == Button.CHOOSE.value:
            self.table.setFocus()
        elif download is not None:
            self.download_pressed.emit(download.download_id, Button(kind))

    def _on_pause(self, key: str) -> None:
        download = self.table.quantizations.download(key)
        if download is not None:
            self.download_pressed.emit(download.download_id, Button.PAUSE if is_pausable(download) else Button.RESUME)

    def _on_delete(self, key: str) -> None:
        if self.table.quantizations.download(key) is not None and self.detail.download.isVisible():
            self.detail.download.ask_to_end()

    def _on_asked(self) -> None:
        QTimer.singleShot(0, self, self._show_question)  # its place is known once the layout has made room

    def _show_question(self) -> None:
        if self.detail.download.confirm.isVisible():
            self.show_part(self.detail.download.confirm)

    # ------------------------------------------------------------------------------------- helpers

    def _moment(self) -> datetime.datetime:
        return datetime.datetime.fromtimestamp(self._now(), datetime.UTC)

    def _chosen(self) -> Recommendation:
        """Return what to take: what was picked for this machine, as long as it fits, else the best of the rows."""
        picked = self._pick
        fit = self._fits.get(picked.key) if picked is not None else None
        if picked is not None and fit is not None and fit.verdict is Verdict.FITS:
            return picked
        return recommendation(list(self._rows.values()), self._fits)

    def _show_rows(self) -> None:
        """Show what is known of the rows now, and choose one as long as no person did."""
        if self._repo is None:
            return
        rows = list(self._rows.values())
        known = self._known_repo()
        self._facts.setText(facts_line(known))
        self.table.quantizations.set_rows(rows, self._fits, published_figures(known))
        chosen = self._chosen()
        self.table.quantizations.set_recommended(chosen)
        if not self._has_chosen:
            row = known.row(self._wanted) if self._wanted else None
            self.table.choose(row.key if row is not None else chosen.key or usual_key(rows))
        self._show_chosen()
        self._show_banner()

    def _known_repo(self) -> RepoDetail:
        """Return the repo with what its headers told since."""
        assert self._repo is not None
        rows = tuple(self._rows[row.key] for row in self._repo.rows)
        return msgspec.structs.replace(self._repo, rows=rows)

    def _show_chosen(self) -> None:
        row, repo = self._rows.get(self.table.chosen_key), self._repo
        self.detail.setVisible(row is not None)
        if row is not None and repo is not None:
            self.detail.set_row(row, files_text(repo, row), self._fits.get(row.key), projector_of(repo))
            self._show_action()

    def _show_action(self) -> None:
        key = self.table.chosen_key
        if key:
            quantizations = self.table.quantizations
            action = quantizations.action_of_key(key)
            self.detail.set_action(action, quantizations.download(key), not self.token.isHidden())

    def _show_downloads(self) -> None:
        self.table.quantizations.set_downloads(downloads_by_row(self._rows.values(), self._downloads))
        self._show_action()

    def _show_banner(self) -> None:
        is_reading = any(row.state in ("unread", "reading") and not row.is_broken for row in self._rows.values())
        has_figures = self.table.quantizations.has_figures
        words = banner_text(self._chosen(), self._fits, self._machine, has_figures, is_reading)
        self._banner_words.setText(words)
        self._banner.setVisible(bool(words) and bool(self._rows))

    def _show_stale(self, repo: RepoDetail) -> None:
        self._stale.setVisible(repo.is_stale)
        self._stale_words.setText(stale_words(repo.fault, repo.age_s) if repo.is_stale else "")

    def _show_access(self, repo: RepoDetail) -> None:
        words = access_words(repo)
        self.token.setVisible(words is not None)
        if words is not None:
            self.token.show_words(words, repo.page_url)
