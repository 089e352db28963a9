"""Drafts from a text's own past: what followed the longest match, as far as the match is worth, and nothing made up."""

from __future__ import annotations

import random

import pytest

from backends.speculation.ngram import LONGEST_DRAFT, NgramDrafter, SharedNgrams

TEXT = list(range(100, 220))


def drafter(*texts, shared=None):
    made = NgramDrafter(shared)
    for text in texts:
        made.extend(text)
    return made


def test_nothing_is_proposed_for_what_was_never_seen():
    assert drafter().propose() == []
    assert drafter([1]).propose() == []
    assert drafter(TEXT).propose() == []
    assert drafter(TEXT, [100, 102]).propose() == []


def test_a_long_match_is_copied_as_far_as_is_wanted():
    made = drafter(TEXT, TEXT[:10])
    assert made.propose(12) == TEXT[10:22]
    assert made.propose() == TEXT[10 : 10 + LONGEST_DRAFT]
    assert made.propose(0) == []


@pytest.mark.parametrize(("match", "most"), [(2, 3), (3, 6), (4, 12), (5, 12), (6, 24), (7, 24), (8, 64), (20, 64)])
def test_a_short_match_is_worth_a_short_draft(match, most):
    assert drafter(TEXT, [7], TEXT[10 : 10 + match]).propose() == TEXT[10 + match : 10 + match + most]


def test_the_last_of_several_places_counts():
    assert drafter([1, 2, 3, 9], [1, 2, 4, 9], [1, 2]).propose(1) == [4]


def test_a_longer_match_is_better_than_a_later_one():
    long = [1, 2, 3, 4, 5, 6, 7, 8]
    assert drafter(long, [50], [9, 7, 8, 60], [9], long).propose(1) == [50]


def test_a_pattern_goes_on_beyond_the_end_of_the_text():
    assert drafter([5, 6, 7] * 5).propose(10) == [5, 6, 7, 5, 6, 7, 5, 6, 7, 5]
    assert drafter([3] * 20).propose(64) == [3] * 64


def test_growing_token_by_token_is_the_same_as_at_once():
    generator = random.Random(5)
    text = [generator.randrange(6) for _ in range(400)]
    slow = NgramDrafter()
    for end, token in enumerate(text, 1):
        slow.extend([token])
        if end % 37 == 0:
            assert slow.propose() == drafter(text[:end]).propose()
    assert slow.tokens == 400


def test_what_is_proposed_did_follow_those_tokens_somewhere():
    generator = random.Random(6)
    text = [generator.randrange(8) for _ in range(300)]
    pairs = {tuple(text[at : at + 3]) for at in range(len(text) - 2)}
    proposed = 0
    for end in range(10, 300):
        draft = drafter(text[:end]).propose(1)
        proposed += len(draft)
        earlier = {tuple(text[at : at + 3]) for at in range(end - 2)}
        assert not draft or (text[end - 2], text[end - 1], draft[0]) in earlier
    assert proposed > 100
    assert pairs


def test_others_texts_help_where_the_own_one_knows_nothing():
    shared = SharedNgrams()
    for _ in range(3):
        drafter(TEXT[:20], shared=shared).learnt()
    assert drafter(TEXT[:4], shared=shared).propose(5) == TEXT[4:9]
    assert drafter(TEXT[:2], shared=shared).propose(5) == []
    assert drafter(TEXT[:4]).propose(5) == []


def test_others_texts_are_trusted_only_where_they_nearly_always_agree():
    shared = SharedNgrams()
    for follower in (9, 9, 8, 8):
        shared.learn([1, 2, 3, follower])
    assert shared.propose([1, 2, 3], 4) == []
    for _ in range(4):
        shared.learn([1, 2, 3, 9])
    assert shared.propose([1, 2, 3], 4) == [9]
    assert shared.propose([2, 3], 4) == []


def test_shared_statistics_stay_bounded(monkeypatch):
    monkeypatch.setattr("backends.speculation.ngram._SHARED_ENTRIES", 100)
    shared = SharedNgrams()
    for first in range(0, 3000, 30):
        shared.learn(list(range(first, first + 30)))
        assert len(shared) <= 100
    shared.learn([2990, 2991, 2992, 2993])
    assert shared._followers[(2990, 2991, 2992)] == {2993: 2}
