"""What the reference's windows take on the disk, predicted and bounded."""

from __future__ import annotations

import pytest

from app.compare.reference_space import (
    KEPT_TOKENS,
    MARGIN_BYTES,
    MOST_BYTES,
    check_space,
    kept_tokens_for,
    kept_words,
    window_bytes,
)
from app.errors import AppError


def test_a_window_takes_two_bytes_for_each_token_of_the_vocabulary_in_each_row() -> None:
    assert window_bytes(49_152) == pytest.approx(25_067_520, rel=0.001)
    assert window_bytes(262_144) == pytest.approx(133_700_000, rel=0.001)


@pytest.mark.parametrize(
    ("windows", "vocabulary", "kept"),
    [(4, 49_152, 0), (16, 49_152, KEPT_TOKENS), (4, 262_144, KEPT_TOKENS), (2, 262_144, 0)],
)
def test_above_400_mb_only_the_likeliest_tokens_are_kept(windows, vocabulary, kept) -> None:
    assert kept_tokens_for(windows, vocabulary) == kept
    assert windows * window_bytes(vocabulary, kept) <= MOST_BYTES
    assert str(KEPT_TOKENS) in kept_words()


def test_a_disk_without_room_is_a_sentence_with_figures() -> None:
    check_space(10**6, 10**6 + MARGIN_BYTES)
    with pytest.raises(AppError, match=r"take 95\.4.MiB on the disk, and 9\.54.MiB are free"):
        check_space(10**8, 10**7)
