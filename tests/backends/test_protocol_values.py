"""What is computed from the figures of a request."""

from __future__ import annotations

from backends import protocol


def test_figures_never_mix_reading_into_writing() -> None:
    # 100 of 120 prompt tokens were read in 2 s, then 11 tokens came in 1 s: the first of them belongs to the reading.
    figures = protocol.RequestFigures(prompt_tokens=120, reused_tokens=20, new_tokens=11, prefill_s=2.0, decode_s=1.0)
    assert figures.prefill_tokens_per_s == 50.0
    assert figures.decode_tokens_per_s == 10.0


def test_figures_of_nothing_are_zero_and_never_nan() -> None:
    figures = protocol.RequestFigures()
    assert (figures.prefill_tokens_per_s, figures.decode_tokens_per_s) == (0.0, 0.0)
