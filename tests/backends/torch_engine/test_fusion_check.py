from __future__ import annotations

import pytest
import torch
from torch import nn

from backends.torch_engine import attention_hook
from backends.torch_engine.fusion import decoder_layers
from backends.torch_engine.fusion_check import Recorder, is_close, record, run
from tests.helpers.tiny_models import VOCABULARY, tiny_model


def model(architecture="llama"):
    attention_hook.register()
    made = tiny_model(architecture)
    made.set_attn_implementation(attention_hook.NAME)
    return made


@torch.inference_mode()
def test_every_layers_input_output_and_attention_are_noted():
    made = model("gemma2")
    records, logits = record(made, decoder_layers(made))
    assert logits.shape == (1, 5, VOCABULARY)
    assert len(records) == 3
    assert all(len(noted.calls) == 1 and noted.output is not None for noted in records)
    assert torch.equal(records[1].arguments[0], records[0].output)
    assert set(records[0].attention_options()) == {"scaling", "softcap", "sliding_window"}
    assert not any(layer._forward_hooks or layer._forward_pre_hooks for layer in decoder_layers(made))


@torch.inference_mode()
def test_an_untouched_layer_has_no_fault_and_a_changed_one_has():
    made = model()
    layers = decoder_layers(made)
    records, _logits = record(made, layers)
    recorder = Recorder()
    attention_hook.attach(made, recorder)
    assert records[1].fault(layers[1], recorder) == ""
    assert records[1].fault(layers[2], recorder) == "other queries, keys or values"
    assert records[1].fault(nn.Identity(), recorder) != ""
    layers[1].mlp.down_proj.weight.mul_(1.1)
    assert records[1].fault(layers[1], recorder) == "another output"
    layers[1].self_attn.scaling *= 2
    assert records[1].fault(layers[1], recorder) == "asks for attention of another kind"


@torch.inference_mode()
def test_nobody_answers_attention_afterwards():
    made = model()
    run(made, Recorder())
    with pytest.raises(RuntimeError, match="nobody answers"):
        made(input_ids=torch.zeros(1, 1, dtype=torch.int64), use_cache=False)


def test_rounding_is_close_and_a_large_base_hides_nothing():
    torch.manual_seed(0)
    base, added = torch.randn(3, 64) * 100, torch.randn(3, 64)
    assert is_close(base + added, base + added * (1 + 1e-6), base)
    assert not is_close(base + added * 1.01, base + added, base)
    assert is_close((base + added).bfloat16(), (base + added * 1.001).bfloat16(), base.bfloat16())
    assert not is_close(added.bfloat16(), added * 1.0)
    assert not is_close(added[:2], added)
    assert not is_close(None, added)
    assert not is_close(torch.full_like(added, float("nan")), added)
