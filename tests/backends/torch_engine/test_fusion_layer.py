from __future__ import annotations

import pytest
import torch
from torch import nn

from backends.torch_engine.fusion_layer import LayerForward, Rotation, fuse_layer
from tests.helpers.tiny_models import tiny_model

OPTIONS = {"scaling": 8**-0.5}


@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3", "gemma", "phi3", "smollm3"])
@torch.inference_mode()
def test_fused_layers_compute_what_the_layers_computed(architecture):
    """The attention is the model's own, with its mask."""
    model = tiny_model(architecture)
    ids = torch.arange(9)[None]
    before = model(input_ids=ids, use_cache=False).logits
    rotation = Rotation()
    undo = [fuse_layer(layer, OPTIONS, rotation) for layer in model.model.layers]
    assert all(isinstance(layer.__dict__["forward"], LayerForward) for layer in model.model.layers)
    assert not any(hasattr(layer.self_attn, "q_proj") for layer in model.model.layers)
    torch.testing.assert_close(model(input_ids=ids, use_cache=False).logits, before, rtol=1e-5, atol=1e-6)
    for put_back in undo:
        put_back()
    assert torch.equal(model(input_ids=ids, use_cache=False).logits, before)


@pytest.mark.parametrize("architecture", ["olmo2", "mixtral", "cohere", "gpt2", "deepseek_v2", "starcoder2", "opt"])
def test_layers_of_another_kind_are_not_touched(architecture):
    model = tiny_model(architecture)
    modules = list(model.named_modules())
    for part in list(model.modules()):
        assert fuse_layer(part, OPTIONS, Rotation()) is None
    assert list(model.named_modules()) == modules


def test_a_layer_with_an_adapter_or_a_hook_on_a_matrix_is_not_touched():
    class Adapted(nn.Linear):
        pass

    layer = tiny_model("llama").model.layers[0]
    layer.self_attn.q_proj = Adapted(32, 32, bias=False)
    assert fuse_layer(layer, OPTIONS, Rotation()) is None
    layer = tiny_model("llama").model.layers[0]
    layer.mlp.down_proj.register_forward_hook(lambda *_arguments: None)
    assert fuse_layer(layer, OPTIONS, Rotation()) is None


@torch.inference_mode()
def test_the_angles_of_a_step_are_prepared_once():
    rotation = Rotation()
    cos, sin = torch.randn(2, 1, 5, 8)
    rotation.prepare(cos, sin)
    first = rotation.sin
    rotation.prepare(cos, sin)
    assert rotation.sin is first
    assert torch.equal(first[0, :, 0], torch.cat((-sin[0, :, :4], sin[0, :, 4:]), -1))
    rotation.prepare(cos, sin.clone())
    assert rotation.sin is not first
    rotation.forget()
    assert rotation.sin.numel() == 0
