from __future__ import annotations

import pytest
import torch
from torch import nn

from backends.torch_engine import fusion_embedding, fusion_linear
from backends.torch_engine.fusion_linear import PackedLinear

pytestmark = pytest.mark.skipif(
    not fusion_linear.can_pack(torch.bfloat16, torch.device("cpu")),
    reason="this processor does not compute in bfloat16",
)


def embedding(vocabulary, size):
    torch.manual_seed(2)
    return nn.Embedding(vocabulary, size).bfloat16().requires_grad_(False)


@pytest.mark.parametrize(("vocabulary", "size"), [(300, 32), (1000, 576), (50_257, 48), (70, 100), (64, 16)])
@torch.inference_mode()
def test_every_row_is_found_in_the_rearranged_memory(vocabulary, size):
    original = embedding(vocabulary, size)
    packed = fusion_embedding.packed_embedding(PackedLinear(original.weight, None), original)
    assert packed is not None, "oneDNN has an order that we do not know: the output matrix of tied models stays plain"
    ids = torch.arange(vocabulary).reshape(1, -1)
    assert torch.equal(packed(ids), original(ids))
    assert packed(ids[:, :1]).shape == (1, 1, size)
    assert (packed.num_embeddings, packed.embedding_dim) == (vocabulary, size)


@torch.inference_mode()
def test_a_factor_of_the_embedding_is_kept():
    class Scaled(nn.Embedding):
        embed_scale = torch.tensor(5.657)

        def forward(self, input):
            return super().forward(input) * self.embed_scale.to(self.weight.dtype)

    original = Scaled(300, 32).bfloat16().requires_grad_(False)
    packed = fusion_embedding.packed_embedding(PackedLinear(original.weight, None), original)
    assert packed is not None
    ids = torch.tensor([[0, 7, 299]])
    assert torch.equal(packed(ids), original(ids))


@torch.inference_mode()
def test_an_embedding_that_does_more_is_not_replaced():
    class Odd(nn.Embedding):
        def forward(self, input):
            return super().forward(input) + 1

    original = Odd(300, 32).bfloat16().requires_grad_(False)
    assert fusion_embedding.packed_embedding(PackedLinear(original.weight, None), original) is None


@torch.inference_mode()
def test_an_unknown_order_is_not_guessed(monkeypatch):
    original = embedding(300, 32)
    monkeypatch.setattr(fusion_embedding, "_INNER", (8,))
    assert fusion_embedding.packed_rows(PackedLinear(original.weight, None), original.weight) is None
