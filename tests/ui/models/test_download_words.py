"""What is said of a download: figures that never promise too much, one button, words for every state."""

from __future__ import annotations

import math

import pytest

from app.downloads.types import DownloadState
from app.errors import Words
from app.units import NBSP
from tests.helpers.hub_values import GIB, download, every_download
from ui.models.download_words import (
    Button,
    cell_texts,
    fraction,
    left_text,
    main_button,
    more_button,
    other_button,
    percent_done,
    speed_text,
    spoken_text,
    state_text,
    strip_fraction,
    strip_text,
    title_text,
)

STATE = DownloadState
TOTAL = 4 * GIB


def made(state, quantization="Q4_K_M", **fields):
    return download(state, quantization, **{"total_bytes": TOTAL, "done_bytes": TOTAL // 4, **fields})


def plain(text):
    return text.replace(NBSP, " ")


@pytest.mark.parametrize(
    ("bytes_per_s", "text"),
    [
        (48e6, "48 MB/s"),
        (3.24e6, "3.20 MB/s"),
        (999.4e3, "999 kB/s"),
        (1.5e9, "1.50 GB/s"),
        (12.0, "0 kB/s"),
        (None, ""),
        (math.nan, ""),
        (-1.0, ""),
    ],
)
def test_a_speed_has_no_more_digits_than_can_be_read(bytes_per_s, text):
    assert plain(speed_text(bytes_per_s)) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.2, "1 s"),
        (39.2, "40 s"),
        (59.9, "1 min"),
        (61.0, "2 min"),
        (3_900.0, "1 h 05 min"),
        (90_000.0, "2 days"),
        (None, ""),
        (math.inf, ""),
    ],
)
def test_the_time_left_is_rounded_up(seconds, text):
    assert plain(left_text(seconds)) == text


def test_nothing_is_said_to_be_whole_before_it_is():
    assert plain(percent_done(0.9999)) == "99 %"
    assert plain(percent_done(1.0)) == "100 %"
    assert fraction(made(STATE.RUNNING, total_bytes=0)) == 0.0
    assert fraction(made(STATE.RUNNING, done_bytes=2 * TOTAL)) == 1.0
    assert fraction(made(STATE.VERIFYING, checked_bytes=TOTAL // 2)) == 0.5


def test_each_state_has_one_button_and_one_way_out():
    pairs = {
        (STATE.QUEUED, ""): (Button.PAUSE, Button.CANCEL),
        (STATE.RUNNING, ""): (Button.PAUSE, Button.CANCEL),
        (STATE.WAITING, ""): (Button.NOW, Button.CANCEL),
        (STATE.VERIFYING, ""): (None, Button.CANCEL),
        (STATE.PAUSED, "resume"): (Button.RESUME, Button.CANCEL),
        (STATE.PAUSED, ""): (Button.RESUME, Button.CANCEL),
        (STATE.PAUSED, "free_space"): (Button.RESUME, Button.CANCEL),
        (STATE.FAILED, "retry"): (Button.RETRY, Button.CANCEL),
        (STATE.FAILED, "token"): (Button.TOKEN, Button.CANCEL),
        (STATE.FAILED, "choose"): (Button.CHOOSE, Button.CANCEL),
        (STATE.FAILED, "free_space"): (Button.RETRY, Button.CANCEL),
        (STATE.FAILED, ""): (None, Button.CANCEL),
        (STATE.DONE, ""): (Button.USE, Button.REMOVE),
        (STATE.CANCELLED, ""): (Button.RESUME, Button.DELETE),
    }
    for (state, action), buttons in pairs.items():
        found = made(state, action=action)
        assert (main_button(found), other_button(found)) == buttons, state
    assert all(button.words() for button in Button)


def test_one_that_tries_again_later_can_do_so_now_or_be_paused():
    waiting = made(STATE.WAITING, retry_at=100.0)
    assert (main_button(waiting), more_button(waiting)) == (Button.NOW, Button.PAUSE)
    behind_another = made(STATE.WAITING, retry_at=None)
    assert (main_button(behind_another), more_button(behind_another)) == (Button.PAUSE, None)
    assert more_button(made(STATE.DONE)) is Button.CHECK
    assert more_button(made(STATE.DONE, path=None)) is None
    assert more_button(made(STATE.RUNNING)) is None


def test_what_an_earlier_time_left_can_go_on_when_somebody_knows_what_it_is():
    known = made(STATE.PAUSED, is_leftover=True)
    nameless = made(STATE.PAUSED, is_leftover=True, files=())
    assert (main_button(known), other_button(known)) == (Button.RESUME, Button.DELETE)
    assert main_button(nameless) is None
    assert plain(state_text(nameless, 0.0)) == "Unfinished, from an earlier time · 1.00 GiB"


def test_a_cancelled_one_that_left_nothing_is_only_taken_off_the_list():
    assert other_button(made(STATE.CANCELLED, done_bytes=0)) is Button.REMOVE
    assert main_button(made(STATE.DONE, path=None)) is None


def test_a_cell_says_less_where_there_is_less_room():
    texts = cell_texts(made(STATE.RUNNING), 0.0)
    assert [plain(text) for text in texts] == ["25 % · 48 MB/s · 40 s", "25 % · 48 MB/s", "25 %"]
    assert [plain(text) for text in cell_texts(made(STATE.PAUSED), 0.0)] == ["Paused · 25 %", "Paused", "25 %"]
    waiting = made(STATE.WAITING, retry_at=112.0)
    assert plain(cell_texts(waiting, 100.0)[0]) == "25 % · Tries again in 12 s"
    assert plain(cell_texts(waiting, 200.0)[1]) == "Tries again in 1 s"
    assert cell_texts(made(STATE.WAITING, retry_at=None), 0.0)[1] == "Waits"
    assert cell_texts(made(STATE.CANCELLED), 0.0) == ("Cancelled",)
    assert cell_texts(made(STATE.DONE), 0.0) == ("Done",)


def test_the_whole_line_of_every_state():
    lines = {
        STATE.RUNNING: "1.00 of 4.00 GiB · 25 % · 48 MB/s · 40 s left",
        STATE.QUEUED: "Waits for its turn · 1.00 of 4.00 GiB",
        STATE.PAUSED: "Paused · 1.00 of 4.00 GiB · 25 %",
        STATE.DONE: "Done · 4.00 GiB",
        STATE.FAILED: "Stopped · 1.00 of 4.00 GiB · 25 %",
        STATE.CANCELLED: "Cancelled · 1.00 of 4.00 GiB",
    }
    for state, line in lines.items():
        assert plain(state_text(made(state), 0.0)) == line
    verifying = made(STATE.VERIFYING, checked_bytes=TOTAL // 2)
    assert plain(state_text(verifying, 0.0)) == "Verifying what is here · 50 %"
    unknown = made(STATE.RUNNING, speed_bytes_per_s=None, left_s=None)
    assert plain(state_text(unknown, 0.0)) == "1.00 of 4.00 GiB · 25 %"


def test_the_line_at_the_foot_tells_what_matters_most():
    running = made(STATE.RUNNING)
    queued = made(STATE.QUEUED, "Q8_0", done_bytes=0)
    assert plain(strip_text([running, queued])) == "2 downloads · 12 % · 48 MB/s"
    assert strip_fraction([running, queued]) == 0.125
    assert plain(strip_text([queued])) == "1 download · 0 %"
    assert strip_text([made(STATE.FAILED), made(STATE.PAUSED)]) == "1 download stopped"
    assert strip_text([made(STATE.PAUSED)]) == "1 download paused"
    assert strip_text([made(STATE.DONE)]) == "Downloads"
    assert strip_text([made(STATE.DONE, is_leftover=True)]) == "1 unfinished download"
    assert strip_text([]) == ""
    assert strip_fraction([]) == 0.0


def test_a_screen_reader_hears_all_of_it_in_sentences():
    failed = made(STATE.FAILED, words=Words("The server is gone", "Try later."))
    assert plain(spoken_text(failed, 0.0)).endswith("25 %. The server is gone. Try later.")
    assert all(spoken_text(one, 0.0).endswith((".", "…")) for one in every_download())


def test_a_strangers_title_is_one_line():
    assert title_text(made(STATE.RUNNING, title="a\nb\u202e")) == "a b"
    assert title_text(made(STATE.RUNNING, title="")) == "A file"
