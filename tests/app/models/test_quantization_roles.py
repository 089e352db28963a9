"""What tensors do and which ones no quantization touches; the mixes' tests hold them against llama.cpp."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from app.models.quantization_roles import Role, is_quantized, layer_of, role_of


@dataclass(frozen=True)
class PlainTensor:
    """A tensor as roles see it."""

    name: str
    dims: tuple[int, ...] = (512, 512)


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("output.weight", "output"),
        ("token_embd.weight", "embedding"),
        ("per_layer_token_embd.weight", "embedding"),
        ("blk.3.attn_q.weight", "attn_q"),
        ("blk.3.attn_k.weight", "attn_k"),
        ("blk.3.attn_v.weight", "attn_v"),
        ("blk.3.attn_qkv.weight", "attn_v"),
        ("blk.3.attn_kv_b.weight", "attn_v"),
        ("blk.3.attn_output.weight", "attn_output"),
        ("blk.3.ffn_down_exps.weight", "ffn_down"),
        ("blk.3.ffn_gate_up_exps.weight", "ffn_gate"),
        ("blk.3.ffn_up_shexp.weight", "ffn_up"),
        ("blk.3.attn_q_a.weight", "other"),
        ("blk.3.ssm_in.weight", "other"),
    ],
)
def test_a_name_tells_the_role(name: str, role: Role) -> None:
    assert role_of(name) == role


@pytest.mark.parametrize(
    "name",
    [
        "blk.0.attn_q.bias",
        "blk.0.attn_q_norm.weight",
        "blk.0.ffn_gate_inp.weight",
        "blk.0.ssm_conv1d.weight",
        "blk.0.shortconv.conv.weight",
        "blk.0.time_mix_w1.weight",
        "blk.0.altup_proj.weight",
        "per_layer_model_proj.weight",
        "position_embd.weight",
        "token_types.weight",
        "v.patch_embd.weight",
    ],
)
def test_small_and_delicate_tensors_are_left_alone(name: str) -> None:
    assert not is_quantized(PlainTensor(name), "llama")


def test_only_matrices_are_quantized() -> None:
    assert is_quantized(PlainTensor("blk.0.attn_q.weight"), "llama")
    assert is_quantized(PlainTensor("blk.0.ffn_down_exps.weight", (64, 64, 8)), "llama")
    assert not is_quantized(PlainTensor("blk.0.attn_q.weight", (512,)), "llama")
    assert not is_quantized(PlainTensor("blk.0.attn_q.weight", (512, 1, 1)), "llama")


def test_one_architecture_leaves_more_alone() -> None:
    assert not is_quantized(PlainTensor("blk.0.attn_k_b.weight"), "glm5-next")
    assert is_quantized(PlainTensor("blk.0.attn_k_b.weight"), "deepseek2")


def test_the_layer_stands_in_the_name() -> None:
    assert (layer_of("blk.17.attn_q.weight"), layer_of("output.weight"), layer_of("v.blk.3.x")) == (17, -1, -1)
