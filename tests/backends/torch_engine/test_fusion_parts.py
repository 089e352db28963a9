from __future__ import annotations

import pytest
import torch

from backends.torch_engine.fusion_linear import MergedFirst, MergedPart
from backends.torch_engine.fusion_norm import FusedNormModule
from backends.torch_engine.fusion_parts import fuse_parts
from tests.helpers.tiny_models import tiny_model


@pytest.mark.parametrize("architecture", ["olmo2", "stablelm", "phi"])
@torch.inference_mode()
def test_a_layer_computes_the_same_with_other_parts_and_can_be_put_back(architecture):
    model = tiny_model(architecture)
    ids = torch.arange(9)[None]
    before = model(input_ids=ids, use_cache=False).logits
    modules = list(model.named_modules())
    undo = [fuse_parts(layer) for layer in model.model.layers]
    torch.testing.assert_close(model(input_ids=ids, use_cache=False).logits, before, rtol=1e-5, atol=1e-6)
    assert list(model.named_modules()) != modules or architecture == "phi"
    for put_back in undo:
        put_back()
    assert list(model.named_modules()) == modules
    assert torch.equal(model(input_ids=ids, use_cache=False).logits, before)


def test_queries_keys_and_values_are_merged_and_norms_exchanged():
    layer = tiny_model("olmo2").model.layers[0]
    fuse_parts(layer)
    attention, mlp = layer.self_attn, layer.mlp
    assert isinstance(attention.q_proj, MergedFirst)
    assert isinstance(attention.k_proj, MergedPart)
    assert isinstance(attention.v_proj, MergedPart)
    assert isinstance(mlp.gate_proj, MergedFirst)
    assert isinstance(layer.post_attention_layernorm, FusedNormModule)
    assert isinstance(attention.q_norm, FusedNormModule)
