from types import SimpleNamespace

import pytest
import torch

from backends.torch_engine import attention
from backends.torch_engine.model_runner import Interrupted
from backends.torch_engine.plain_path import PlainRunner
from backends.torch_engine.step_layout import RowInput
from tests.helpers.tiny_models import PLAIN, VOCABULARY, tiny_model

LENGTH = 24
STEPS = ((10, 0), (5, 9), (1, 4), (1, 1), (3, 1))


@pytest.fixture(autouse=True)
def registered():
    attention.register()


def made(architecture):
    model = tiny_model(architecture)
    ids = torch.randint(3, VOCABULARY, (2, LENGTH), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        right = [model(input_ids=row[None], use_cache=False).logits[0] for row in ids]
    runner = PlainRunner(
        SimpleNamespace(module=model, config=model.config, dtype=torch.float32, device=torch.device("cpu"))
    )
    return runner, ids.tolist(), right


@pytest.mark.parametrize("architecture", [*PLAIN, "llama", "gemma3_text"])
def test_two_sequences_in_turns_are_as_in_one_forward(architecture):
    runner, ids, right = made(architecture)
    past = [0, 0]
    for counts in STEPS:
        rows, wanted = [], []
        for number, count in enumerate(counts):
            if count:
                rows.append(RowInput(ids[number][past[number] : past[number] + count], past[number], [number * 7]))
                past[number] += count
                wanted.append(right[number][past[number] - 1])
        assert torch.allclose(runner.run(rows), torch.stack(wanted), atol=1e-5)
    assert runner.hook_calls == 0


@pytest.mark.parametrize("architecture", ["falcon", "mamba", "jamba"])
def test_a_sequence_whose_end_was_cut_off_is_computed_again(architecture):
    runner, ids, right = made(architecture)
    runner.run([RowInput(ids[1][:12], 0, [3])])
    runner.run([RowInput(ids[0][:8], 0, [3])])  # another one in the same block: it begins anew
    runner.run([RowInput([9, 9, 9], 8, [3])])
    got = runner.run([RowInput(ids[0][8:11], 8, [3])])
    assert torch.allclose(got[0], right[0][10], atol=1e-5)


def test_logits_are_of_the_rows_that_want_them():
    runner, ids, right = made("bloom")
    rows = [RowInput(ids[0][:6], 0, [0], wants_logits=False), RowInput(ids[1][:5], 0, [1])]
    assert torch.allclose(runner.run(rows), right[1][4:5], atol=1e-5)
    assert runner.run([RowInput(ids[0][6:8], 6, [0], wants_logits=False)]).shape[0] == 0


@pytest.mark.parametrize("architecture", PLAIN)
def test_logits_of_several_last_tokens_are_those_of_one_forward(architecture):
    """In one piece, in two, and one by one where the model takes nothing else."""
    runner, ids, right = made(architecture)
    whole = runner.run([RowInput(ids[0], 0, [0], last_logits=9)])
    assert torch.allclose(whole, right[0][-9:], atol=1e-5)
    runner.run([RowInput(ids[0][:11], 0, [0], wants_logits=False)])
    assert torch.allclose(runner.run([RowInput(ids[0][11:], 11, [0], last_logits=6)]), right[0][-6:], atol=1e-5)


def test_a_sequence_that_ended_leaves_nothing():
    runner, ids, _ = made("falcon")
    runner.run([RowInput(ids[0][:6], 0, [0]), RowInput(ids[1][:6], 0, [5])])
    assert runner.kept_sequences == 2
    runner.forget(0)
    runner.forget(99)
    assert runner.kept_sequences == 1
    with pytest.raises(ValueError, match="never computed"):
        runner.run([RowInput([4], 6, [0])])
    with pytest.raises(ValueError, match="are said to be computed"):
        runner.run([RowInput([4], 9, [5])])


@pytest.mark.parametrize("architecture", ["falcon", "jamba"])
def test_a_step_that_was_interrupted_leaves_what_was_before(architecture):
    runner, ids, right = made(architecture)
    runner.run([RowInput(ids[0][:6], 0, [0])])
    runner.interrupt()
    with pytest.raises(Interrupted):
        runner.run([RowInput(ids[0][6:9], 6, [0])])
    runner.resume()
    got = runner.run([RowInput(ids[0][6:10], 6, [0])])
    assert torch.allclose(got[0], right[0][9], atol=1e-5)


def test_blocks_are_not_copied_here():
    runner, _, _ = made("bloom")
    runner.copy_blocks([])
    with pytest.raises(ValueError, match="cannot be forked"):
        runner.copy_blocks([(0, 1)])
