"""The stages give the distribution of llama.cpp's own chain, and the draw follows it by exact integers."""

from __future__ import annotations

import ctypes
import itertools

import llama_cpp as llama
import numpy as np
import pytest
import torch

from backends.protocol import SamplingParams
from backends.torch_engine import sampler_stages
from backends.torch_engine.sampler import probabilities
from backends.torch_engine.sampler_state import SamplerState


def params_of(**values) -> SamplingParams:
    """Return params that filter nothing but what is named."""
    return SamplingParams(**({"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0} | values))


def llama_chances(logits: np.ndarray, params: SamplingParams, history: list[int]) -> dict[int, float]:
    """Return the tokens that llama.cpp's chain leaves, with their probabilities. The chain of its engine, undrawn."""
    count = len(logits)
    chain = llama.llama_sampler_chain_init(llama.llama_sampler_chain_default_params())
    if params.repeat_penalty != 1.0:
        penalties = llama.llama_sampler_init_penalties(
            count, params.repeat_last_tokens, params.repeat_penalty, 0.0, 0.0
        )
        llama.llama_sampler_chain_add(chain, penalties)
    if params.top_k > 0:
        llama.llama_sampler_chain_add(chain, llama.llama_sampler_init_top_k(params.top_k))
    if params.top_p < 1:
        llama.llama_sampler_chain_add(chain, llama.llama_sampler_init_top_p(params.top_p, 1))
    if params.min_p > 0:
        llama.llama_sampler_chain_add(chain, llama.llama_sampler_init_min_p(params.min_p, 1))
    llama.llama_sampler_chain_add(chain, llama.llama_sampler_init_temp(params.temperature))
    for token in history:
        llama.llama_sampler_accept(chain, token)
    data = (llama.llama_token_data * count)(*((token, float(value), 0.0) for token, value in enumerate(logits)))
    candidates = llama.llama_token_data_array(data, count, -1, False)
    llama.llama_sampler_apply(chain, ctypes.byref(candidates))
    left = np.array([candidates.data[place].logit for place in range(candidates.size)], dtype=np.float64)
    ids = [candidates.data[place].id for place in range(candidates.size)]
    llama.llama_sampler_free(chain)
    chances = np.exp(left - left.max())
    return dict(zip(ids, (chances / chances.sum()).tolist(), strict=True))


CASES = [
    *({"temperature": value} for value in (0.3, 1.0, 2.5)),
    *({"top_k": value} for value in (1, 5, 40, 300)),
    *({"top_p": value} for value in (0.001, 0.3, 0.8, 0.95, 0.999)),
    *({"min_p": value} for value in (0.01, 0.05, 0.5, 0.99)),
    *({"top_k": k, "top_p": p, "temperature": 0.7} for k, p in itertools.product((0, 20), (0.6, 0.9))),
    *({"top_k": k, "min_p": m, "top_p": 0.9, "temperature": 0.7} for k, m in itertools.product((0, 20), (0.02, 0.2))),
    *({"repeat_penalty": value, "top_k": 10} for value in (0.8, 1.1, 2.0)),
    {"repeat_penalty": 1.5, "repeat_last_tokens": 2, "top_p": 0.9, "min_p": 0.05, "temperature": 1.4},
]  # fmt: skip


@pytest.mark.parametrize("values", CASES, ids=str)
@pytest.mark.parametrize("tokens", [32, 2000])
def test_the_distribution_is_that_of_llama_cpp_s_chain(values, tokens) -> None:
    rng = np.random.default_rng(tokens)
    logits = (rng.standard_normal(tokens) * 3).astype(np.float32)
    history = rng.integers(0, 32, 5).tolist()
    params = params_of(**values)
    expected = llama_chances(logits, params, history)
    found = probabilities(torch.from_numpy(logits), SamplerState(params, history)).numpy()
    assert {token for token, chance in expected.items() if chance > 1e-12} <= set(np.flatnonzero(found).tolist())
    assert set(np.flatnonzero(found).tolist()) <= set(expected)
    for token, chance in expected.items():
        assert found[token] == pytest.approx(chance, abs=1e-5, rel=1e-5)


def test_weights_are_whole_and_the_likeliest_has_the_most() -> None:
    weights = sampler_stages.weights_of(np.array([[0.0, -1.0, -np.inf, 0.0]], dtype=np.float32))
    assert weights[0, 0] == weights[0, 3] == 1 << 42
    assert weights[0, 1] == pytest.approx((1 << 42) / np.e, rel=1e-12)
    assert weights[0, 2] == 0


def test_a_tiny_temperature_leaves_the_likeliest_and_does_not_overflow() -> None:
    values = np.array([[3.0, 2.0, -5.0]], dtype=np.float32)
    assert sampler_stages.stage_weights(values, [params_of(temperature=1e-300)]).astype(bool).tolist() == [
        [True, False, False]
    ]


def test_the_token_that_reaches_top_p_stays() -> None:
    values = np.log(np.array([[0.5, 0.3, 0.2]], dtype=np.float32))
    for top_p, kept in ((0.4, 1), (0.6, 2), (0.79, 2), (0.9, 3)):
        weights = sampler_stages.stage_weights(values, [params_of(top_p=top_p)])
        assert int((weights > 0).sum()) == kept


def test_rows_of_different_params_do_not_touch_each_other() -> None:
    values = np.sort(np.random.default_rng(1).standard_normal((3, 64)).astype(np.float32))[:, ::-1].copy()
    params = [params_of(top_k=5), params_of(top_p=0.5, temperature=0.2), params_of(min_p=0.3)]
    together = sampler_stages.stage_weights(values, params)
    for row in range(3):
        assert np.array_equal(together[row], sampler_stages.stage_weights(values[row : row + 1], [params[row]])[0])


@pytest.mark.parametrize("levels", [3, 50, 100_000])
def test_a_whole_row_has_the_weights_of_the_row_sorted(levels) -> None:
    """The way without sorting places against the plain one, also where many logits are equal."""
    rng = np.random.default_rng(levels)
    for number in range(60):
        values = (rng.integers(0, levels, 400) * (8 / levels)).astype(np.float32)
        values[rng.integers(0, 400, 30)] = -np.inf
        params = params_of(
            top_k=(0, 1, 7, 399, 400, 5000)[number % 6],
            top_p=(1.0, 0.99, 0.4, 1e-6)[number % 4],
            min_p=(0.0, 0.1)[number % 2],
            temperature=(0.3, 1.0, 4.0)[number % 3],
        )
        order = np.lexsort((np.arange(400), -values))
        expected = np.zeros(400, dtype=np.int64)
        expected[order] = sampler_stages.stage_weights(values[order][None], [params])[0]
        ids, weights = sampler_stages.row_weights(values, params)
        found = np.zeros(400, dtype=np.int64)
        found[ids] = weights
        assert np.array_equal(found, expected)
        assert (np.diff(ids) > 0).all()


def test_the_draw_never_falls_on_a_weight_of_zero_not_even_at_the_edges() -> None:
    weights = np.array([[0, 3, 0, 5, 0]], dtype=np.int64)
    edges = [0.0, 3 / 8 - 1e-12, 3 / 8, 1 - 2.0**-53]
    assert sampler_stages.draw(np.repeat(weights, 4, 0), edges) == [1, 1, 3, 3]


def test_the_draw_is_exact_for_every_whole_mark() -> None:
    weights = np.array([[2, 0, 1, 4]], dtype=np.int64)
    places = [sampler_stages.draw(weights, [(mark + 0.5) / 7])[0] for mark in range(7)]
    assert places == [0, 0, 2, 3, 3, 3, 3]
