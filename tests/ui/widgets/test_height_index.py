"""Stacked heights agree with the obvious sum after every change."""

from __future__ import annotations

import random

from ui.widgets.height_index import HeightIndex


def test_tops_totals_and_places_agree_with_plain_sums_after_random_changes():
    draw = random.Random(3)
    index, plain = HeightIndex(), []
    for _step in range(2000):
        action = draw.random()
        if action < 0.5 or not plain:
            plain.append(draw.randint(1, 50))
            index.append(plain[-1])
        elif action < 0.8:
            at = draw.randrange(len(plain))
            height = draw.randint(1, 50)
            assert index.set(at, height) == (height != plain[at])
            plain[at] = height
        else:
            at = draw.randrange(len(plain))
            del plain[at]
            index.remove(at)
        if not plain:
            continue
        at = draw.randrange(len(plain))
        assert len(index) == len(plain)
        assert index[at] == plain[at]
        assert index.top(at) == sum(plain[:at])
        assert index.total == sum(plain)
        assert index.find(sum(plain[:at])) == at
        assert index.find(sum(plain[: at + 1]) - 1) == at


def test_a_place_outside_finds_the_nearest_entry():
    index = HeightIndex([10, 20])
    assert index.find(-5) == 0
    assert index.find(1000) == 1
    assert HeightIndex().find(3) == 0
    assert HeightIndex().total == 0
