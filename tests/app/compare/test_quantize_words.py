"""The sentences about quantizations that are made here."""

from __future__ import annotations

from pathlib import Path

from app.compare import quantize_words as words


def test_warnings_name_what_was_lost() -> None:
    assert "(Q8_0)" in words.source_words("Q8_0")
    assert "(Q4_0, Q8_0)" in words.requantized_words("Q4_0 > Q8_0")
    assert "(Q4_1)" in words.requantized_source_words("Q4_1")


def test_refusals_say_what_to_do() -> None:
    told = words.no_room_words(2**31, 2**30, 10**9)
    assert "2.00 GiB are needed, 1.00 GiB are free" in told.message.replace("\u00a0", " ")
    for found in (words.folder_words(Path("/x")), words.exists_words(Path("/x")), words.lost_words(Path("/x"))):
        assert found.message.endswith(".")
        assert found.hint.endswith(".")
    assert "it does not write" in words.unsound_words(Path("/x"), "it does not write").message


def test_figures_have_their_units_and_nothing_is_said_where_nothing_fell_back() -> None:
    assert words.bits_words(4.894) == "4.89 bits"
    assert words.fallback_words(0, 272) == ""
    assert words.fallback_words(180, 272) == "180 of 272 tensors"
    assert words.meaning_words("Q4_K_M", 4.89, 0) == "small differences"
    assert words.room_words(0, 0, None) == "Nothing is ticked"
    assert words.room_words(2, 2**30, 2**31).replace("\u00a0", " ") == "2 ticked: 1.00 GiB · 2.00 GiB free"


def test_what_is_done_and_what_was_made_is_said() -> None:
    assert words.phase_words("quantize", "Q4_0") == "Making Q4_0"
    assert {words.phase_words(phase, "Q4_0") for phase in ("load", "importance", "verify")} == {
        "Loading the source",
        "Reading the text",
        "Trying Q4_0",
    }
    assert words.made_words(["Q4_0"], 2**20).startswith("Q4_0 was made and runs: 1.00")
    assert words.made_words(["Q4_0", "Q8_0"], 2**20).startswith("Q4_0, Q8_0 were made and run: 1.00")
