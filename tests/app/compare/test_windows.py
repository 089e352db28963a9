"""Windows of tokens: where they begin, what stands first in them, and how many a text holds."""

from __future__ import annotations

import pytest

from app.compare.plan import WINDOW_TOKENS
from app.compare.windows import TooShortError, available, bos_of, cut

BOS = 1
IDS = [BOS, *range(100, 100 + 3 * WINDOW_TOKENS)]


def test_windows_follow_one_another_and_begin_with_bos_in_place_of_their_first_token():
    first, second = cut(IDS, 2, BOS)
    assert first == tuple(IDS[:WINDOW_TOKENS])
    assert second == (BOS, *IDS[WINDOW_TOKENS + 1 : 2 * WINDOW_TOKENS])
    assert len(first) == len(second) == WINDOW_TOKENS


def test_a_vocabulary_that_wants_no_bos_keeps_every_token():
    windows = cut(IDS[1:], 3, None)
    assert [token for window in windows for token in window] == IDS[1:]


def test_what_is_left_over_is_in_no_window():
    assert available(IDS) == 3
    assert available(IDS[: WINDOW_TOKENS - 1]) == 0
    assert cut(IDS, 0, BOS) == ()


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (IDS, "“Notes” has 1,537 tokens: those are 3 windows of 512, and 4 are needed"),
        (IDS[:600], "“Notes” has 600 tokens: that is 1 window of 512, and 4 are needed"),
        ([], "“Notes” has 0 tokens: those are 0 windows of 512, and 4 are needed"),
    ],
)
def test_a_text_that_is_too_short_says_how_many_windows_there_are(ids, words):
    with pytest.raises(TooShortError, match=words) as raised:
        cut(ids, 4, BOS, "Notes")
    assert raised.value.available == available(ids)
    assert raised.value.words.hint


@pytest.mark.parametrize(
    ("empty_ids", "text_ids", "bos"),
    [
        ((1,), (1, 7, 8), 1),  # Llama: <s> stands first
        ((1, 2), (1, 7, 8, 2), 1),  # T5-like: </s> stands last too
        ((2,), (7, 8, 2), None),  # only an end
        ((), (7, 8), None),
    ],
)
def test_the_bos_that_a_vocabulary_wants_is_what_it_puts_before_every_text(empty_ids, text_ids, bos):
    assert bos_of(empty_ids, text_ids) == bos
