"""What a person is told while a download goes on is one or two whole sentences."""

from __future__ import annotations

import pytest

from app.downloads import words
from app.errors import Words

ALL = [
    words.in_use_words(),
    words.no_ranges_words(),
    words.changed_words(),
    words.damaged_words(),
    words.damaged_copy_words(),
    words.interrupted_words(),
    words.leftover_words(5 * 2**20),
    words.nameless_words(5 * 2**20),
    words.queue_lost_words("downloads.damaged.json"),
]


@pytest.mark.parametrize("told", ALL, ids=lambda told: told.message[:20])
def test_each_is_a_sentence(told: Words):
    assert told.message.endswith(".")
    assert told.message[0].isupper()
    assert not told.hint or told.hint.endswith(".")
    assert "{" not in told.message + told.hint


def test_sizes_have_units():
    assert "5.00\u00a0MiB" in words.leftover_words(5 * 2**20).message
