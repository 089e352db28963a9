from __future__ import annotations

import pytest
import torch
from torch import nn

from backends.torch_engine import fusion_linear
from backends.torch_engine.fusion_linear import MergedFirst, MergedLinear, MergedPart, PackedLinear

CPU = torch.device("cpu")
needs_packing = pytest.mark.skipif(
    not fusion_linear.can_pack(torch.bfloat16, CPU), reason="this processor does not compute in bfloat16"
)


def linears(*sizes, bias=True, dtype=torch.float32):
    torch.manual_seed(1)
    return [nn.Linear(24, size, bias=bias).to(dtype) for size in sizes]


def test_only_bfloat16_on_a_cpu_gains_by_packing():
    assert not fusion_linear.can_pack(torch.float32, CPU)
    assert not fusion_linear.can_pack(torch.bfloat16, torch.device("cuda"))


@torch.inference_mode()
def test_merged_layers_give_what_they_gave_one_by_one():
    parts = linears(16, 8, 8)
    x = torch.randn(1, 5, 24)
    merged = fusion_linear.merge(parts)
    assert isinstance(merged, MergedLinear)
    assert merged.weight_bytes == 32 * 24 * 4
    torch.testing.assert_close(merged(x), torch.cat([part(x) for part in parts], -1))


@needs_packing
@pytest.mark.parametrize("rows", [1, 2, 7, 33])
@pytest.mark.parametrize("bias", [True, False])
@torch.inference_mode()
def test_a_packed_matrix_gives_what_the_plain_one_gives(rows, bias):
    (plain,) = linears(40, bias=bias, dtype=torch.bfloat16)
    packed = fusion_linear.merge([plain])
    assert isinstance(packed, PackedLinear)
    assert packed.weight_bytes >= 40 * 24 * 2
    x = torch.randn(1, rows, 24).bfloat16()
    torch.testing.assert_close(packed(x), plain(x), rtol=0.01, atol=0.01)


@needs_packing
@torch.inference_mode()
def test_a_packed_matrix_takes_rows_that_are_not_neighbours():
    (plain,) = linears(40, dtype=torch.bfloat16)
    x = torch.randn(1, 7, 48).bfloat16()[..., 24:]
    torch.testing.assert_close(fusion_linear.merge([plain])(x), plain(x), rtol=0.01, atol=0.01)


def test_what_is_not_torchs_own_linear_layer_is_not_merged():
    class Adapted(nn.Linear):
        pass

    first, second = linears(8, 8)
    (other_input,) = [nn.Linear(12, 8)]
    hooked = nn.Linear(24, 8)
    hooked.register_forward_hook(lambda *_arguments: None)
    assert fusion_linear.can_merge([first, second])
    for odd in (Adapted(24, 8), other_input, nn.Linear(24, 8, bias=False), hooked, nn.Identity(), None):
        assert not fusion_linear.can_merge([first, odd])
    assert not fusion_linear.can_merge([first, nn.Linear(24, 8).double()])


@torch.inference_mode()
def test_parts_are_computed_once_and_forgotten_once_they_are_taken():
    parts = linears(16, 8, 8)
    first = MergedFirst(parts)
    others = [MergedPart(first, 1), MergedPart(first, 2)]
    calls = []
    first.merged.register_forward_hook(lambda *_arguments: calls.append(1))
    x = torch.randn(1, 3, 24)
    for module, part in zip([first, *others], parts, strict=True):
        torch.testing.assert_close(module(x), part(x))
    assert len(calls) == 1
    assert first._seen is None


@torch.inference_mode()
def test_a_part_that_is_asked_with_another_input_is_right_all_the_same():
    parts = linears(16, 8)
    first = MergedFirst(parts)
    second = MergedPart(first, 1)
    x, y = torch.randn(2, 1, 3, 24)
    torch.testing.assert_close(first(x), parts[0](x))
    torch.testing.assert_close(second(y), parts[1](y))
    torch.testing.assert_close(second(x), parts[1](x))
