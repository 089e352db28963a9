"""Models by name, what a search finds, which quantization is recommended, and which entries are copies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from app.models.fit_types import Verdict
from tests.helpers.model_entries import entry, fit, ladder, ladder_fits
from ui.models.model_choice import by_name, copies_of, matching, one_line, recommended


def test_all_quantizations_of_a_name_are_one_model_smallest_first():
    entries = [entry("Qwen3-8B", "Q8_0", 8.5), entry("qwen3-8b", "Q4_K_M", 4.9), entry("Alpha", "Q4_0", 4.5)]
    models = by_name(entries)
    assert [model.name for model in models] == ["Alpha", "Qwen3-8B"]
    assert [found.quantization for found in models[1].entries] == ["Q4_K_M", "Q8_0"]
    assert models[1].is_same_as(by_name(entries[:1])[0])


def test_a_search_looks_at_name_owner_quantization_architecture_path_and_note():
    entries = [
        entry("Llama", "Q4_K_M", 4.9, owner="bartowski", note="für Briefe", path=Path("/m/deep/x.gguf")),
        entry("Gemma", "Q8_0", 8.5, architecture="gemma3"),
    ]
    models = by_name(entries)
    for text in ("lla", "BARTOWSKI", "q4_k", "deep/x", "fur briefe", "llama bartow"):
        assert [model.name for model in matching(models, text)] == ["Llama"], text
    assert [model.name for model in matching(models, "gemma3")] == ["Gemma"]
    assert len(matching(models, "  ")) == 2
    assert matching(models, "llama gemma3") == []


def test_the_largest_with_room_for_16k_is_recommended():
    entries = ladder()
    fits = ladder_fits(entries)
    chosen = recommended(entries, fits)
    assert (chosen.entry.quantization, chosen.room_tokens, chosen.is_whole) == ("Q8_0", 16_384, False)
    assert chosen.is_largest
    fits[chosen.entry.key] = fit(chosen.entry, 9000)
    assert recommended(entries, fits).entry.quantization == "Q6_K"


def test_sixteen_bits_gain_nothing_where_eight_have_room():
    entries = ladder()
    fits = {found.key: fit(found, 131_072) for found in entries}
    chosen = recommended(entries, fits)
    assert (chosen.entry.quantization, chosen.is_largest) == ("Q8_0", False)
    assert recommended(entries[-1:], fits).entry.quantization == "F16"


def test_a_model_trained_for_less_needs_no_more():
    small = entry("Smol", "Q4_1", 5.0, context_tokens=8192)
    chosen = recommended([small], {small.key: fit(small, 8192)})
    assert (chosen.room_tokens, chosen.is_whole) == (8192, True)


def test_less_room_is_taken_where_none_has_more():
    entries = ladder()
    fits = {found.key: fit(found, 5000 if found.quantization == "Q2_K" else 0) for found in entries}
    chosen = recommended(entries, fits)
    assert (chosen.entry.quantization, chosen.room_tokens) == ("Q2_K", 4096)


def test_the_smallest_that_fits_in_part_is_better_than_none():
    entries = ladder()[4:]
    fits = {found.key: fit(found, 0, verdict=Verdict.PARTIAL) for found in entries}
    chosen = recommended(entries, fits)
    assert (chosen.entry.quantization, chosen.room_tokens) == ("Q6_K", 0)


def test_nothing_is_recommended_where_nothing_fits_or_nobody_knows():
    entries = ladder()
    assert recommended(entries, {}) is None
    assert recommended(entries, {found.key: fit(found, 0) for found in entries}) is None
    assert recommended(entries, {found.key: fit(found, None) for found in entries}) is None
    faulty = replace(entries[0], fault="Gone.")
    assert recommended([faulty], {faulty.key: fit(faulty, 131_072)}) is None


def test_copies_have_the_same_bytes_in_another_place():
    one = entry("A", "Q4_0", 4.5, identity="sha256:1", path=Path("/a"))
    other = replace(one, key="b", path=Path("/b"))
    assert copies_of(one, [one, other, entry("C", "Q4_0", 4.5)]) == [other]
    unread = replace(one, identity="")
    assert copies_of(unread, [replace(other, identity="")]) == []


def test_a_strangers_name_is_one_line_of_bounded_length_without_control_characters():
    assert one_line("a\n\tb  c") == "a b c"
    assert one_line("a\x1b[31m\udcff") == "a␛[31m\ufffd"
    assert len(one_line("x" * 10_000)) == 200
