"""A step's rows: each gets what it would get alone, by the exact distribution, and never a masked token."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

from backends.errors import EngineError, ErrorCode
from backends.protocol import SamplingParams
from backends.torch_engine.sampler import BatchSampler, RowsError, SamplerRow, probabilities
from backends.torch_engine.sampler_state import SamplerState
from backends.torch_engine.sampler_uniform import uniform
from tests.helpers.token_pieces import chi_square_excess

SAMPLER = BatchSampler()
ROWS_A_CALL = 4000


def params_of(**values) -> SamplingParams:
    """Return params that filter nothing but what is named."""
    return SamplingParams(**({"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0, "seed": 1} | values))


def draws(logits: torch.Tensor, state: SamplerState, count: int) -> np.ndarray:
    """Return how often each token was drawn at `count` positions."""
    counts = np.zeros(len(logits), dtype=np.int64)
    for begin in range(0, count, ROWS_A_CALL):
        rows = [SamplerRow(state, position) for position in range(begin, min(count, begin + ROWS_A_CALL))]
        tokens = [one.token for one in SAMPLER.sample(logits.expand(len(rows), -1), rows)]
        counts += np.bincount(tokens, minlength=len(logits))
    return counts


def random_params(rng: random.Random) -> SamplingParams:
    return SamplingParams(
        temperature=rng.choice([0.0, 0.2, 0.8, 1.0, 3.0]),
        top_k=rng.choice([0, 0, 1, 3, 40, 900, 1500, 5000]),
        top_p=rng.choice([1.0, 0.95, 0.5, 0.01]),
        min_p=rng.choice([0.0, 0.05, 0.4]),
        repeat_penalty=rng.choice([1.0, 1.0, 1.3]),
        seed=rng.randrange(1000),
        logprobs=rng.choice([None, 0, 3]),
    )


@pytest.mark.parametrize("are_rounded", [False, True], ids=["float32", "from bfloat16, many equal"])
def test_each_row_of_a_mixed_batch_is_the_row_alone(are_rounded) -> None:
    """Bug 14: greedy and sampled rows of all params, in any company and order, with the same tokens."""
    rng, generator = random.Random(5), torch.Generator().manual_seed(5)
    for _number in range(8):
        count = rng.randrange(2, 20)
        logits = torch.randn(count, 3000, generator=generator) * rng.choice([1, 4])
        logits = logits.bfloat16().float() if are_rounded else logits
        before = logits.clone()
        history = [[rng.randrange(3000) for _ in range(30)] for _ in range(count)]
        rows = [SamplerRow(SamplerState(random_params(rng), history[at]), rng.randrange(99)) for at in range(count)]
        together = SAMPLER.sample(logits, rows)
        alone = [SAMPLER.sample(logits[at : at + 1], [rows[at]])[0] for at in range(count)]
        assert [one.token for one in together] == [one.token for one in alone]
        order = rng.sample(range(count), count)
        again = SAMPLER.sample(logits[order], [rows[at] for at in order])
        assert [one.token for one in again] == [together[at].token for at in order]
        assert torch.equal(logits, before)


def test_greedy_takes_the_first_largest() -> None:
    logits = torch.tensor([[1.0, 5.0, 5.0], [2.0, 1.0, 0.0]])
    rows = [SamplerRow(SamplerState(params_of(temperature=0)), at) for at in range(2)]
    assert [one.token for one in SAMPLER.sample(logits, rows)] == [1, 0]


def test_a_seeded_answer_is_the_same_after_a_preemption_and_in_other_company() -> None:
    """Bug 22: a fresh state at the same position draws what the first one drew."""
    logits = torch.randn(40, 200, generator=torch.Generator().manual_seed(1))
    params = params_of(seed=77, top_k=20)
    first = [SAMPLER.sample(logits[at : at + 1], [SamplerRow(SamplerState(params), at)])[0].token for at in range(40)]
    mates = SamplerState(params_of(seed=3))
    for at in reversed(range(40)):
        rows = [SamplerRow(mates, at), SamplerRow(SamplerState(params), at)]
        assert SAMPLER.sample(logits[[at, at]], rows)[1].token == first[at]
    other = SamplerState(params_of(seed=78, top_k=20))
    assert [SAMPLER.sample(logits[at : at + 1], [SamplerRow(other, at)])[0].token for at in range(40)] != first


def test_torch_s_own_generator_is_neither_used_nor_moved() -> None:
    logits = torch.randn(1, 100, generator=torch.Generator().manual_seed(1))
    found = set()
    for seed in (1, 2, 3):
        torch.manual_seed(seed)
        before = torch.get_rng_state()
        found.add(SAMPLER.sample(logits, [SamplerRow(SamplerState(params_of(seed=5)), 9)])[0].token)
        assert torch.equal(torch.get_rng_state(), before)
    assert len(found) == 1


STAGES = [
    {},
    {"temperature": 0.5},
    {"temperature": 2.0, "top_k": 4},
    {"top_k": 3},
    {"top_p": 0.7},
    {"top_p": 0.7, "top_k": 6, "temperature": 1.5},
    {"min_p": 0.2},
    {"repeat_penalty": 1.8},
    {"repeat_penalty": 1.8, "top_k": 5, "top_p": 0.9, "min_p": 0.05, "temperature": 0.7},
]


@pytest.mark.parametrize("values", STAGES, ids=str)
def test_frequencies_follow_the_exact_distribution(values) -> None:
    """Chi-square over 8,000 draws; the exact distribution is written out here. False alarm: 3e-7 each."""
    logits = torch.tensor([2.0, 1.5, 1.0, 0.5, 0.0, -1.0, 1.2, -3.0])
    state = SamplerState(params_of(**values), [0, 4, 4])
    expected = plain_chances(logits.tolist(), state.params, {0, 4})
    counts = draws(logits, state, 8_000)
    assert not counts[expected == 0].any()
    likely = expected > 0
    assert chi_square_excess(counts[likely], expected[likely] * 8_000) < 5
    assert probabilities(logits, state).numpy() == pytest.approx(expected, abs=1e-6)


def plain_chances(logits: list[float], params: SamplingParams, recent: set[int]) -> np.ndarray:
    """Return the distribution by the plainest way: a dictionary that stage after stage shrinks."""
    if params.repeat_penalty != 1:
        scale = params.repeat_penalty
        logits = [(v * scale if v <= 0 else v / scale) if token in recent else v for token, v in enumerate(logits)]
    left = sorted(range(len(logits)), key=lambda token: -logits[token])
    left = left[: params.top_k] if params.top_k else left
    total = sum(np.exp(logits[token]) for token in left)
    kept, reached = [], 0.0
    for token in left:
        if reached >= params.top_p:
            break
        kept.append(token)
        reached += np.exp(logits[token]) / total
    best = logits[kept[0]]
    kept = [token for token in kept if np.exp(logits[token] - best) >= params.min_p]
    found = np.zeros(len(logits))
    for token in kept:
        found[token] = np.exp((logits[token] - best) / params.temperature)
    return found / found.sum()


@pytest.mark.parametrize("values", [{}, {"top_p": 0.9}, {"top_k": 64}, {"top_k": 2000}, {"top_p": 0.9999}], ids=str)
def test_frequencies_follow_probabilities_over_a_large_vocabulary(values) -> None:
    """What speculation will rely on. Chi-square over 2,000 draws from 5,000 tokens; false alarm 3e-7 each."""
    logits = torch.randn(5000, generator=torch.Generator().manual_seed(8)) * 2.5
    state = SamplerState(params_of(**values))
    expected = probabilities(logits, state).numpy()
    assert expected.sum() == pytest.approx(1, abs=1e-12)
    counts = np.zeros(5000, dtype=np.int64)
    for position in range(2000):
        counts[SAMPLER.sample(logits[None], [SamplerRow(state, position)])[0].token] += 1
    assert not counts[expected == 0].any()
    likely = expected > 0
    assert chi_square_excess(counts[likely], expected[likely] * 2000) < 5


def test_greedy_probability_lies_on_one_token() -> None:
    found = probabilities(torch.tensor([0.0, 3.0, 3.0]), SamplerState(params_of(temperature=0)))
    assert found.tolist() == [0.0, 1.0, 0.0]


def masked_draws(count: int) -> int:
    """Return how many of `count` draws fell on a token of logit -inf; half of them are masked."""
    logits = torch.randn(64, generator=torch.Generator().manual_seed(3))
    logits[::2] = -torch.inf
    wrong = 0
    for values in (
        {"top_k": 63},
        {"top_k": 63, "temperature": 100.0},
        {"top_k": 40, "top_p": 0.99, "temperature": 9.0},
    ):
        wrong += int(draws(logits, SamplerState(params_of(**values)), count // 3)[::2].sum())
    for values in ({}, {"top_p": 0.999, "temperature": 100.0}):  # row by row, and slower
        wrong += int(draws(logits, SamplerState(params_of(**values)), count // 50)[::2].sum())
    return wrong


def test_a_masked_token_is_never_drawn_in_a_hundred_thousand() -> None:
    """Bug 24."""
    assert masked_draws(100_000) == 0


@pytest.mark.full
def test_a_masked_token_is_never_drawn_in_a_million() -> None:
    assert masked_draws(1_000_000) == 0


@pytest.mark.parametrize("values", [{"temperature": 0}, {"top_k": 5}, {}, {"top_p": 0.9}, {"top_k": 2000}], ids=str)
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf], ids=["nan", "inf", "all -inf"])
def test_a_row_without_usable_numbers_is_named_and_the_others_go_on(values, bad) -> None:
    logits = torch.randn(3, 3000, generator=torch.Generator().manual_seed(6))
    rows = [SamplerRow(SamplerState(params_of(**values)), at) for at in range(3)]
    alone = [SAMPLER.sample(logits[at : at + 1], [rows[at]])[0].token for at in (0, 2)]
    logits[1, 5 if bad != -torch.inf else slice(None)] = bad
    with pytest.raises(RowsError) as caught:
        SAMPLER.sample(logits, rows)
    assert caught.value.code is ErrorCode.DECODE_FAILED
    assert list(caught.value.details) == [1]
    assert "usable" in str(caught.value.parameters["detail"])
    with pytest.raises(EngineError):
        probabilities(logits[1], rows[1].state)
    assert [one.token for one in SAMPLER.sample(logits[[0, 2]], [rows[0], rows[2]])] == alone


def test_a_single_token_that_is_left_is_drawn() -> None:
    logits = torch.full((4, 50), -torch.inf)
    logits[:, 33] = -1e30
    params = [params_of(temperature=0), params_of(top_k=4), params_of(top_p=0.2), params_of()]
    rows = [SamplerRow(SamplerState(one), 0) for one in params]
    assert [one.token for one in SAMPLER.sample(logits, rows)] == [33] * 4


def test_a_penalty_stops_a_greedy_repetition_and_touches_its_own_row_only() -> None:
    logits = torch.tensor([[3.0, 2.5, 0.0]] * 2)
    penalized = SamplerState(params_of(temperature=0, repeat_penalty=1.5), [0])
    rows = [SamplerRow(penalized, 1), SamplerRow(SamplerState(params_of(temperature=0)), 1)]
    assert [one.token for one in SAMPLER.sample(logits, rows)] == [1, 0]
    penalized.accept(1)
    assert SAMPLER.sample(logits, rows)[0].token == 0  # 2.0 against 1.67


def test_chances_are_the_model_s_own_whatever_was_done_to_the_row() -> None:
    logits = torch.randn(3, 100, generator=torch.Generator().manual_seed(2))
    expected = torch.log_softmax(logits.double(), -1)
    params = [params_of(logprobs=2, repeat_penalty=2.0, top_k=1), params_of(), params_of(logprobs=0, temperature=3.0)]
    rows = [SamplerRow(SamplerState(one, list(range(50))), 4) for one in params]
    found = SAMPLER.sample(logits, rows)
    assert found[1].chances is None
    for row, count in ((0, 2), (2, 0)):
        chances = found[row].chances
        assert chances is not None
        assert chances.chosen.token_id == found[row].token
        assert chances.chosen.logprob == pytest.approx(expected[row, found[row].token].item(), abs=1e-5)
        assert len(chances.top) == count


def test_the_token_is_the_one_that_the_uniform_number_points_at() -> None:
    """The plain twin of the draw: walk down the ordered candidates until the number is used up."""
    logits = torch.randn(30, generator=torch.Generator().manual_seed(4))
    state = SamplerState(params_of(top_k=10, seed=6))
    chances = probabilities(logits, state)
    for position in range(200):
        left = uniform(6, position)
        for token in torch.argsort(logits, descending=True).tolist():
            if left < chances[token]:
                break
            left -= float(chances[token])
        assert SAMPLER.sample(logits[None], [SamplerRow(state, position)])[0].token == token


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_a_gpu_s_logits_give_the_tokens_of_the_same_numbers_on_the_host() -> None:
    rng = random.Random(1)
    logits = torch.randn(16, 49152, generator=torch.Generator().manual_seed(1)) * 3
    rows = [SamplerRow(SamplerState(random_params(rng), list(range(40))), at) for at in range(16)]
    on_host = [one.token for one in SAMPLER.sample(logits, rows)]
    assert [one.token for one in SAMPLER.sample(logits.cuda(), rows)] == on_host
