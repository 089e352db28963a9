"""What a request remembers: the tokens to be penalized within the window, its seed, a copy for look-ahead."""

from __future__ import annotations

import random
from collections import deque

from backends.protocol import SamplingParams
from backends.torch_engine.sampler_state import SamplerState

PENALTY = {"repeat_penalty": 1.3}


def test_without_a_penalty_nothing_is_remembered() -> None:
    state = SamplerState(SamplingParams(), [1, 2, 3])
    state.accept(4)
    assert state.penalized_ids == []
    assert not state.changes_logits


def test_the_end_of_the_prompt_is_penalized_and_falls_out_of_the_window() -> None:
    state = SamplerState(SamplingParams(repeat_last_tokens=3, **PENALTY), [9, 1, 2, 2])
    assert sorted(state.penalized_ids) == [1, 2]
    state.accept(5)
    assert sorted(state.penalized_ids) == [2, 5]  # 2, 2, 5
    state.accept(6)
    state.accept(7)
    assert sorted(state.penalized_ids) == [5, 6, 7]


def test_a_window_of_nothing_penalizes_nothing() -> None:
    state = SamplerState(SamplingParams(repeat_last_tokens=0, **PENALTY), [1])
    state.accept(2)
    assert state.penalized_ids == []


def test_the_window_equals_the_plain_one_for_random_tokens() -> None:
    rng = random.Random(4)
    state = SamplerState(SamplingParams(repeat_last_tokens=8, **PENALTY))
    plain: deque[int] = deque(maxlen=8)
    for _number in range(500):
        token = rng.randrange(6)
        state.accept(token)
        plain.append(token)
        assert sorted(state.penalized_ids) == sorted(set(plain))


def test_a_clone_goes_on_by_itself_with_the_same_seed() -> None:
    state = SamplerState(SamplingParams(**PENALTY), [1])
    copied = state.clone()
    copied.accept(2)
    assert copied.seed == state.seed
    assert state.penalized_ids == [1]
    assert sorted(copied.penalized_ids) == [1, 2]


def test_temperature_zero_is_greedy() -> None:
    assert SamplerState(SamplingParams(temperature=0)).is_greedy
    assert not SamplerState(SamplingParams(temperature=0.01)).is_greedy
