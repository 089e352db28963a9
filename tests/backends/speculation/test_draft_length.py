"""The length of drafts: the best by invented costs, none where none pays, and back again when they pay."""

from __future__ import annotations

import itertools
import random

import pytest

from backends.speculation.draft_length import MODEL_LENGTHS, NGRAM_LENGTHS, Acceptance, DraftLength, StepTimes

# Steps of llama.cpp on two cores against a step of one token, from engine.md 5.3.
CPU = {1: 1.0, 3: 3.4, 9: 5.1, 17: 8.3, 65: 26.3}
GPU = {1: 1.0, 9: 1.05, 65: 1.3}


def times(costs):
    made = StepTimes()
    for tokens, seconds in costs.items():
        made.observe(tokens, seconds)
    return made


def settled(length, drafted, accepted, drafts=20):
    for _ in range(drafts):
        length.observe(drafted, accepted)
    return length


# ------------------------------------------------------------------------------------------ step times


def test_a_time_between_two_lies_on_their_line():
    made = times({1: 1.0, 9: 5.0})
    assert [made.expect(tokens) for tokens in (1, 5, 9)] == [1.0, 3.0, 5.0]


def test_a_time_beyond_the_largest_grows_with_the_tokens_and_below_the_smallest_it_stays():
    made = times({4: 2.0, 8: 3.0})
    assert made.expect(16) == 6.0
    assert made.expect(1) == 2.0
    assert StepTimes().expect(1) is None


def test_one_slow_step_among_many_changes_nothing():
    made = times({1: 1.0})
    for seconds in (1.0, 90.0, 1.0):
        made.observe(1, seconds)
    assert made.expect(1) == 1.0


def test_a_machine_that_became_slower_is_believed():
    made = times({1: 1.0})
    for _ in range(9):
        made.observe(1, 2.0)
    assert made.expect(1) == 2.0


@pytest.mark.parametrize(("tokens", "seconds"), [(0, 1.0), (3, 0.0), (3, -1.0)])
def test_what_is_no_step_says_nothing(tokens, seconds):
    made = StepTimes()
    made.observe(tokens, seconds)
    assert made.expect(3) is None


# ------------------------------------------------------------------------------------------ acceptance


def test_before_any_draft_the_prior_holds():
    expected = Acceptance().expected(3)
    assert expected == pytest.approx([0, 0.6, 0.6 + 0.36, 0.6 + 0.36 + 0.216])


def test_acceptance_of_seven_tenths_and_four_drafted_tokens():
    """1.77 accepted tokens, as engine.md and design.md say: 0.7 + 0.49 + 0.343 + 0.2401."""
    generator, made = random.Random(7), Acceptance()
    total = [0.0] * 5
    for _ in range(20_000):
        accepted = next((at for at in range(4) if generator.random() >= 0.7), 4)
        made.observe(4, accepted)
        total = [mean + now for mean, now in zip(total, made.expected(4), strict=True)]
    assert total[4] / 20_000 == pytest.approx(1.7731, rel=0.05)


def test_what_stands_behind_a_miss_was_not_tried():
    made = Acceptance()
    for _ in range(30):
        made.observe(8, 1)
    first, second, *later = made.chances()
    assert first > 0.9
    assert second < 0.25
    assert later[0] == pytest.approx(second)  # nothing is known of it, so it is as the one before


def test_a_text_that_changes_is_followed():
    length = settled(DraftLength(times(GPU)), 16, 16)
    high = length.acceptance.expected(16)[16]
    for _ in range(20):
        length.observe(16, 0)
    assert high > 12
    assert length.acceptance.expected(16)[16] < 0.5


# ---------------------------------------------------------------------------------------------- choice


def test_the_first_step_drafts_nothing():
    assert DraftLength(StepTimes()).choose(8) == 0


def test_on_a_processor_short_drafts_lose_and_long_ones_that_are_accepted_win():
    length = settled(DraftLength(times(CPU)), 64, 64)
    assert length.choose(2) == 0
    assert length.choose(16) == 16
    assert length.choose(64) == 64
    assert DraftLength(times(CPU)).choose(64) == 0


def test_on_a_card_even_poor_drafts_win():
    length = settled(DraftLength(times(GPU), MODEL_LENGTHS), 7, 1)
    assert 0 < length.choose(7) < 5
    assert settled(DraftLength(times(GPU), MODEL_LENGTHS), 7, 7).choose(7) == 7


@pytest.mark.parametrize("lengths", [NGRAM_LENGTHS, MODEL_LENGTHS])
def test_the_choice_is_the_best_of_all_lengths(lengths):
    generator = random.Random(3)
    for _ in range(300):
        costs = itertools.accumulate([1.0, *(generator.random() for _ in range(64))])
        made = times(dict(enumerate(costs, 1)))
        length = settled(DraftLength(made, lengths), 64, generator.randrange(65), generator.randrange(1, 20))
        most = generator.randrange(1, 65)
        expected = length.acceptance.expected(most)
        rates = {min(k, most): (1 + expected[min(k, most)]) / made.expect(1 + min(k, most)) for k in lengths}
        best = max(rates, key=rates.__getitem__)
        chosen = length.choose(most)
        assert chosen == (best if rates[best] > 1.05 * rates[0] else 0)


def test_a_drafter_that_takes_time_itself_drafts_less():
    made = times({1: 1.0, 8: 1.1})
    fast, slow = (settled(DraftLength(made, MODEL_LENGTHS), 7, 7) for _ in range(2))
    assert fast.choose(7) == 7
    assert slow.choose(7, draft_s=1.2) == 0


def test_in_a_large_batch_drafts_lose():
    made = times({1: 1.0, 8: 1.1, 64: 2.0, 256: 8.0})
    length = settled(DraftLength(made, MODEL_LENGTHS), 7, 3)
    assert length.choose(7) > 0
    assert length.choose(7, others=128) == 0


def test_what_loses_is_off_after_some_drafts_and_on_again_when_it_pays():
    length = settled(DraftLength(times(CPU)), 16, 0)
    assert not length.is_off
    for _ in range(4):
        assert length.choose(16) == 0
    assert length.is_off
    settled(length, 16, 16, 40)  # compared with what was written without it
    assert length.choose(16) == 16
    assert not length.is_off


def test_a_drafter_that_loses_is_tried_ever_more_seldom():
    length = DraftLength(times(CPU), MODEL_LENGTHS)
    due = [step for step in range(1, 2000) if length.is_due()]
    assert due[:4] == [16, 48, 112, 240]
    assert max(after - before for before, after in itertools.pairwise(due)) == 512
    length.observe(3, 3)
    assert next(step for step in range(1, 2000) if length.is_due()) <= 16
