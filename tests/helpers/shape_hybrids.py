"""Well-known models with latent attention, with states instead of K and V, or with heads that differ by layer.

See shape_catalogue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.helpers import shape_blocks as blocks
from tests.helpers.shape_parts import Draft, Vocabulary


def _deepseek_v2_lite() -> Draft:
    """Latent attention: 576 numbers a token and layer, whatever the heads."""
    width, query, latent = 2_048, 16, 512
    draft = Draft("deepseek2", "DeepSeek V2 Lite Chat", 27, Vocabulary("gpt2", "deepseek-llm", 102_400, 99_757))
    draft.experts = 64
    draft.values = blocks.values(width, 163_840, 10_944, expert_count=64, expert_used_count=6, expert_shared_count=2)
    draft.values |= blocks.heads(query, 1) | {"attention.key_length": 576, "attention.value_length": latent}
    draft.values |= {"attention.key_length_mla": 192, "attention.value_length_mla": 128}
    draft.values |= {"attention.kv_lora_rank": latent, "rope.dimension_count": 64, "rope.scaling.type": "yarn"}
    draft.values |= {"rope.scaling.factor": 40.0, "rope.scaling.original_context_length": 4_096}
    draft.values |= {"leading_dense_block_count": 1, "expert_feed_forward_length": 1_408, "expert_weights_scale": 1.0}
    draft.values |= {"rope.scaling.yarn_log_multiplier": 0.0707, "vocab_size": 102_400}
    draft.ends(width, is_tied=False)
    attention = {
        "attn_norm": (width,),
        "attn_q": (width, query * 192),
        "attn_kv_a_mqa": (width, latent + 64),
        "attn_kv_a_norm": (latent,),
        "attn_k_b": (128, latent, query),
        "attn_v_b": (latent, 128, query),
        "attn_output": (query * 128, width),
        "ffn_norm": (width,),
    }
    experts = blocks.experts(width, 1_408, 64) | blocks.shared_expert(width, 2 * 1_408)
    for layer in range(draft.layers):
        draft.block(layer, attention | (experts if layer else blocks.feed_forward(width, 10_944)))
    return draft


def _mamba2(width: int, inner: int, state: int, heads: int, *, has_norm: bool = True) -> dict[str, tuple[int, ...]]:
    """Return a Mamba-2 mixer of one group and a kernel of four."""
    shapes: dict[str, tuple[int, ...]] = {
        "attn_norm": (width,),
        "ssm_in": (width, 2 * inner + 2 * state + heads),
        "ssm_conv1d": (4, inner + 2 * state),
        "ssm_conv1d.bias": (inner + 2 * state,),
        "ssm_dt.bias": (heads,),
        "ssm_a.": (1, heads),
        "ssm_d.": (1, heads),
        "ssm_out": (inner, width),
    }
    return shapes | ({"ssm_norm": (inner, 1)} if has_norm else {})


def _mamba2_2_7b() -> Draft:
    """No attention at all."""
    draft = Draft("mamba2", "Mamba2 2.7B", 64, Vocabulary("gpt2", "olmo", 50_288, 50_009))
    draft.values = blocks.values(2_560, 1_048_576, 0, attention__head_count=0) | blocks.ssm(4, 5_120, 128, 80, 1)
    draft.ends(2_560, is_tied=True)
    for layer in range(draft.layers):
        draft.block(layer, _mamba2(2_560, 5_120, 128, 80))
    return draft


def _qwen3_next_80b() -> Draft:
    """Three layers of four keep a state instead of K and V."""
    width, key, value = 2_048, 2_048, 4_096
    draft = Draft("qwen3next", "Qwen3 Next 80B A3B Instruct", 48, blocks.QWEN, experts=512)
    draft.values = blocks.values(width, 262_144, 5_120, rope__freq_base=1e7, expert_count=512, expert_used_count=10)
    draft.values |= blocks.heads(16, 2, 256) | blocks.ssm(4, value, 128, 32, 16) | {"rope.dimension_count": 64}
    draft.values |= {"expert_feed_forward_length": 512, "expert_shared_feed_forward_length": 512}
    draft.values["full_attention_interval"] = 4
    draft.ends(width, is_tied=False)
    experts = blocks.experts(width, 512, 512) | blocks.shared_expert(width, 512) | {"ffn_gate_inp_shexp": (width,)}
    state = {
        "attn_norm": (width,),
        "attn_qkv": (width, 2 * key + value),
        "attn_gate": (width, value),
        "ssm_conv1d": (4, 2 * key + value),
        "ssm_dt.bias": (32,),
        "ssm_a.": (32,),
        "ssm_ba": (width, 64),
        "ssm_norm": (128,),
        "ssm_out": (value, width),
    }
    full = blocks.attention(width, 16, 2, 256) | blocks.norms(256) | {"attn_q": (width, 2 * 16 * 256)}
    for layer in range(draft.layers):
        draft.block(layer, (state if (layer + 1) % 4 else full) | {"post_attention_norm": (width,)} | experts)
    return draft


def _granite_4_h_tiny() -> Draft:
    """Four layers of forty have attention, the others Mamba-2; experts in all."""
    width, layers, attending = 1_536, 40, (5, 15, 25, 35)
    draft = Draft("granitehybrid", "Granite 4.0 H Tiny", layers, Vocabulary("gpt2", "dbrx", 100_352, 100_000))
    draft.experts = 64
    kv = [4 if layer in attending else 0 for layer in range(layers)]
    draft.values = blocks.values(width, 131_072, 512, expert_count=64, expert_used_count=6) | blocks.heads(12, kv)
    draft.values |= blocks.ssm(4, 2 * width, 128, 48, 1) | {"expert_shared_feed_forward_length": 1_024}
    draft.values |= {"attention.scale": 0.0078125, "embedding_scale": 12.0, "residual_scale": 0.22, "logit_scale": 6.0}
    draft.values |= {"rope.dimension_count": 128, "rope.scaling.finetuned": False}
    draft.ends(width, is_tied=True)
    experts = {"ffn_norm": (width,)} | blocks.experts(width, 512, 64) | blocks.shared_expert(width, 1_024)
    for layer in range(layers):
        mixer = blocks.attention(width, 12, 4) if layer in attending else _mamba2(width, 2 * width, 128, 48)
        draft.block(layer, mixer | experts)
    return draft


def _falcon_h1_7b() -> Draft:
    """Attention and Mamba-2 side by side in every layer."""
    width, inner, state, heads = 3_072, 3_072, 256, 24
    draft = Draft("falcon-h1", "Falcon H1 7B Instruct", 44, Vocabulary("gpt2", "falcon-h1", 130_048, 129_787))
    draft.values = blocks.values(width, 262_144, 12_288, rope__freq_base=1e11) | blocks.heads(12, 2, 128)
    draft.values |= blocks.ssm(4, inner, state, heads, 1)
    draft.ends(width, is_tied=False)
    mixers = _mamba2(width, inner, state, heads, has_norm=False) | blocks.attention(width, 12, 2)
    for layer in range(draft.layers):
        draft.block(layer, mixers | blocks.feed_forward(width, 12_288, "ffn_norm."))
    return draft


def _jamba_mini() -> Draft:
    """One layer of eight has attention, the others Mamba-1; experts in every other layer."""
    width, inner, layers = 4_096, 8_192, 32
    draft = Draft("jamba", "AI21 Jamba 1.5 Mini", layers, Vocabulary("llama", "", 65_536), experts=16)
    kv = [8 if layer % 8 == 4 else 0 for layer in range(layers)]
    draft.values = blocks.values(width, 262_144, 14_336, expert_count=16, expert_used_count=2) | blocks.heads(32, kv)
    draft.values |= blocks.ssm(4, inner, 16, 256)
    draft.ends(width, is_tied=False)
    mamba = {
        "attn_norm": (width,),
        "ssm_in": (width, 2 * inner),
        "ssm_conv1d": (4, inner),
        "ssm_conv1d.bias": (inner,),
        "ssm_x": (inner, 256 + 2 * 16),
        "ssm_dt_norm": (256,),
        "ssm_dt": (256, inner),
        "ssm_dt.bias": (inner,),
        "ssm_b_norm": (16,),
        "ssm_c_norm": (16,),
        "ssm_a.": (16, inner),
        "ssm_d.": (inner,),
        "ssm_out": (inner, width),
    }
    experts = {"ffn_norm": (width,)} | blocks.experts(width, 14_336, 16)
    for layer in range(layers):
        mixer = blocks.attention(width, 32, 8) if kv[layer] else mamba
        draft.block(layer, mixer | (experts if layer % 2 else blocks.feed_forward(width, 14_336)))
    return draft


def _lfm2_1_2b() -> Draft:
    """Six layers of sixteen have attention, the others a short convolution."""
    width, layers, attending = 2_048, 16, (2, 5, 8, 10, 12, 14)
    draft = Draft("lfm2", "LFM2 1.2B", layers, Vocabulary("gpt2", "lfm2", 65_536, 63_683))
    kv = [8 if layer in attending else 0 for layer in range(layers)]
    draft.values = blocks.values(width, 128_000, 8_192, rope__freq_base=1e6) | blocks.heads(32, kv)
    draft.values |= {"shortconv.l_cache": 3, "vocab_size": 65_536}
    draft.ends(width, is_tied=True, norm="token_embd_norm")
    convolution = {
        "attn_norm": (width,),
        "shortconv.conv": (3, width),
        "shortconv.in_proj": (width, 3 * width),
        "shortconv.out_proj": (width, width),
    }
    full = blocks.attention(width, 32, 8, 64) | blocks.norms(64)
    for layer in range(layers):
        draft.block(layer, (full if layer in attending else convolution) | blocks.feed_forward(width, 8_192))
    return draft


def _openelm_270m() -> Draft:
    """Later layers have more heads and a wider feed-forward part."""
    width, size, layers = 1_280, 64, 16
    query = [12] * 5 + [16] * 7 + [20] * 4
    kv = [3] * 5 + [4] * 7 + [5] * 4
    inner = [768, 1_024, 1_280, 1_536, 1_792, 2_048, 2_560, 2_816]
    inner += [3_072, 3_328, 3_584, 3_840, 4_352, 4_608, 4_864, 5_120]
    draft = Draft("openelm", "OpenELM 270M Instruct", layers, blocks.spm(32_000))
    draft.values = blocks.values(width, 2_048, inner) | blocks.heads(query, kv, size) | {"rope.dimension_count": size}
    draft.ends(width, is_tied=True)
    for layer in range(layers):
        mixer = {
            "attn_norm": (width,),
            "attn_qkv": (width, (query[layer] + 2 * kv[layer]) * size),
            "attn_output": (query[layer] * size, width),
        }
        draft.block(layer, mixer | blocks.norms(size) | blocks.feed_forward(width, inner[layer]))
    return draft


MODELS: Mapping[str, Callable[[], Draft]] = {
    "deepseek-v2-lite": _deepseek_v2_lite,
    "mamba2-2.7b": _mamba2_2_7b,
    "qwen3-next-80b": _qwen3_next_80b,
    "granite-4-h-tiny": _granite_4_h_tiny,
    "falcon-h1-7b": _falcon_h1_7b,
    "jamba-mini": _jamba_mini,
    "lfm2-1.2b": _lfm2_1_2b,
    "openelm-270m": _openelm_270m,
}
