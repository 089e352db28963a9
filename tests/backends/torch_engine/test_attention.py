"""Models of all architectures over blocks: pieces of prompts and single tokens mixed, against one full forward."""

import math

import pytest
import torch

from backends.torch_engine import attention
from backends.torch_engine.attention import AttentionContext
from backends.torch_engine.kv_cache import KvCache
from backends.torch_engine.step_layout import RowInput
from tests.helpers.attention_cases import PLAN, TABLES, Case
from tests.helpers.block_runner import BlockRunner, plans_of
from tests.helpers.tiny_models import PAGED, VOCABULARY, tiny_model

LENGTH = 33
BLOCK = 4
SCATTERED = ((3, 7, 1, 9, 11, 13, 15, 17, 19), (2, 4, 6, 8, 10, 12, 14, 16, 18))
NEIGHBOURS = (tuple(range(0, 9)), tuple(range(10, 19)))
STEPS = ((10, 0), (9, 5), (1, 11), (1, 12))


def largest_difference(model, tables, length=LENGTH, filled=0.0):
    """Return the largest difference of two logits between full forwards and steps over blocks, and the calls of one."""
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(3, VOCABULARY, (2, length), generator=generator)
    with torch.inference_mode():
        right = [model(input_ids=row[None], use_cache=False).logits[0] for row in ids]
    cache = KvCache(plans_of(model), max(map(max, tables)) + 1, BLOCK, torch.float32)
    for pool in (*cache.keys, *cache.values):
        pool.fill_(filled)
    runner = BlockRunner(model, cache)
    past, worst = [0, 0], 0.0
    singles = (1, 1)
    steps = iter(STEPS)
    while min(past) < length:
        counts = [min(count, length - done) for count, done in zip(next(steps, singles), past, strict=True)]
        rows = [
            RowInput(ids[number, done : done + count].tolist(), done, tables[number])
            for number, (count, done) in enumerate(zip(counts, past, strict=True))
            if count
        ]
        got = runner.logits(rows)
        at = 0
        for number, count in enumerate(counts):
            wanted = right[number][past[number] : past[number] + count]
            worst = max(worst, float((got[at : at + count] - wanted).abs().max())) if count else worst
            at += count
            past[number] += count
    return worst, runner.hook_calls


@pytest.mark.parametrize("architecture", PAGED)
def test_over_scattered_blocks_every_architecture_is_as_in_one_forward(architecture):
    model = tiny_model(architecture)
    worst, calls = largest_difference(model, SCATTERED, filled=math.nan)
    assert worst < 2e-5
    assert calls == model.config.num_hidden_layers


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("tables", [SCATTERED, NEIGHBOURS])
@pytest.mark.parametrize("architecture", PAGED)
def test_over_any_blocks_every_architecture_is_as_in_one_forward(architecture, tables, seed):
    assert largest_difference(tiny_model(architecture, seed + 1), tables)[0] < 2e-5


@pytest.mark.parametrize("architecture", ["llama", "gemma2", "gpt_oss", "gemma4_text", "llama4_text", "deepseek_v3"])
def test_in_neighbouring_blocks_too(architecture):
    assert largest_difference(tiny_model(architecture), NEIGHBOURS)[0] < 2e-5


def test_attention_outside_of_a_step_is_an_error():
    case = Case(PLAN, TABLES["neighbours"])
    case.step((1, 0, 0))
    case.context.step = None
    with pytest.raises(RuntimeError, match="outside of a step"):
        case.context.attend(0, torch.zeros(1, 6, 1, 8), torch.zeros(1, 2, 1, 8), torch.zeros(1, 2, 1, 8))


def test_a_layer_that_reads_another_writes_nothing():
    model = tiny_model("gemma4_text")
    cache = KvCache(plans_of(model), 4, BLOCK, torch.float32)
    runner = BlockRunner(model, cache)
    before = cache.keys[5].data_ptr()
    runner.run([RowInput([5, 6, 7], 0, [2])])
    assert cache.keys[5].data_ptr() == before == cache.keys[3].data_ptr()
    assert cache.keys[5][:, 8:11].any()


def test_only_the_cpu_reads_in_place():
    assert AttentionContext(KvCache([PLAN], 1, 4, torch.float32)).reads_in_place
    assert not AttentionContext(KvCache([PLAN], 1, 4, torch.float32, "meta")).reads_in_place
    assert attention.NAME
