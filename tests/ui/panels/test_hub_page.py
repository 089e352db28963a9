"""One repo: what is chosen, what its buttons do, gates, old answers, sizes of window, strangers' words."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton

from app.downloads.types import DownloadState
from app.errors import Words
from app.hub.recommend import Recommendation
from app.units import NBSP
from tests.helpers import hub_values
from tests.helpers.hub_values import LLAMA, MACHINE, detail, download, fit_of, fits, llama_3, read_row, summary
from ui.models.download_words import Button
from ui.models.hub_columns import KL
from ui.panels.hub_page import HubPage
from ui.theme import load_theme

PATIENCE_MS = 60_000  # of a machine that is busy with much else

STATE = DownloadState
HOSTILE = "<img src=x><b>bold & brave</b>"


@pytest.fixture
def page(qtbot):
    made = HubPage(load_theme("dark"), lambda: hub_values.NOW_S)
    qtbot.addWidget(made)
    made.resize(1036, 900)
    made.set_machine(MACHINE)
    made.show()
    made.activateWindow()
    qtbot.waitUntil(made.isActiveWindow, timeout=PATIENCE_MS)
    return made


@pytest.fixture
def filled(page):
    page.set_repo(detail())
    page.set_fits(fits(detail()))
    return page


def texts(page):
    words = [label.text().replace("\u200b", "") for label in page.findChildren(QLabel) if label.isVisible()]
    return [word.replace(NBSP, " ") for word in words]


def banner(page):
    return page._banner_words.text().replace(NBSP, " ")


# ------------------------------------------------------------------------------------------ choosing


def test_the_recommended_row_is_chosen_until_a_person_chooses(filled):
    assert filled.table.chosen_key == "Q5_K_M"
    assert "Q5_K_M is recommended." in banner(filled)
    filled.choose("Q2_K")
    filled.set_fits(fits(detail()))
    assert filled.table.chosen_key == "Q2_K"
    filled.choose("none")
    assert filled.table.chosen_key == "Q2_K"


def test_while_headers_are_read_the_usual_row_is_chosen(page):
    repo = detail(is_read=False)
    page.set_repo(repo)
    assert page.table.chosen_key == "Q4_K_M"
    assert "The files' headers are being read, to say what fits." in banner(page)
    for found, (_name, bits) in zip(repo.rows, hub_values.LADDER, strict=True):
        known = read_row(found, bits)
        page.set_row(known, fit_of(known.shape))
    assert page.table.chosen_key == "Q5_K_M"
    assert page._facts.text().startswith("8.03")
    page.set_row(msgspec.structs.replace(repo.rows[0], key="of another repo"), None)
    assert page.table.quantizations.row("of another repo") is None


def test_what_an_address_meant_is_chosen(page):
    page.set_repo(detail(), "q8_0")
    page.set_fits(fits(detail()))
    assert page.table.chosen_key == "Q8_0"


def test_what_was_picked_for_this_machine_is_recommended_as_long_as_it_fits(page):
    page.set_repo(detail(), "", Recommendation("Q4_K_M", "Good for letters."))
    page.set_fits(fits(detail()))
    assert page.table.chosen_key == "Q4_K_M"
    assert "Q4_K_M is recommended. Good for letters." in banner(page)
    page.set_repo(llama_3(), "", Recommendation("F16", "No."))
    page.set_fits(fits(llama_3()))
    assert "Q5_K_M is recommended." in banner(page)


def test_published_figures_have_a_column_only_where_there_are_any(filled):
    assert filled.table.isColumnHidden(KL)
    filled.set_repo(llama_3())
    filled.set_fits(fits(llama_3()))
    filled.resize(1400, 900)
    assert not filled.table.isColumnHidden(KL)
    assert "published or predicted" in banner(filled)


# ------------------------------------------------------------------------------------------ buttons


def test_download_asks_for_all_files_of_the_row(page, qtbot):
    repo = hub_values.large_repo()
    page.set_repo(repo)
    page.choose("BF16")
    with qtbot.waitSignal(page.download_requested) as caught:
        page.detail.button.click()
    assert caught.args == ["BF16", (*repo.row("BF16").files, repo.projectors[1])]
    page.detail.projector.setChecked(False)
    with qtbot.waitSignal(page.download_requested) as caught:
        qtbot.keyClick(page.table, Qt.Key.Key_Return)
    assert caught.args == ["BF16", repo.row("BF16").files]


def test_a_download_is_paused_resumed_and_used_from_its_row(filled, qtbot):
    for state, key, button in (
        (STATE.RUNNING, Qt.Key.Key_Space, Button.PAUSE),
        (STATE.PAUSED, Qt.Key.Key_Space, Button.RESUME),
        (STATE.PAUSED, Qt.Key.Key_Return, Button.RESUME),
        (STATE.WAITING, Qt.Key.Key_Return, Button.NOW),
        (STATE.WAITING, Qt.Key.Key_Space, Button.PAUSE),
    ):
        filled.set_downloads([download(state, "Q5_K_M")])
        with qtbot.waitSignal(filled.download_pressed) as caught:
            qtbot.keyClick(filled.table, key)
        assert caught.args == [f"{LLAMA}:Q5_K_M", button]
    filled.set_downloads([download(STATE.DONE, "Q5_K_M")])
    with qtbot.waitSignal(filled.use_requested) as caught:
        filled.detail.button.click()
    assert caught.args == ["Q5_K_M"]
    with qtbot.assertNotEmitted(filled.download_pressed), qtbot.assertNotEmitted(filled.download_requested):
        filled.set_downloads([download(STATE.FAILED, "Q5_K_M", action="choose")])
        qtbot.keyClick(filled.table, Qt.Key.Key_Return)


def test_delete_asks_below_the_table_and_comes_back_to_it(filled, qtbot):
    filled.set_downloads([download(STATE.RUNNING, "Q5_K_M")])
    filled.table.setFocus()
    qtbot.keyClick(filled.table, Qt.Key.Key_Delete)
    assert "Cancel this download?" in texts(filled)
    qtbot.waitUntil(
        lambda: filled._area.viewport().rect().intersects(filled.detail.download.confirm.geometry()),
        timeout=PATIENCE_MS,
    )
    with qtbot.waitSignal(filled.download_pressed) as caught:
        filled.detail.download.confirm.findChild(QPushButton, "answer_keep").click()
    assert caught.args[1] is Button.CANCEL
    assert filled.table.hasFocus()
    filled.set_downloads([])
    qtbot.keyClick(filled.table, Qt.Key.Key_Delete)
    assert not filled.detail.download.isVisible()


def test_what_is_here_says_so(filled, qtbot):
    filled.set_here({"Q5_K_M": "library key"})
    assert filled.detail.button.text() == "Use"
    with qtbot.waitSignal(filled.use_requested):
        filled.detail.button.click()


def test_the_card_and_the_publishers_are_offered(filled, qtbot):
    with qtbot.waitSignal(filled.card_requested):
        filled.card_button.click()
    filled.publishers.button.setChecked(True)
    filled.show_publishers(hub_values.publishers())
    assert filled.publishers.table.isVisible()
    filled.set_repo(llama_3(card_markdown=""))
    assert not filled.card_button.isVisible()


# ------------------------------------------------------------------------------------------ gates and old answers


def test_a_gate_is_shown_with_its_card_and_makes_it_the_main_thing(page):
    gated = detail(summary=summary(gated="auto"), access="needs_token")
    page.set_repo(gated)
    assert page.token.isVisible()
    assert "The licence of this model must be accepted before its files are given." in texts(page)
    assert page.detail.button.property("kind") == ""
    page.set_repo(msgspec.structs.replace(gated, access="granted"))
    assert not page.token.isVisible()
    assert page.detail.button.property("kind") == "primary"


def test_a_download_that_needs_a_token_brings_the_card(filled):
    filled.show_token_card(Words("The hub wants a token.", "Give it."))
    assert filled.token.isVisible()
    assert "The hub wants a token." in texts(filled)
    assert filled.token.field.hasFocus()


def test_an_old_answer_says_its_age_and_can_be_asked_again(page, qtbot):
    page.set_repo(detail(is_stale=True, age_s=7300.0, fault=Words("No network.")))
    assert "No network. What you see is from before: 2 hours ago." in texts(page)
    with qtbot.waitSignal(page.refresh_requested):
        page._again.click()
    page.set_repo(detail())
    assert not page._stale.isVisible()


def test_a_repo_without_models_shows_no_table_of_another(filled):
    filled.set_repo(llama_3(rows=()))
    assert filled.table.quantizations.rowCount() == 0
    assert not filled.detail.isVisible()
    assert not filled._banner.isVisible()


# ------------------------------------------------------------------------------------------ size and words


def test_it_fits_from_the_smallest_window_to_a_large_one(filled, qtbot):
    for width in (620, 1036, 2100, 3500):
        filled.resize(width, 600)
        area = filled._area
        qtbot.waitUntil(lambda: area.widget().width() <= area.viewport().width(), timeout=PATIENCE_MS)  # noqa: B023 - asked at once
        qtbot.waitUntil(lambda: filled.table.width() <= 1360, timeout=PATIENCE_MS)
        assert filled.minimumSizeHint().width() <= 600


def test_another_theme_repaints_the_table(filled):
    before = filled.grab().toImage()
    filled.set_theme(load_theme("light"))
    assert filled.grab().toImage() != before


def test_strangers_words_are_shown_as_they_are_everywhere(page):
    hostile = msgspec.structs.replace(detail().rows[0], key=HOSTILE, quantization=HOSTILE, fault=HOSTILE)
    about = summary(name=HOSTILE, owner=HOSTILE, licence=HOSTILE, gated="auto")
    page.set_repo(detail(summary=about, rows=(hostile,), access="needs_token"))
    page.set_downloads([download(STATE.FAILED, title=HOSTILE, words=Words(HOSTILE), files=hostile.files)])
    assert any(text.startswith("<img src=x>") for text in texts(page))
    for label in page.findChildren(QLabel):
        assert label.textFormat() is Qt.TextFormat.PlainText
        assert not label.toolTip().startswith("<img")
