from types import SimpleNamespace

import pytest
import torch

from backends.torch_engine import attention, attention_hook, guard
from tests.helpers.block_runner import BlockRunner
from tests.helpers.tiny_models import PAGED, PLAIN, tiny_model

TOKENS = torch.tensor([[5, 6, 7]])


@pytest.fixture(autouse=True)
def registered():
    attention.register()


def loaded(architecture, dtype=torch.float32, **changes):
    model = tiny_model(architecture, **changes).to(dtype)
    return SimpleNamespace(module=model, config=model.config, dtype=dtype, device=torch.device("cpu"))


def checked(model, runner=BlockRunner):
    return guard.check_paged(model, lambda cache: runner(model.module, cache))


@pytest.mark.parametrize("architecture", PAGED)
def test_architectures_whose_attention_is_ours_are_paged(architecture):
    report = checked(loaded(architecture))
    assert (report.path, report.note) == ("paged", "")
    assert report.hook_calls == report.layers == len(report.plans)
    assert 0 < report.rms_difference < 2e-5


@pytest.mark.parametrize("architecture", PLAIN)
def test_architectures_with_ways_of_their_own_are_plain_and_still_run(architecture):
    model = loaded(architecture)
    report = checked(model)
    assert report.path == "plain"
    assert report.note
    assert report.plans == ()
    assert model.module(input_ids=TOKENS).logits.isfinite().all()


# What the model says of itself is a help only: without it the calls and the parity must tell.
@pytest.mark.parametrize("architecture", PLAIN)
def test_a_model_that_says_nothing_of_its_ways_is_caught_too(architecture, monkeypatch):
    monkeypatch.setattr(guard, "_known_obstacle", lambda _: "")
    report = checked(loaded(architecture))
    assert report.path == "plain"


@pytest.mark.parametrize("architecture", ["bloom", "mpt", "falcon", "jamba"])
def test_a_model_loaded_under_our_name_masks_later_tokens_once_it_has_its_own_attention(architecture):
    """Some know no names: bloom saw later tokens, and mpt failed, because under ours no mask is made."""
    model = loaded(architecture)
    tokens = torch.arange(5, 29)[None]
    with torch.inference_mode():
        right = model.module(input_ids=tokens, use_cache=False).logits
        model.config._attn_implementation = attention_hook.NAME
        guard.use_own_attention(model.module)
        got = model.module(input_ids=tokens, use_cache=False).logits
    torch.testing.assert_close(got, right, rtol=1e-4, atol=1e-5)


def test_half_precision_is_held_to_its_own_tolerance():
    for dtype in (torch.bfloat16, torch.float16):
        report = checked(loaded("llama", dtype))
        assert report.path == "paged"
        assert 1e-5 < report.rms_difference < 0.1


def test_a_wrong_result_is_plain():
    class Wrong(BlockRunner):
        def run(self, rows):
            return super().run(rows) + 0.01

    report = checked(loaded("llama"), Wrong)
    assert report.path == "plain"
    assert "otherwise" in report.note
    assert report.max_difference > 1e-3


def test_nan_is_plain():
    class Nan(BlockRunner):
        def run(self, rows):
            return super().run(rows) * float("nan")

    assert checked(loaded("llama"), Nan).path == "plain"


def test_a_runner_that_fails_is_plain_and_nothing_is_raised(allow_log):
    class Broken(BlockRunner):
        def run(self, rows):
            raise RuntimeError("no such kernel")

    model = loaded("llama")
    report = checked(model, Broken)
    assert report.path == "plain"
    assert "RuntimeError" in report.note
    assert model.module(input_ids=TOKENS).logits.isfinite().all()


def test_a_layer_that_asks_twice_is_plain():
    class Twice(BlockRunner):
        def run(self, rows):
            logits = super().run(rows)
            self.hook_calls += 1
            return logits

    report = checked(loaded("llama"), Twice)
    assert report.path == "plain"
    assert "4 times in 3 layers" in report.note


def test_a_reference_may_be_taken_before_layers_are_replaced():
    model = loaded("llama")
    reference = guard.take_reference(model)
    assert model.config._attn_implementation == "eager"
    assert [len(ids) for ids in reference.token_ids] == [len(logits) for logits in reference.logits]
    model.module.lm_head.weight.mul_(1.01)
    assert guard.check_paged(model, lambda cache: BlockRunner(model.module, cache), reference).path == "plain"


def test_nobody_answers_a_model_after_its_check():
    model = loaded("llama")
    checked(model)
    assert model.config._attn_implementation == attention_hook.NAME
    with pytest.raises(RuntimeError, match="nobody answers"):
        model.module(input_ids=TOKENS)
