"""The states of the hub's tabs and of the downloads that the gallery shows: the screen alone, an invented hub."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from PySide6.QtWidgets import QApplication

from app.downloads.types import DownloadState
from app.downloads.updates import Update
from app.errors import Words
from app.hub.hub_errors import HubError, HubErrorKind
from app.hub.types import RepoDetail
from app.hub.update_check import UpdateAnswer
from app.models.removal import Deletion
from tests.helpers import hub_values, model_entries
from tests.helpers.model_states import LARGE_PX, NARROW_PX, PANEL_PX, ShownPanel
from ui.models.update_note import answer_note, checking_note, fault_note, newer_note
from ui.panels.hub_panel import HUB, PICKED

State = Callable[[Path], Iterator[ShownPanel]]


def _opened(size: tuple[int, int] = PANEL_PX, tab: str = HUB) -> ShownPanel:
    panel = ShownPanel(size)
    entries, fits = model_entries.library()
    panel.window.set_entries(entries)
    panel.window.set_fits(fits)
    panel.window.set_machine(hub_values.MACHINE)
    panel.window.hub.set_picks(hub_values.picked(), "2026-11-30")
    panel.window.show_tab(tab)
    return panel


def _found(size: tuple[int, int] = PANEL_PX) -> ShownPanel:
    panel = _opened(size)
    panel.window.hub.results.search_for("llama instruct")
    panel.window.hub.results.show_page(hub_values.search_page())
    return panel


def _with_repo(panel: ShownPanel, repo: RepoDetail | None = None) -> ShownPanel:
    repo = repo or hub_values.detail()
    panel.window.hub.set_repo(repo)
    panel.window.hub.view.page.set_fits(hub_values.fits(repo))
    return panel


def hub_prompt(_folder: Path) -> Iterator[ShownPanel]:
    """Nothing was searched for yet."""
    yield _opened()


def hub_searching(_folder: Path) -> Iterator[ShownPanel]:
    """The hub is being asked, and slow."""
    panel = _opened()
    panel.window.hub.results.search_for("llama instruct")
    panel.window.hub.results.show_searching()
    panel.window.hub.results.show_slow()
    panel.window.hub.show_loading(hub_values.LLAMA)
    yield panel


def hub_found(_folder: Path) -> Iterator[ShownPanel]:
    """Results, one repo open, downloads in some rows."""
    panel = _with_repo(_found())
    panel.window.hub.set_downloads(hub_values.table_downloads())
    yield panel


def hub_published(_folder: Path) -> Iterator[ShownPanel]:
    """A model with published figures, a row on this machine, the other publishers."""
    panel = _with_repo(_found(), hub_values.llama_3())
    panel.window.hub.set_here({"Q5_K_M": "key"}, frozenset({hub_values.LLAMA}))
    publishers = panel.window.hub.view.page.publishers
    publishers.button.setChecked(True)
    publishers.set_publishers(hub_values.publishers(), datetime.datetime.now(datetime.UTC))
    yield panel


def hub_reading(_folder: Path) -> Iterator[ShownPanel]:
    """The headers are being read: one row is known."""
    panel = _found()
    repo = hub_values.detail(is_read=False)
    panel.window.hub.set_repo(repo)
    row = hub_values.read_row(repo.rows[2], 4.89)
    panel.window.hub.view.page.set_row(row, hub_values.fit_of(row.shape))
    yield panel


def hub_large(_folder: Path) -> Iterator[ShownPanel]:
    """Split sets, a projector, a stranger's quantization, a broken set."""
    panel = _with_repo(_found(), hub_values.large_repo())
    panel.window.hub.view.page.choose("BF16")
    yield panel


def hub_gated(_folder: Path) -> Iterator[ShownPanel]:
    """A licence must be accepted first."""
    panel = _found()
    about = hub_values.summary("meta-llama/Llama-3.3-70B-Instruct-GGUF", gated="manual", licence="llama3.3")
    repo = hub_values.detail(about.repo, summary=about, access="needs_token")
    _with_repo(panel, repo)
    panel.window.hub.set_keeping(has_keyring=False, has_token=False)
    yield panel


def hub_cancelling(_folder: Path) -> Iterator[ShownPanel]:
    """The question before a download is cancelled."""
    panel = _with_repo(_found())
    panel.window.hub.set_downloads(hub_values.table_downloads())
    panel.window.hub.view.page.choose("Q4_K_M")
    QApplication.processEvents()
    panel.window.hub.view.page.detail.download.ask_to_end()
    yield panel


def hub_card(_folder: Path) -> Iterator[ShownPanel]:
    """The model card, and the question before a link is opened."""
    panel = _with_repo(_found())
    panel.window.hub.view.page.card_button.click()
    panel.window.hub.view.card.confirm.ask_link("https://github.com/ggml-org/llama.cpp/releases/tag/b4000")
    yield panel


def hub_nothing(_folder: Path) -> Iterator[ShownPanel]:
    """The hub has nothing with these words; no repo is chosen."""
    panel = _opened()
    panel.window.hub.results.search_for("nothing has this name")
    panel.window.hub.results.show_page(hub_values.search_page(items=(), next_cursor=""))
    yield panel


def hub_offline(_folder: Path) -> Iterator[ShownPanel]:
    """No network: words in both places."""
    panel = _opened()
    words = Words("huggingface.co cannot be reached.", "Check the network, or the proxy in the settings.")
    panel.window.hub.results.search_for("llama instruct")
    panel.window.hub.results.show_fault(words)
    panel.window.hub.show_loading(hub_values.LLAMA)
    panel.window.hub.view.show_fault(words, can_retry=True)
    yield panel


def hub_stale(_folder: Path) -> Iterator[ShownPanel]:
    """No network, but an old answer in both places."""
    panel = _opened()
    words = Words("huggingface.co cannot be reached.", "")
    panel.window.hub.results.search_for("llama instruct")
    panel.window.hub.results.show_page(hub_values.search_page(is_stale=True, age_s=10_900.0, fault=words))
    yield _with_repo(panel, hub_values.detail(is_stale=True, age_s=10_900.0, fault=words))


def hub_limited(_folder: Path) -> Iterator[ShownPanel]:
    """The hub wants a pause."""
    panel = _opened()
    error = HubError(HubErrorKind.RATE_LIMITED, "huggingface.co", retry_after_s=43)
    panel.window.hub.results.search_for("llama instruct")
    panel.window.hub.results.show_fault(error.words, error.retry_after_s)
    yield panel


def hub_picked(_folder: Path) -> Iterator[ShownPanel]:
    """The picks, one of them open."""
    panel = _opened(tab=PICKED)
    picks = hub_values.picked()
    repo = hub_values.detail(picks[0].repo)
    yield _with_repo(panel, repo)


def hub_downloads(_folder: Path) -> Iterator[ShownPanel]:
    """Every state of a download."""
    panel = _found()
    panel.window.hub.set_downloads(hub_values.every_download())
    panel.window.hub.show_downloads()
    yield panel


def hub_downloads_narrow(_folder: Path) -> Iterator[ShownPanel]:
    """The same in the smallest window, one question open."""
    panel = _found(NARROW_PX)
    panel.window.hub.set_downloads(hub_values.every_download())
    panel.window.hub.show_downloads()
    panel.window.hub.downloads.rows[0].ask_to_end()
    yield panel


def _with_updates(panel: ShownPanel) -> ShownPanel:
    """Show finished downloads with everything that can be known of newer versions, and one that waits."""
    state = DownloadState
    names = ("Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0", "Q3_K_M", "IQ4_XS")
    downloads = [hub_values.download(state.DONE, name) for name in names]
    downloads.append(hub_values.download(state.WAITING, "Q2_K", 0.5))
    answer = UpdateAnswer(Update.CURRENT, downloads[1].files, downloads[1].files[0].revision, (), time.time() - 260_000)
    head = tuple(
        msgspec.structs.replace(one, revision="f" * 40, sha256="e" * 64, size_bytes=one.size_bytes + 9_000_000)
        for one in downloads[2].files
    )
    newer = UpdateAnswer(Update.CHANGED, downloads[2].files, "f" * 40, head, time.time() - 260_000)
    offline = Words("huggingface.co cannot be reached.", "Check the network, or the proxy in the settings.")
    later = hub_values.download(state.DONE, "IQ4_XS", download_id="later")
    notes = {
        downloads[1].download_id: answer_note(answer),
        downloads[2].download_id: answer_note(newer),
        downloads[3].download_id: checking_note(),
        downloads[4].download_id: fault_note(offline),
        downloads[5].download_id: newer_note(downloads[5], later),
    }
    panel.window.hub.set_downloads(downloads)
    panel.window.hub.downloads.set_notes(notes)
    panel.window.hub.show_downloads()
    return panel


def hub_updates(_folder: Path) -> Iterator[ShownPanel]:
    """What is known of newer versions of what was downloaded."""
    yield _with_updates(_found())


def hub_updates_narrow(_folder: Path) -> Iterator[ShownPanel]:
    """The same in the smallest window, and the question before the older version is deleted."""
    panel = _with_updates(_found(NARROW_PX))
    path = Path("/home/ada/.cache/huggingface/hub/models--bartowski--Llama/snapshots/1234567/Llama-IQ4_XS.gguf")
    row = panel.window.hub.downloads.rows[5]
    row.ask_to_delete(Deletion((path,), row.download.total_bytes if row.download else 0, True))
    QApplication.processEvents()
    panel.window.hub.downloads.show_part(row)
    yield panel


def hub_silent_keyring(_folder: Path) -> Iterator[ShownPanel]:
    """A licence must be accepted, a token is known, and the system's keyring does not answer."""
    panel = _found(NARROW_PX)
    about = hub_values.summary("meta-llama/Llama-3.3-70B-Instruct-GGUF", gated="auto")
    _with_repo(panel, hub_values.detail(about.repo, summary=about, access="needs_licence"))
    panel.window.hub.set_keeping(has_keyring=False, has_token=True, is_silent=True)
    yield panel


def hub_narrow(_folder: Path) -> Iterator[ShownPanel]:
    """The smallest window."""
    panel = _with_repo(_found(NARROW_PX))
    panel.window.hub.set_downloads(hub_values.table_downloads())
    yield panel


def hub_narrow_gated(_folder: Path) -> Iterator[ShownPanel]:
    """The token card in the smallest window."""
    panel = _found(NARROW_PX)
    about = hub_values.summary("meta-llama/Llama-3.3-70B-Instruct-GGUF", gated="auto")
    _with_repo(panel, hub_values.detail(about.repo, summary=about, access="needs_licence"))
    panel.window.hub.set_keeping(has_keyring=True, has_token=True)
    yield panel


def hub_large_screen(_folder: Path) -> Iterator[ShownPanel]:
    """A large screen."""
    panel = _with_repo(_found(LARGE_PX), hub_values.llama_3())
    running = msgspec.structs.replace(
        hub_values.download(DownloadState.RUNNING, repo=hub_values.llama_3().summary.repo), title="One"
    )
    panel.window.hub.set_downloads([running])
    yield panel


STATES: tuple[State, ...] = (
    *(hub_prompt, hub_searching, hub_found, hub_published, hub_reading, hub_large, hub_gated, hub_cancelling, hub_card),
    *(hub_nothing, hub_offline, hub_stale, hub_limited, hub_picked, hub_downloads, hub_downloads_narrow, hub_narrow),
    *(hub_narrow_gated, hub_large_screen, hub_updates, hub_updates_narrow, hub_silent_keyring),
)
