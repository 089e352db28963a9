"""What the writer and the reader of a window agree upon."""

from __future__ import annotations

import numpy as np

from backends.window_format import record_words, row_check


def test_a_row_has_whole_words() -> None:
    assert record_words(256, 0) == record_words(255, 0) == 2 + 128
    assert record_words(256, 10) == 1 + 20


def test_the_check_tells_a_changed_row_and_a_moved_one() -> None:
    record = np.arange(100, dtype="<u4") * 40_000_000
    check = row_check(record, 3)
    assert 0 <= check < 2**32
    assert row_check(record, 4) != check
    record[7] ^= 1 << 31
    assert row_check(record, 3) != check
