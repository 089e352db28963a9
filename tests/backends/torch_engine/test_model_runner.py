from __future__ import annotations

import threading

import pytest
import torch

from backends.torch_engine import attention_hook
from backends.torch_engine.fusion import fuse
from backends.torch_engine.kv_cache import KvCache
from backends.torch_engine.layer_plan import layer_plans
from backends.torch_engine.model_runner import Interrupted, ModelRunner
from backends.torch_engine.step_layout import RowInput
from tests.helpers.tiny_models import VOCABULARY, tiny_model

BLOCK = 4
TABLES = ((5, 2, 7, 0), (1, 6, 3, 4))


def runner(architecture="llama", *, is_fused=True):
    """Return a runner of a tiny model and the same model as it was."""
    attention_hook.register()
    made, plain = tiny_model(architecture), tiny_model(architecture)
    made.set_attn_implementation(attention_hook.NAME)
    plans = layer_plans(made, made.config)
    if is_fused:
        fuse(made)
    return ModelRunner(made, KvCache(plans, 8, BLOCK, torch.float32)), plain


def expected(plain, ids):
    with torch.inference_mode():
        return plain(input_ids=torch.tensor([ids]), use_cache=False).logits[0]


@pytest.mark.parametrize("architecture", ["llama", "gemma3_text", "olmo2"])
def test_pieces_of_two_sequences_in_one_row_give_what_one_forward_gives(architecture):
    step, plain = runner(architecture)
    torch.manual_seed(4)
    ids = torch.randint(3, VOCABULARY, (2, 14)).tolist()
    whole = [expected(plain, one) for one in ids]
    done = [0, 0]
    for first, second in ((9, 0), (3, 11), (1, 2), (1, 1)):
        rows, ends = [], []
        for number, count in ((0, first), (1, second)):
            if count:
                tokens = ids[number][done[number] : done[number] + count]
                rows.append(RowInput(tokens, done[number], TABLES[number]))
                done[number] += count
                ends.append(whole[number][done[number] - 1])
        logits = step.run(rows)
        assert logits.dtype is torch.float32
        torch.testing.assert_close(logits, torch.stack(ends), rtol=1e-4, atol=1e-5)
        assert step.hook_calls == len(step.cache.plans)
    assert done == [14, 14]


def test_logits_come_only_where_they_are_wanted():
    step, plain = runner()
    rows = [RowInput([5, 6, 7], 0, TABLES[0], wants_logits=False), RowInput([8, 9], 0, TABLES[1])]
    logits = step.run(rows)
    torch.testing.assert_close(logits, expected(plain, [8, 9])[-1:], rtol=1e-4, atol=1e-5)
    assert step.run([RowInput([8], 3, TABLES[0], wants_logits=False)]).shape == (0, VOCABULARY)


def test_logits_of_several_last_tokens_come_with_those_of_others():
    step, plain = runner()
    rows = [RowInput([5, 6, 7], 0, TABLES[0], last_logits=2), RowInput([8, 9], 0, TABLES[1])]
    right = torch.cat([expected(plain, [5, 6, 7])[-2:], expected(plain, [8, 9])[-1:]])
    torch.testing.assert_close(step.run(rows), right, rtol=1e-4, atol=1e-5)


def test_a_copied_block_continues_like_its_source():
    step, plain = runner()
    step.run([RowInput([5, 6, 7], 0, (2,))])
    step.copy_blocks([(2, 6)])
    logits = step.run([RowInput([9], 3, (6,))])
    torch.testing.assert_close(logits, expected(plain, [5, 6, 7, 9])[-1:], rtol=1e-4, atol=1e-5)


def test_an_interrupt_ends_the_step_between_layers_and_leaves_the_past_alone():
    step, plain = runner()
    step.run([RowInput([5, 6, 7], 0, TABLES[0])])
    answer = step.answer
    calls = []

    def answer_and_stop(module, call):
        calls.append(module.layer_idx)
        if len(calls) == 2:
            stopper = threading.Thread(target=step.interrupt)
            stopper.start()
            stopper.join()
        return answer(module, call)

    step.answer = answer_and_stop
    with pytest.raises(Interrupted):
        step.run([RowInput([8, 9], 3, TABLES[0])])
    assert calls == [0, 1]
    assert step.hook_calls == 1
    with pytest.raises(Interrupted):
        step.run([RowInput([8], 3, TABLES[0])])
    step.resume()
    step.answer = answer
    logits = step.run([RowInput([8, 9], 3, TABLES[0])])
    torch.testing.assert_close(logits, expected(plain, [5, 6, 7, 8, 9])[-1:], rtol=1e-4, atol=1e-5)


def test_a_detached_runner_answers_nobody():
    step, _plain = runner(is_fused=False)
    step.detach()
    with pytest.raises(RuntimeError, match="nobody answers"):
        step.run([RowInput([8], 0, TABLES[0])])
