"""Values that make no sense are refused in words, for every engine alike."""

from __future__ import annotations

import pytest

from backends.errors import EngineError, ErrorCode
from backends.protocol import SamplingParams
from backends.sampling_params import MAX_GRAMMAR_BYTES, MAX_LOGPROBS, check_params, chosen_seed

NAN = float("nan")


def test_sound_params_pass() -> None:
    check_params(SamplingParams())
    check_params(SamplingParams(temperature=0, top_k=0, top_p=1, min_p=0, max_tokens=1, seed=0, logprobs=0))
    check_params(SamplingParams(logprobs=MAX_LOGPROBS, grammar='root ::= "a"'))
    check_params(SamplingParams(json_schema="x" * MAX_GRAMMAR_BYTES))


@pytest.mark.parametrize(
    ("params", "word"),
    [
        ({"temperature": NAN}, "temperature"),
        ({"temperature": -0.1}, "temperature"),
        ({"temperature": float("inf")}, "temperature"),
        ({"top_k": -1}, "top-k"),
        ({"top_p": 0.0}, "top-p"),
        ({"top_p": NAN}, "top-p"),
        ({"min_p": 1.0}, "min-p"),
        ({"repeat_penalty": 0.0}, "penalty"),
        ({"repeat_last_tokens": 65537}, "window"),
        ({"seed": -1}, "seed"),
        ({"max_tokens": 0}, "new tokens"),
        ({"logprobs": -1}, "likeliest"),
        ({"logprobs": MAX_LOGPROBS + 1}, "likeliest"),
        ({"grammar": "x", "json_schema": "{}"}, "together"),
        ({"grammar": "é" * (MAX_GRAMMAR_BYTES // 2 + 1)}, "grammar is longer"),
        ({"json_schema": "x" * (MAX_GRAMMAR_BYTES + 1)}, "schema is longer"),
    ],
)
def test_nonsense_is_refused_in_words(params, word) -> None:
    with pytest.raises(EngineError) as caught:
        check_params(SamplingParams(**params))
    assert caught.value.code is ErrorCode.BAD_PARAMS
    assert word in str(caught.value.parameters["detail"])


def test_a_given_seed_is_kept_a_huge_one_folded_and_a_missing_one_drawn() -> None:
    assert chosen_seed(SamplingParams(seed=123)) == 123
    assert all(0 <= chosen_seed(SamplingParams(seed=seed)) < 2**32 - 1 for seed in (2**32 - 1, 2**40, 2**63))
    assert len({chosen_seed(SamplingParams()) for _ in range(8)}) == 8  # equal by chance with odds under 1e-8
