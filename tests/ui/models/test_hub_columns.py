"""What each cell of a repo's table shows, in which colour, and how its figure was got."""

from __future__ import annotations

import msgspec
import pytest

from app.hub.published import Published
from app.units import NBSP
from tests.helpers import hub_values
from tests.helpers.hub_values import LLAMA, detail, fit_of, read_row, row
from ui.models.grouped_table_model import Group
from ui.models.hub_columns import (
    ACTION,
    BITS,
    COLUMNS,
    HERE,
    KL,
    QUANTIZATION,
    SIZE,
    SPEED,
    WORDS,
    Facts,
    colour_role,
    figure_tooltip,
    is_foreign,
    row_group,
)

READ = row(LLAMA, "Q4_K_M", 4.89)
UNREAD = row(LLAMA, "Q4_K_M", 4.89, is_read=False)
BROKEN = msgspec.structs.replace(UNREAD, is_broken=True, state="failed", fault="Part 2 is missing.")
KNOWN = Facts(READ, fit_of(READ.shape), Published(0.0282, "By others."))


def texts(facts):
    return [column.text(facts).replace(NBSP, " ") for column in COLUMNS]


def test_a_row_that_is_read_says_everything():
    assert texts(KNOWN) == [
        "Q4_K_M",
        "small differences",
        "4.89",
        "4.57 GiB",
        "room for 54k · q8 KV 101k",
        "0.0282",
        "6.46",
        "",
    ]


def test_a_row_that_is_not_read_says_what_its_name_promises():
    assert texts(Facts(UNREAD))[:5] == ["Q4_K_M", "small differences", "4.89", "4.57 GiB", "reading header…"]
    assert texts(Facts(UNREAD))[5:] == ["–", "–", ""]
    reading = msgspec.structs.replace(UNREAD, state="reading")
    failed = msgspec.structs.replace(UNREAD, state="failed", fault="No answer.")
    assert texts(Facts(reading))[HERE] == "reading header…"
    assert texts(Facts(failed))[HERE] == "unknown"
    assert texts(Facts(BROKEN))[HERE] == "cannot be used"


def test_strangers_and_empty_rows_have_dashes():
    stranger = msgspec.structs.replace(UNREAD, key="ZQ", quantization="ZQ", size_bytes=0)
    assert texts(Facts(stranger))[:4] == ["ZQ", "unknown", "–", "–"]
    nameless = msgspec.structs.replace(stranger, quantization="")
    assert texts(Facts(nameless))[1:3] == ["–", "–"]


@pytest.mark.parametrize(
    ("found", "group"),
    [
        (READ, Group.BALANCED),
        (UNREAD, Group.BALANCED),
        (row(LLAMA, "Q2_K", 3.2), Group.SMALL),
        (read_row(row(LLAMA, "Q2_K", 3.2), 5.0), Group.BALANCED),
        (row(LLAMA, "F16", 16.0), Group.LARGE),
        (BROKEN, Group.FAULTY),
        (msgspec.structs.replace(UNREAD, quantization=""), Group.OTHER),
        (msgspec.structs.replace(UNREAD, quantization="ZQ3_X"), Group.OTHER),
        (msgspec.structs.replace(READ, quantization="ZQ3_X"), Group.BALANCED),
    ],
)
def test_rows_stand_under_what_they_really_take(found, group):
    assert row_group(found) is group


def test_figures_of_others_look_different():
    assert [column for column in range(len(COLUMNS)) if is_foreign(KNOWN, column)] == [KL, SPEED]
    assert [column for column in range(len(COLUMNS)) if is_foreign(Facts(UNREAD), column)] == [BITS]


def test_colours_say_what_is_quiet_and_what_is_too_large():
    assert [colour_role(KNOWN, column) for column in (QUANTIZATION, WORDS, BITS, HERE, KL, SPEED)] == [
        *("text", "muted", "text", "text", "muted", "muted")
    ]
    large = row(LLAMA, "F16", 16.0)
    assert colour_role(Facts(large, fit_of(large.shape)), HERE) == "limit"
    assert colour_role(Facts(UNREAD), HERE) == "muted"
    assert colour_role(Facts(UNREAD), BITS) == "muted"
    assert colour_role(Facts(BROKEN), HERE) == "limit"
    assert colour_role(Facts(BROKEN), SIZE) == "muted"


def test_tooltips_tell_where_a_figure_comes_from():
    assert figure_tooltip(KNOWN, HERE).startswith("Needs 5.29")
    guessed = msgspec.structs.replace(READ, is_shape_exact=False)
    assert figure_tooltip(Facts(guessed, KNOWN.fit), HERE).endswith("Estimated from another file of this model.")
    assert figure_tooltip(Facts(UNREAD), BITS) == "What the name promises; the header was not read."
    fallen = msgspec.structs.replace(READ, fallback=12)
    assert figure_tooltip(Facts(fallen), BITS).startswith("12 tensors are stored in larger types")
    assert figure_tooltip(KNOWN, SIZE) == "Llama-3.1-8B-Instruct-Q4_K_M.gguf"
    many = row(LLAMA, "BF16", 16.0, parts=20)
    assert figure_tooltip(Facts(many), SIZE).count("\n") == 12
    assert figure_tooltip(KNOWN, SPEED) == "Predicted from this machine's memory bandwidth."
    assert figure_tooltip(KNOWN, ACTION) == ""


def test_every_column_with_a_heading_says_how_its_figures_were_got():
    assert [bool(column.title()) for column in COLUMNS] == [bool(column.about()) for column in COLUMNS]
    assert hub_values.fits(detail()).keys() == {one.key for one in detail().rows}
