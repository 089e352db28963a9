"""The chain is built from the params; nonsense is refused before llama.cpp sees it."""

from __future__ import annotations

import llama_cpp
import pytest

from backends.errors import EngineError, ErrorCode
from backends.llama_cpp_engine.sampler import Sampler, check_params
from backends.protocol import SamplingParams


def names(params: SamplingParams) -> list[str]:
    sampler = Sampler(params, 100)
    count = llama_cpp.llama_sampler_chain_n(sampler._chain)
    found = [
        llama_cpp.llama_sampler_name(llama_cpp.llama_sampler_chain_get(sampler._chain, number)).decode()
        for number in range(count)
    ]
    sampler.close()
    return [name.lstrip("+?") for name in found]


def test_temperature_zero_is_greedy_and_nothing_else() -> None:
    assert names(SamplingParams(temperature=0)) == ["greedy"]


def test_the_defaults_filter_in_llama_cpp_s_own_order() -> None:
    assert names(SamplingParams()) == ["top-k", "top-p", "min-p", "temp", "dist"]


def test_filters_that_keep_all_are_left_out() -> None:
    assert names(SamplingParams(top_k=0, top_p=1.0, min_p=0.0)) == ["temp", "dist"]


def test_a_repeat_penalty_comes_first_also_before_greedy() -> None:
    assert names(SamplingParams(temperature=0, repeat_penalty=1.1)) == ["penalties", "greedy"]


def test_a_given_seed_is_kept_and_a_missing_one_drawn() -> None:
    sampler = Sampler(SamplingParams(seed=123), 100)
    assert sampler.seed == 123
    drawn = {Sampler(SamplingParams(), 100).seed for _ in range(8)}
    assert len(drawn) == 8  # equal by chance with odds under 1e-8
    sampler.close()


def test_a_huge_seed_is_folded_and_never_the_value_that_means_random() -> None:
    for seed in (2**32 - 1, 2**40, 2**63):
        assert 0 <= Sampler(SamplingParams(seed=seed), 100).seed < 2**32 - 1


def test_sound_params_pass() -> None:
    check_params(SamplingParams())
    check_params(SamplingParams(temperature=0, top_k=0, top_p=1, min_p=0, max_tokens=1, seed=0))


def test_closing_twice_is_harmless() -> None:
    sampler = Sampler(SamplingParams(), 100)
    sampler.close()
    sampler.close()


def test_infinite_values_are_refused() -> None:
    with pytest.raises(EngineError) as caught:
        check_params(SamplingParams(temperature=float("inf")))
    assert caught.value.code is ErrorCode.BAD_PARAMS


@pytest.mark.parametrize(
    ("params", "word"),
    [({"logprobs": 0}, "probabilities"), ({"grammar": 'root ::= "a"'}, "grammar"), ({"json_schema": "{}"}, "schema")],
)
def test_what_this_engine_cannot_do_yet_is_refused_and_not_left_out_in_silence(params, word) -> None:
    with pytest.raises(EngineError) as caught:
        check_params(SamplingParams(**params))
    assert caught.value.code is ErrorCode.BAD_PARAMS
    assert word in str(caught.value.parameters["detail"])
