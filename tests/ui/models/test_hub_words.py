"""The lines about a hub's models: short, with units, and never more than one line of a stranger's words."""

from __future__ import annotations

import datetime

import msgspec
import pytest

from app.hub.recommend import Recommendation
from app.hub.types import Publisher
from app.units import NBSP
from tests.helpers import hub_values
from tests.helpers.hub_values import LLAMA, MACHINE, detail, fits, read_row, summary
from ui.models.hub_words import (
    banner_text,
    countdown_text,
    downloads_text,
    facts_line,
    files_text,
    gate_text,
    licence_text,
    matrix_text,
    model_title,
    pick_line,
    projector_text,
    publisher_cells,
    publisher_line,
    row_meaning,
    row_name,
    since_text,
    summary_line,
)

NOW = datetime.datetime(2026, 11, 30, 12, 0, tzinfo=datetime.UTC)
HOSTILE = "<b>a\nb</b>\u202e"


def plain(text):
    return text.replace(NBSP, " ")


@pytest.mark.parametrize(
    ("age", "text"),
    [
        (datetime.timedelta(minutes=5), "5 minutes ago"),
        (datetime.timedelta(days=3), "3 days ago"),
        (datetime.timedelta(days=59), "59 days ago"),
        (datetime.timedelta(days=95), "3 months ago"),
        (datetime.timedelta(days=1000), "2 years ago"),
        (datetime.timedelta(days=-2), "just now"),
    ],
)
def test_an_age_is_as_coarse_as_people_say_it(age, text):
    assert since_text(NOW - age, NOW) == text
    assert since_text((NOW - age).replace(tzinfo=None), NOW) == text
    assert since_text(None, NOW) == ""


def test_a_result_is_one_line_of_facts():
    assert plain(summary_line(summary(), NOW)) == "8.03 B · bartowski · 1.20 M downloads · 3 days ago"
    bare = summary(parameters_count=None, downloads=0, updated="", owner=HOSTILE)
    assert summary_line(bare, NOW) == "<b>a b</b>"
    assert downloads_text(1).endswith("download")


def test_names_lose_their_format_and_their_tricks():
    assert model_title("Llama-3.1-8B-Instruct-GGUF") == "Llama-3.1-8B-Instruct"
    assert model_title(HOSTILE) == "<b>a b</b>"
    assert model_title("GGUF") == "GGUF"


def test_a_pick_says_quantization_and_room():
    pick = next(one for one in hub_values.picked() if one.name == "Llama 3.1 8B")
    assert plain(pick_line(pick)) == "8.03 B · Q4_K_M, room for 53k tokens"


def test_facts_come_from_the_header_where_it_was_read():
    assert plain(facts_line(detail())) == (
        "8.03 B parameters · 32 layers · 8 KV heads · 128k context · Llama 3.1 licence"
    )
    unread = detail(is_read=False, summary=summary(licence="other", parameters_count=None, context_tokens=None))
    assert facts_line(unread) == ""
    assert licence_text("Apache-2.0") == "Apache 2.0 licence"
    assert licence_text("my-own") == "my-own licence"


def test_a_gate_is_told_in_the_facts():
    gated = summary(gated="manual")
    assert gate_text(detail(summary=gated, access="needs_token")) == "gated"
    assert gate_text(detail(summary=gated, access="granted")) == "gated, and open to you"
    assert gate_text(detail()) == ""


def test_sets_and_projectors_are_folded_into_words():
    repo = hub_values.large_repo()
    assert files_text(repo, repo.row("BF16")) == "3 files + vision projector"
    assert files_text(repo, repo.row("Q4_K_M")) == "1 file + vision projector"
    assert files_text(detail(), detail().rows[0]) == ""
    assert plain(projector_text(repo.projectors[1])) == "With its vision projector, 851 MiB"


def test_a_strangers_quantization_is_shown_and_said_to_be_one():
    odd = msgspec.structs.replace(detail().rows[0], key=HOSTILE, quantization="ZQ3_X", bits_per_weight=None)
    assert row_name(odd) == "<b>a b</b>"
    assert not row_meaning(odd).is_known
    assert row_meaning(msgspec.structs.replace(odd, quantization="")) is None
    assert row_name(msgspec.structs.replace(odd, key="", quantization="")) == "–"


def test_the_banner_says_the_machine_the_choice_and_whose_figures_these_are():
    repo = detail()
    chosen = Recommendation("Q4_K_M", "It has room.")
    words = plain(banner_text(chosen, fits(repo), MACHINE, has_published=True, is_reading=False))
    assert words == (
        "This computer: 12.1 of 15.6 GiB free. Q4_K_M is recommended. It has room. "
        "Figures in italics are published or predicted; yours replace them after the first load."
    )
    reading = banner_text(Recommendation("", ""), {}, MACHINE, has_published=False, is_reading=True)
    assert reading.endswith("The files' headers are being read, to say what fits.")
    assert banner_text(chosen, {}, None, has_published=False, is_reading=False) == ""


def test_the_publisher_is_told_with_what_is_known():
    line = plain(publisher_line(detail(), None, NOW))
    assert line == "publisher bartowski · importance matrix yes · 1.20 M downloads · changed 3 days ago"
    plain_rows = tuple(read_row(one, 4.9, imatrix=False) for one in detail().rows)
    assert "importance matrix no" in publisher_line(detail(rows=plain_rows), None, NOW)
    assert "importance matrix unknown" in publisher_line(detail(is_read=False), None, NOW)
    assert publisher_line(detail(refused_files=2), 0, NOW).endswith(
        "no other publisher known · 2 files with unsafe names left out"
    )
    assert [matrix_text(answer) for answer in (True, False, None)] == ["yes", "no", "unknown"]


def test_publishers_stand_side_by_side():
    cells = [tuple(map(plain, publisher_cells(one, NOW))) for one in hub_values.publishers()]
    assert cells[0] == ("bartowski", "yes", "3 days ago", "1.20 M", "7 quantizations")
    assert cells[1][1:] == ("unknown", "59 days ago", "410 k", "Q2_K, Q3_K_M, Q4_K_M")
    bare = Publisher(repo=LLAMA, owner=HOSTILE, updated="nonsense")
    assert publisher_cells(bare, NOW) == ("<b>a b</b>", "unknown", "–", "–", "–")


def test_a_pause_is_counted_down():
    assert plain(countdown_text(43)) == "It can be asked again in 43 seconds."
    assert plain(countdown_text(1)) == "It can be asked again in 1 second."
