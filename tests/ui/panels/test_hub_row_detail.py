"""The chosen row: what it needs and means, what belongs to it, and its download."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtWidgets import QLabel

from app.downloads.types import DownloadState
from app.units import NBSP
from tests.helpers import hub_values
from tests.helpers.hub_values import LLAMA, download, fit_of, row
from ui.models.hub_table_model import row_action
from ui.models.hub_words import files_text
from ui.panels.hub_row_detail import HubRowDetail
from ui.theme import load_theme

STATE = DownloadState
READ = row(LLAMA, "Q4_K_M", 4.89)
UNREAD = row(LLAMA, "Q4_K_M", 4.89, is_read=False)


@pytest.fixture
def shown(qtbot):
    made = HubRowDetail(load_theme("dark"))
    qtbot.addWidget(made)
    made.resize(800, 300)
    made.show()
    return made


def texts(shown):
    words = [label.text().replace("\u200b", "") for label in shown.findChildren(QLabel) if label.isVisible()]
    return [word.replace(NBSP, " ") for word in words]


def act(shown, found, is_here=False, is_gated=False):
    shown.set_action(row_action(READ, found, is_here, 0.0), found, is_gated)


def test_it_says_what_it_needs_and_what_it_means(shown):
    shown.set_row(READ, "", fit_of(READ.shape), None)
    assert texts(shown)[:2] == ["Q4_K_M", "4.57 GiB"]
    assert texts(shown)[2].startswith("Needs 5.29 GiB of 12.1 GiB free")
    assert texts(shown)[3].startswith("Blocks of 256 weights at 4 bits each")
    assert not shown.projector.isVisible()


def test_a_fit_of_another_file_says_so(shown):
    guessed = msgspec.structs.replace(READ, is_shape_exact=False)
    shown.set_row(guessed, "", fit_of(READ.shape), None)
    assert texts(shown)[2].endswith("Estimated from another file of this model.")


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (UNREAD, "Its header is being read, to say whether it fits."),
        (msgspec.structs.replace(UNREAD, state="failed", fault="No answer."), "No answer."),
        (msgspec.structs.replace(UNREAD, is_broken=True, fault="Part 2 is missing."), "Part 2 is missing."),
    ],
)
def test_what_is_not_known_is_told(shown, found, words):
    shown.set_row(found, "", None, None)
    assert texts(shown)[2] == words


def test_sets_and_projectors_are_told_and_can_be_left_out(shown):
    repo = hub_values.large_repo()
    found = repo.row("BF16")
    shown.set_row(found, files_text(repo, found), None, repo.projectors[1])
    act(shown, None)
    assert texts(shown)[1] == "15.0 GiB · 3 files + vision projector"
    assert shown.projector.isVisible()
    assert shown.projector.isChecked()
    assert shown.projector.text().replace(NBSP, " ") == "With its vision projector, 851 MiB"
    act(shown, download(STATE.RUNNING))
    assert not shown.projector.isEnabled()


def test_the_button_downloads_or_uses_and_gives_way_to_a_download(shown, qtbot):
    shown.set_row(READ, "", None, None)
    act(shown, None)
    assert (shown.button.text(), shown.button.property("kind")) == ("Download", "primary")
    with qtbot.waitSignal(shown.button_pressed):
        shown.button.click()
    act(shown, None, is_gated=True)
    assert shown.button.property("kind") == ""
    act(shown, download(STATE.RUNNING))
    assert not shown.button.isVisible()
    assert shown.download.isVisible()
    with qtbot.waitSignal(shown.download_pressed):
        shown.download.main.click()
    act(shown, download(STATE.DONE))
    assert (shown.button.text(), shown.download.isVisible()) == ("Use", False)
    act(shown, download(STATE.RUNNING), is_here=True)
    assert shown.button.text() == "Use"
    shown.set_theme(load_theme("light"))
