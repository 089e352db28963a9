"""The rows of a repo: their actions, marks and words; only what changed is told."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QAbstractItemModelTester

from app.downloads.types import DownloadState
from app.errors import Words
from app.hub.recommend import Recommendation
from app.units import NBSP
from tests.helpers import hub_values
from tests.helpers.hub_values import detail, download, fits, llama_3, read_row
from ui.models.grouped_table_model import IS_RECOMMENDED_ROLE, MARK_ROLE, NOTE_ROLE
from ui.models.hub_choice import published_figures
from ui.models.hub_columns import ACTION, BITS, HERE, KL, QUANTIZATION, SIZE, SPEED, WORDS
from ui.models.hub_table_model import HubTableModel, row_action
from ui.theme import load_theme

STATE = DownloadState
HEARD = Qt.ItemDataRole.AccessibleTextRole
TIP = Qt.ItemDataRole.ToolTipRole


@pytest.fixture
def model(qapp):
    made = HubTableModel(load_theme("dark"), lambda: 100.0)
    made.tester = QAbstractItemModelTester(made)
    repo = llama_3()
    made.set_rows(repo.rows, fits(repo), published_figures(repo))
    return made


def cell(model, key, column, role=Qt.ItemDataRole.DisplayRole):
    return model.index(model.row_of(key), column).data(role)


def told_rows(model, act):
    told = []
    model.dataChanged.connect(lambda first, last: told.append((model.key_at(first.row()), first.column())))
    act()
    return told


# ------------------------------------------------------------------------------------------ actions


@pytest.mark.parametrize(
    ("found", "is_here", "kind", "label"),
    [
        (None, False, "download", "Download"),
        (download(STATE.CANCELLED), False, "download", "Download"),
        (download(STATE.RUNNING), False, "pause", "Pause"),
        (download(STATE.QUEUED), False, "pause", "Pause"),
        (download(STATE.PAUSED), False, "resume", "Resume"),
        (download(STATE.VERIFYING), False, "", ""),
        (download(STATE.FAILED, action="retry"), False, "retry", "Try again"),
        (download(STATE.FAILED, action="token"), False, "token", "Give a token…"),
        (download(STATE.FAILED, action="choose"), False, "choose", "Choose another…"),
        (download(STATE.DONE), False, "use", "Use"),
        (download(STATE.RUNNING), True, "use", "Use"),
    ],
)
def test_each_row_has_the_one_button_it_needs(found, is_here, kind, label):
    action = row_action(detail().rows[2], found, is_here, 0.0)
    assert (action.kind, action.words(), action.can_press) == (kind, label, bool(label))


def test_what_is_broken_has_none_unless_it_is_here():
    broken = msgspec.structs.replace(detail().rows[2], is_broken=True)
    assert not row_action(broken, None, False, 0.0).can_press
    assert row_action(broken, None, True, 0.0).kind == "use"


def test_progress_has_words_and_a_bar():
    action = row_action(detail().rows[2], download(STATE.RUNNING, part=0.5), False, 0.0)
    assert action.texts[0].replace(NBSP, " ").endswith("48 MB/s · 40 s")
    assert action.part == pytest.approx(0.5)
    assert not action.is_quiet
    assert row_action(detail().rows[2], download(STATE.PAUSED), False, 0.0).is_quiet
    assert row_action(detail().rows[2], download(STATE.DONE), False, 0.0).texts[0] == "on this machine"


# ------------------------------------------------------------------------------------------ rows


def test_rows_stand_by_size_under_their_headings(model):
    assert [model.index(row, 0).data() for row in model.heading_rows()] == ["Small", "Balanced", "Large"]
    assert model.keys() == ["Q2_K", "Q3_K_M", "Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0", "F16"]
    assert model.row("Q8_0").quantization == "Q8_0"
    assert model.row("none") is None
    assert model.fit("none") is None
    assert model.has_figures


def test_a_header_that_is_read_changes_its_row_and_no_other(qapp):
    model = HubTableModel(load_theme("dark"), lambda: 100.0)
    unread = detail(is_read=False)
    model.set_rows(unread.rows, {}, {})
    rows = list(unread.rows)
    rows[2] = read_row(rows[2], 4.89)

    def act():
        model.set_rows(rows, {"Q4_K_M": fits(detail())["Q4_K_M"]}, {})

    assert told_rows(model, act) == [("Q4_K_M", 0)]
    assert cell(model, "Q4_K_M", HERE) == "room for 54k · q8 KV 101k"
    rows[0] = read_row(rows[0], 5.2)  # its rows fell back: it is none of the small ones
    model.set_rows(rows, {}, {})
    assert model.row_of("Q2_K") > model.heading_rows()[1]


def test_progress_is_told_for_its_button_only(model):
    running = {"Q4_K_M": download(STATE.RUNNING)}
    assert told_rows(model, lambda: model.set_downloads(running)) == [("Q4_K_M", ACTION)]
    assert told_rows(model, lambda: model.set_downloads(dict(running))) == []
    assert model.download("Q4_K_M").state is STATE.RUNNING
    model.set_downloads({})
    assert model.action_of_key("Q4_K_M").kind == "download"


def test_only_what_waits_for_a_time_is_counted_down(model):
    model.set_downloads({"Q4_K_M": download(STATE.WAITING), "Q8_0": download(STATE.RUNNING, "Q8_0")})
    assert told_rows(model, model.tell_times) == [("Q4_K_M", ACTION)]


def test_what_comes_to_this_machine_is_told(model):
    assert told_rows(model, lambda: model.set_here(frozenset({"Q6_K"}))) == [("Q6_K", ACTION)]
    assert model.is_here("Q6_K")
    assert cell(model, "Q6_K", ACTION, HEARD) == "on this machine, Use"


def test_the_recommended_row_is_marked_and_says_why(model):
    model.set_recommended(Recommendation("Q5_K_M", "Because."))
    assert cell(model, "Q5_K_M", QUANTIZATION, MARK_ROLE) == "recommended"
    assert cell(model, "Q5_K_M", QUANTIZATION, IS_RECOMMENDED_ROLE) is True
    assert cell(model, "Q5_K_M", QUANTIZATION, TIP) == "Because."
    assert cell(model, "Q5_K_M", QUANTIZATION, HEARD) == "Q5_K_M recommended"
    model.set_recommended(Recommendation("", ""))
    assert cell(model, "Q5_K_M", QUANTIZATION, MARK_ROLE) == ""


def test_a_set_says_how_many_files_it_has(qapp):
    model = HubTableModel(load_theme("dark"), lambda: 0.0)
    repo = hub_values.large_repo()
    model.set_rows(repo.rows, fits(repo), {})
    assert cell(model, "BF16", QUANTIZATION, MARK_ROLE) == "3 files"
    assert not model.has_figures
    assert cell(model, "Q6_K", HERE, TIP) == "Part 2 of 2 is missing at the hub."
    assert model.can_press(model.row_of("Q6_K")) is False


# ------------------------------------------------------------------------------------------ cells


def test_figures_are_heard_with_their_unit_and_their_source(model):
    assert cell(model, "Q4_K_M", BITS, HEARD) == "4.89 bits/weight"
    assert cell(model, "Q4_K_M", KL, HEARD) == "KL 0.0282, published"
    assert cell(model, "Q6_K", KL, HEARD) == "– KL"
    assert cell(model, "Q4_K_M", SPEED, HEARD) == "6.46 tokens/s, predicted"
    assert cell(model, "Q4_K_M", SIZE, HEARD).replace(NBSP, " ") == "4.57 GiB"
    assert "llama.cpp" in cell(model, "Q4_K_M", KL, TIP)
    assert cell(model, "Q4_K_M", WORDS, TIP)
    assert cell(model, "Q6_K", KL, TIP) is None


def test_italics_and_notes(model):
    italic = [column for column in range(8) if (font := cell(model, "Q4_K_M", column, Qt.ItemDataRole.FontRole))]
    assert italic == [KL, SPEED]
    assert font is None or font.italic()
    fallen = [msgspec.structs.replace(one, fallback=3) for one in llama_3().rows]
    model.set_rows(fallen, {}, {})
    assert cell(model, "Q4_K_M", BITS, NOTE_ROLE) == "*"


def test_a_failure_is_told_on_its_button(model):
    words = Words("The server is gone.", "Try later.")
    model.set_downloads({"Q4_K_M": download(STATE.FAILED, words=words, action="retry")})
    assert cell(model, "Q4_K_M", ACTION, TIP) == "The server is gone. Try later."
    assert cell(model, "Q6_K", ACTION, TIP) is None


def test_strangers_words_are_no_markup(qapp):
    model = HubTableModel(load_theme("dark"), lambda: 0.0)
    hostile = msgspec.structs.replace(detail().rows[0], key="<img src=x>", quantization="<b>Q</b>", fault="<i>no</i>")
    model.set_rows([hostile], {}, {})
    assert cell(model, "<img src=x>", QUANTIZATION) == "<img src=x>"
    assert "&lt;i&gt;no" in cell(model, "<img src=x>", QUANTIZATION, TIP)
