"""Which row suits this machine, and the reason that is given."""

from __future__ import annotations

import pytest

from app.hub.recommend import recommend, row_bits
from app.models.fit_types import Verdict
from app.models.shape import ModelShape
from tests.helpers.hub_asking import fit_of, row

LADDER = ("Q2_K", "Q3_K_M", "Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0", "BF16")


def table(rooms: dict[str, int], verdict: Verdict = Verdict.FITS) -> list:
    """Rows of a ladder; what has no room is too large."""
    return [
        (row(name), fit_of(rooms.get(name, 0), verdict if rooms.get(name, 0) else Verdict.TOO_LARGE)) for name in LADDER
    ]


def test_the_most_bits_of_the_balanced_ones_that_leave_room_for_16k():
    found = recommend(table(dict.fromkeys(LADDER, 40_000)))
    assert found.key == "Q5_K_M"
    assert found.reason == (
        "The most bits of the balanced ones that leave room for 39k tokens here: small differences."
    )
    assert recommend(table({"Q2_K": 30_000, "Q3_K_M": 25_000, "Q4_K_M": 17_000, "Q5_K_M": 9_000})).key == "Q4_K_M"


def test_room_for_8k_will_do_where_there_is_no_more():
    assert recommend(table({"Q2_K": 15_000, "Q3_K_M": 12_000, "Q4_K_M": 9_000})).key == "Q4_K_M"


def test_small_ones_are_taken_only_where_nothing_larger_fits_and_say_what_they_cost():
    found = recommend(table({"Q2_K": 20_000, "Q3_K_M": 17_000}))
    assert found.key == "Q3_K_M"
    assert found.reason == "The most bits that fit here, with room for 16k tokens. What it costs: noticeable."


def test_a_model_trained_for_less_needs_no_more_room_than_it_can_use():
    rows = [(row("Q4_K_M", shape=ModelShape(architecture="llama", context_tokens=4096)), fit_of(4096))]
    assert recommend(rows).key == "Q4_K_M"
    assert "4k" in recommend(rows).reason


def test_where_nothing_is_balanced_the_smallest_large_one_is_taken():
    rows = [(row(name), fit_of(40_000)) for name in ("Q8_0", "BF16")]
    found = recommend(rows)
    assert found.key == "Q8_0"
    assert "keeps everything" in found.reason


def test_newer_kinds_go_before_older_ones_of_more_bits():
    rows = [(row(name), fit_of(40_000)) for name in ("Q4_0", "Q4_K_M", "Q5_1")]
    assert recommend(rows).key == "Q4_K_M"
    assert recommend([(row(name), fit_of(40_000)) for name in ("Q4_0", "Q5_1")]).key == "Q5_1"


def test_an_importance_matrix_decides_between_equals():
    rows = [
        (row("Q4_K_M", key="a", imatrix=False), fit_of(40_000)),
        (row("Q4_K_M", key="b", imatrix=True), fit_of(40_000)),
    ]
    assert recommend(rows).key == "b"


def test_the_bits_of_the_file_count_and_not_its_name():
    fallen = row("Q2_K", bits_per_weight=5.2)
    assert row_bits(fallen) == 5.2
    assert recommend([(fallen, fit_of(40_000))]).reason.startswith("The most bits of the balanced ones")


def test_too_little_room_is_said():
    found = recommend(table({"Q3_K_M": 3_000, "Q4_K_M": 2_048}))
    assert found.key == "Q3_K_M"
    assert found.reason == "It fits, but with room for 2k tokens only: long dialogues will not go in."


def test_below_three_bits_nothing_is_recommended_without_a_word():
    rows = [(row("IQ2_XXS"), fit_of(40_000)), (row("Q4_K_M"), fit_of(0, Verdict.TOO_LARGE))]
    found = recommend(rows)
    assert found.key == "IQ2_XXS"
    assert found.reason == (
        "Only this fits here, and 2.38 bits a weight lose much: expect wrong facts. A smaller model in more bits is "
        "the better choice."
    )


@pytest.mark.parametrize(
    ("verdict", "words"), [(Verdict.PARTIAL, "some of its layers stay on the CPU"), (Verdict.TIGHT, "just fits")]
)
def test_what_fits_badly_says_how(verdict, words):
    found = recommend([(row("Q4_K_M"), fit_of(9_000, verdict)), (row("Q8_0"), fit_of(0, Verdict.TOO_LARGE))])
    assert found.key == "Q4_K_M"
    assert words in found.reason


def test_nothing_is_recommended_where_nothing_fits():
    found = recommend(table({}))
    assert (found.key, found.reason) == ("", "None of them fits this machine. Look for a smaller model.")


def test_broken_and_unknown_rows_are_never_recommended():
    rows = [
        (row("Q4_K_M", is_broken=True), fit_of(40_000)),
        (row("q4_mine"), fit_of(40_000)),
        (row("", key="x"), fit_of(40_000)),
    ]
    assert recommend(rows).key == ""
    assert recommend([]).key == ""


def test_where_nobody_can_tell_what_nearly_everybody_takes_is_named():
    unknown = fit_of(0, Verdict.UNKNOWN)
    found = recommend([(row(name), unknown) for name in LADDER])
    assert found.key == "Q4_K_M"
    assert "cannot be told yet" in found.reason
