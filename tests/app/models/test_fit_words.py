"""A fit in words: the same numbers in a sentence, in a cell, in a table and in a question."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.errors import Words
from app.models.fit_types import Device, Fit, Measured, MemoryEstimate, Verdict
from app.models.fit_words import confirmation_words, context_text, fit_sentence, fit_short, owner_rows
from app.units import NBSP
from backends.protocol import MemorySplit

GIB, MIB = 2**30, 2**20
CPU = Device("CPU", "This computer", 8 * GIB, int(7.1 * GIB))
ESTIMATE = MemoryEstimate(
    int(4.0 * GIB),
    int(0.5 * GIB),
    int(0.25 * GIB),
    0,
    0,
    0,
    int(0.1 * GIB),
    "header",
    {"CPU": 1},
    tables_bytes=int(0.06 * GIB),
)
ROOMS = {"f16": 17_408, "q8_0": 33_792, "q4_0": 65_536}
FIT = Fit(Verdict.FITS, ESTIMATE, 8192, ROOMS, layers_count=32, free_bytes=CPU.free_bytes, device=CPU)


@pytest.mark.parametrize(
    ("tokens", "words"),
    [(512, "512"), (1000, "1,000"), (1023, "1,023"), (1024, "1k"), (17_408, "17k"), (33_792, "33k"), (131_072, "128k"),
     (1_048_575, "1023k"), (1_048_576, "1M"), (10_485_760, "10M"), (0, "0"), (None, "unknown")],
)  # fmt: skip
def test_context_lengths_are_said_as_people_do_and_never_rounded_up(tokens, words):
    assert context_text(tokens) == words


def plain(words):
    return words.replace(NBSP, " ")


def test_what_fits_has_a_sentence_and_a_few_words():
    assert plain(fit_sentence(FIT)) == (
        "Needs 4.91 GiB of 7.10 GiB free with 8,192 tokens. Room for 17k tokens; 33k with q8_0 KV."
    )
    assert fit_short(FIT) == "room for 17k · q8 KV 33k"


def test_a_smaller_kv_type_is_named_only_where_it_is_a_gain():
    same = replace(FIT, max_context_tokens={"f16": 8192, "q8_0": 8192, "q4_0": 8192})
    assert fit_short(same) == "room for 8k"
    assert fit_sentence(same).endswith("Room for 8k tokens.")
    only = replace(FIT, max_context_tokens={"f16": 0, "q8_0": 2048})
    assert fit_sentence(only).endswith("Room for 2k tokens with q8_0 KV.")


def test_what_just_fits_says_so():
    tight = replace(FIT, verdict=Verdict.TIGHT, max_context_tokens={"f16": 0})
    assert fit_sentence(tight).endswith("That leaves little to other programs.")
    assert fit_short(tight) == "just fits"
    assert fit_short(replace(tight, verdict=Verdict.FITS)) == "fits"


def test_what_needs_the_computer_too_says_how_many_layers_stay():
    card = Device("CUDA0", "RTX 4060", 8 * GIB, int(7.1 * GIB))
    estimate = replace(ESTIMATE, by_device={"CPU": 2 * GIB, "CUDA0": 7 * GIB})
    partial = replace(FIT, verdict=Verdict.PARTIAL, gpu_layers=26, device=card, estimate=estimate)
    assert fit_short(partial) == "6 of 32 layers on the CPU"
    assert plain(fit_sentence(partial)).startswith(
        "Needs 7.00 GiB of 7.10 GiB free with 8,192 tokens. 6 of its 32 layers stay on the CPU."
    )
    assert "1 of its 32 layers stays on the CPU." in fit_sentence(replace(partial, gpu_layers=31))


def test_what_is_too_large_is_said_with_both_numbers_and_asked_once():
    large = replace(FIT, verdict=Verdict.TOO_LARGE, estimate=replace(ESTIMATE, kv_bytes=int(10.89 * GIB)))
    assert plain(fit_short(large)) == "needs 15.3 GiB, 7.10 GiB free"
    words = confirmation_words(large)
    assert plain(words.message) == "Needs 15.3 GiB with 8,192 tokens, and 7.10 GiB are free."
    assert words.hint == (
        "Loaded all the same, it will be very slow or its engine will end. There is room for 17,408 tokens of context."
    )
    smaller = confirmation_words(replace(large, max_context_tokens={"f16": 0, "q8_0": 2048}))
    assert smaller.hint.endswith("There is room for 2,048 tokens of context with q8_0 KV.")
    none = confirmation_words(replace(large, max_context_tokens={"f16": 0, "q8_0": 0}))
    assert none.hint.endswith("Close other programs, or choose a smaller quantization.")


def test_unknown_is_a_state_with_a_reason_and_one_question():
    """Field report 15: no estimate must not be a refusal, and never a NaN."""
    unknown = replace(
        FIT, verdict=Verdict.UNKNOWN, estimate=None, reason="Nobody knows.", max_context_tokens={"f16": None}
    )
    assert (fit_sentence(unknown), fit_short(unknown)) == ("Nobody knows.", "unknown")
    assert confirmation_words(unknown) == Words(
        "Nobody knows.", "You can load it all the same; if the memory runs out, its engine ends."
    )
    assert fit_sentence(replace(unknown, reason="")).startswith("How much memory it needs cannot be told")


@pytest.mark.parametrize("verdict", [Verdict.FITS, Verdict.TIGHT, Verdict.PARTIAL])
def test_what_fits_is_loaded_at_once(verdict):
    assert confirmation_words(replace(FIT, verdict=verdict)) is None


# ------------------------------------------------------------------------------------------------------ owners


SPLIT = MemorySplit(weights_bytes=4 * GIB, kv_reserved_bytes=GIB // 2, compute_bytes=MIB, output_bytes=2 * MIB)
MEASURED = Measured("llama_cpp", "CPU", 8192, "f16", 512, "chat", 1, SPLIT, process_bytes=5 * GIB)


def test_the_owners_add_up_to_both_totals():
    rows = owner_rows(FIT, MEASURED)
    assert [row.owner for row in rows] == ["weights", "kv", "compute", "output", "rest"]
    assert [row.title for row in rows] == ["Weights", "KV cache", "Compute", "Output", "Engine itself"]
    assert sum(row.predicted_bytes for row in rows) == ESTIMATE.total_bytes
    assert sum(row.measured_bytes for row in rows) == 5 * GIB
    assert rows[1].difference_bytes == 0
    assert rows[2].difference_bytes == MIB - GIB // 4


def test_before_a_load_nothing_is_measured():
    rows = owner_rows(FIT, None)
    assert {row.measured_bytes for row in rows} == {None}
    assert rows[0].difference_bytes is None


def test_copies_are_a_row_of_their_own_and_both_totals_stand():
    copied = replace(FIT, estimate=replace(ESTIMATE, weights_bytes=7 * GIB, copied_bytes=3 * GIB))
    measured = replace(MEASURED, split=MemorySplit(weights_bytes=6 * GIB), process_bytes=7 * GIB)
    rows = {row.owner: (row.predicted_bytes, row.measured_bytes) for row in owner_rows(copied, measured)}
    assert rows["weights"] == (4 * GIB, 4 * GIB)
    assert rows["copies"] == (3 * GIB, 2 * GIB)
    assert sum(row[1] for row in rows.values()) == 7 * GIB
    assert plain(fit_sentence(copied)).startswith("Needs 4.91 GiB of 7.10 GiB free")


def test_what_a_model_does_not_have_is_no_row():
    more = replace(FIT, estimate=replace(ESTIMATE, draft_bytes=5, projector_bytes=6))
    assert [row.owner for row in owner_rows(more, None)] == [
        "weights", "projector", "kv", "compute", "output", "draft", "rest",
    ]  # fmt: skip


def test_an_unknown_estimate_stands_beside_what_was_measured():
    unknown = replace(FIT, verdict=Verdict.UNKNOWN, estimate=None)
    rows = owner_rows(unknown, replace(MEASURED, process_bytes=0, floor_bytes=9))
    assert [(row.predicted_bytes, row.measured_bytes) for row in rows] == [
        (None, 4 * GIB), (None, GIB // 2), (None, MIB), (None, 2 * MIB), (None, 9),
    ]  # fmt: skip
