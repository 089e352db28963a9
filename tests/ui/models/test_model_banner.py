"""The sentence over the quantizations: the machine, which one to take, and why."""

from __future__ import annotations

from dataclasses import replace

from app.models.fit_types import Device, Machine, Verdict
from app.units import NBSP
from tests.helpers.model_entries import GIB, MACHINE, entry, fit, ladder, ladder_fits
from ui.models.model_banner import banner_text
from ui.models.model_choice import by_name

HERE = f"This computer: 12.1{NBSP}of{NBSP}15.6{NBSP}GiB free."
ITALICS = "Figures in italics are predicted; yours replace them after the first load."


def text(entries, fits, machine=MACHINE):
    return banner_text(by_name(entries)[0], fits, machine)


def test_it_names_the_largest_with_room():
    entries = ladder()
    assert text(entries, ladder_fits(entries)) == f"{HERE} Q8_0 is the largest with room for 16k tokens. {ITALICS}"


def test_what_is_larger_and_gains_nothing_is_said():
    entries = ladder()
    words = text(entries, {found.key: fit(found, 131_072) for found in entries})
    assert "Q8_0 has room for 16k tokens; what is larger gains hardly anything." in words


def test_a_whole_context_is_said():
    entries = [entry("S", "Q4_1", 5.0, context_tokens=8192), entry("S", "Q8_0", 8.5, context_tokens=8192)]
    words = text(entries, {found.key: fit(found, 8192) for found in entries})
    assert "Q8_0 is the largest with room for all 8k tokens of its context." in words


def test_one_quantization_is_not_compared_with_others():
    found = entry("S", "Q4_1", 5.0, context_tokens=8192)
    assert "Q4_1 has room for all 8k tokens of its context." in text([found], {found.key: fit(found, 8192)})
    assert "Q4_1 has room for 6k tokens." in text([found], {found.key: fit(found, 6144)})


def test_what_does_not_fit_says_what_it_needs():
    entries = ladder()
    nothing = {found.key: fit(found, 0) for found in entries}
    assert f"None of them fits: the smallest needs 3.80{NBSP}GiB." in text(entries, nothing)
    assert f"It does not fit: it needs 3.80{NBSP}GiB." in text(entries[:1], nothing)
    partial = {found.key: fit(found, 0, verdict=Verdict.PARTIAL) for found in entries}
    assert "None fits as a whole; Q2_K keeps some of its layers on the CPU." in text(entries, partial)


def test_what_nobody_can_tell_is_said():
    found = entry("S", "Q4_1", 5.0)
    words = text([found], {found.key: fit(found, None)})
    assert words == f"{HERE} How much memory it takes cannot be told before it is loaded."


def test_the_device_that_decides_is_named():
    gpu = Device("CUDA0", "RTX 4060", 8 * GIB, 7 * GIB)
    found = entry("S", "Q4_1", 5.0)
    words = text([found], {found.key: fit(found, 8192, device=gpu)}, Machine((*MACHINE.devices, gpu)))
    assert words.startswith(f"RTX 4060: 7.00{NBSP}of{NBSP}8.00{NBSP}GiB free.")


def test_measured_figures_need_no_word_about_italics():
    found = entry("S", "Q4_1", 5.0)
    assert ITALICS not in text([found], {found.key: fit(found, 8192, is_speed_measured=True)})


def test_it_is_silent_without_a_machine_or_a_usable_entry():
    found = entry("S", "Q4_1", 5.0)
    assert text([found], {}, None) == ""
    assert text([replace(found, fault="Gone.")], {}) == ""
    assert text([found], {}) == HERE
