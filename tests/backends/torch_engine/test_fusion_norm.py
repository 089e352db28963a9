from __future__ import annotations

import pytest
import torch
from torch import nn
from transformers.models.gemma3.modeling_gemma3 import Gemma3RMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from backends.torch_engine.fusion_norm import FusedNorm, FusedNormModule, fused_norm, joined_norm


def filled(norm, dtype):
    torch.manual_seed(3)
    with torch.no_grad():
        norm.weight.copy_(torch.randn_like(norm.weight))
    return norm.to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    "make", [lambda: LlamaRMSNorm(48, 1e-5), lambda: Gemma3RMSNorm(48, 1e-6), lambda: nn.RMSNorm(48, eps=1e-5)]
)
@torch.inference_mode()
def test_both_forms_are_recognized_by_their_values(make, dtype):
    module = filled(make(), dtype)
    norm = fused_norm(module)
    assert norm is not None
    x = 7 * torch.randn(2, 5, 48).to(dtype)
    kept = x.clone()
    assert norm(x).dtype is dtype
    torch.testing.assert_close(norm(x), module(x), rtol=2.5 * max(torch.finfo(dtype).eps, 4e-7), atol=1e-6)
    assert torch.equal(x, kept)
    assert FusedNormModule(norm, module.weight).weight is module.weight


def test_other_norms_are_left_alone():
    class Doubled(LlamaRMSNorm):
        def forward(self, hidden_states):
            return 2 * super().forward(hidden_states)

    for module in (
        nn.LayerNorm(48),
        filled(Doubled(48), torch.float32),
        nn.Linear(4, 4),
        nn.Identity(),
        nn.GroupNorm(2, 48),
    ):
        assert fused_norm(module) is None


@torch.inference_mode()
def test_norms_of_queries_and_keys_become_one():
    queries, keys = FusedNorm(torch.randn(8), 1e-6), FusedNorm(torch.randn(8), 1e-6)
    joined = joined_norm([(queries, 4), (keys, 2)])
    assert joined is not None
    x = torch.randn(1, 5, 6, 8)
    torch.testing.assert_close(joined(x), torch.cat([queries(x[:, :, :4]), keys(x[:, :, 4:])], 2))
    assert joined_norm([(queries, 4), (FusedNorm(torch.randn(8), 1e-5), 2)]) is None
    assert joined_norm([(queries, 4), (FusedNorm(torch.randn(16), 1e-6), 2)]) is None
