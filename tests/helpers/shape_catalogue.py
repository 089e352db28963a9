"""Well-known models with attention in every layer, as their config.json has them.

Enough for llama.cpp to take the header for the model. Types are those of a Q4_K_M file unless said otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.helpers import shape_blocks as blocks
from tests.helpers import shape_hybrids
from tests.helpers.shape_parts import MXFP4_MOE, Draft, Vocabulary

# ------------------------------------------------------------------------------------- Llama and its relatives


def _llama(draft: Draft, width: int, inner: int, query: int, kv: int, *, is_tied: bool = False) -> Draft:
    """Fill in a model of the architecture "llama"."""
    size = width // query
    draft.values |= blocks.heads(query, kv) | {"rope.dimension_count": size, "vocab_size": draft.vocabulary.tokens}
    draft.ends(width, is_tied=is_tied)
    feed_forward = blocks.feed_forward(width, inner)
    if draft.experts:
        feed_forward = {"ffn_norm": (width,)} | blocks.experts(width, inner, draft.experts)
    for layer in range(draft.layers):
        draft.block(layer, blocks.attention(width, query, kv, size) | feed_forward)
    return draft


def _llama_31_8b() -> Draft:
    draft = Draft("llama", "Meta Llama 3.1 8B Instruct", 32, blocks.LLAMA3)
    draft.values = blocks.values(4_096, 131_072, 14_336, rope__freq_base=500_000.0)
    draft.add("rope_freqs.weight", 64)
    return _llama(draft, 4_096, 14_336, 32, 8)


def _llama_31_70b() -> Draft:
    draft = Draft("llama", "Meta Llama 3.1 70B Instruct", 80, blocks.LLAMA3, has_wide_values=True)
    draft.values = blocks.values(8_192, 131_072, 28_672, rope__freq_base=500_000.0)
    draft.add("rope_freqs.weight", 64)
    return _llama(draft, 8_192, 28_672, 64, 8)


def _smollm2_135m() -> Draft:
    """Rows of 576 weights are no whole blocks of a K-type: most tensors fall back."""
    draft = Draft("llama", "SmolLM2 135M Instruct", 30, Vocabulary("gpt2", "smollm", 49_152, 48_900))
    draft.values = blocks.values(576, 8_192, 1_536, rope__freq_base=100_000.0)
    return _llama(draft, 576, 1_536, 9, 3, is_tied=True)


def _mistral_7b_v03() -> Draft:
    draft = Draft("llama", "Mistral 7B Instruct v0.3", 32, blocks.spm(32_768))
    draft.values = blocks.values(4_096, 32_768, 14_336, rope__freq_base=1e6)
    return _llama(draft, 4_096, 14_336, 32, 8)


def _mistral_7b_v01() -> Draft:
    """Its window of 4,096 tokens stands in the file, and llama.cpp keeps everything nonetheless."""
    draft = Draft("llama", "Mistral 7B v0.1", 32, blocks.spm(32_000))
    draft.values = blocks.values(4_096, 32_768, 14_336, attention__sliding_window=4_096)
    return _llama(draft, 4_096, 14_336, 32, 8)


def _mixtral_8x7b() -> Draft:
    draft = Draft("llama", "Mixtral 8x7B Instruct v0.1", 32, blocks.spm(32_000), experts=8)
    draft.values = blocks.values(4_096, 32_768, 14_336, rope__freq_base=1e6, expert_count=8, expert_used_count=2)
    return _llama(draft, 4_096, 14_336, 32, 8)


def _llama_4_scout() -> Draft:
    """Chunks of 8,192 tokens in three layers of four."""
    draft = Draft("llama4", "Llama 4 Scout 17B 16E Instruct", 48, Vocabulary("gpt2", "llama4", 202_048, 439_802))
    draft.values = blocks.values(
        5_120, 10_485_760, 16_384, rope__freq_base=500_000.0, expert_count=16, expert_used_count=1
    )
    draft.values |= blocks.heads(40, 8, 128) | {"expert_feed_forward_length": 8_192, "interleave_moe_layer_step": 1}
    draft.experts = 16
    draft.add("rope_freqs.weight", 64)
    draft.ends(5_120, is_tied=False)
    layer_shape = blocks.attention(5_120, 40, 8) | {"ffn_norm": (5_120,)}
    for layer in range(draft.layers):
        draft.block(layer, layer_shape | blocks.experts(5_120, 8_192, 16) | blocks.shared_expert(5_120, 8_192))
    return draft


# ------------------------------------------------------------------------------------------------- Qwen, Phi


def _qwen3_8b() -> Draft:
    draft = Draft("qwen3", "Qwen3 8B", 36, blocks.QWEN)
    draft.values = blocks.values(4_096, 40_960, 12_288, rope__freq_base=1e6) | blocks.heads(32, 8, 128)
    draft.ends(4_096, is_tied=False)
    for layer in range(draft.layers):
        draft.block(layer, blocks.attention(4_096, 32, 8) | blocks.norms(128) | blocks.feed_forward(4_096, 12_288))
    return draft


def _qwen3_30b_a3b() -> Draft:
    draft = Draft("qwen3moe", "Qwen3 30B A3B", 48, blocks.QWEN, experts=128)
    draft.values = blocks.values(2_048, 40_960, 6_144, rope__freq_base=1e6, expert_count=128, expert_used_count=8)
    draft.values |= blocks.heads(32, 4, 128) | {"expert_feed_forward_length": 768}
    draft.ends(2_048, is_tied=False)
    for layer in range(draft.layers):
        shapes = (
            blocks.attention(2_048, 32, 4)
            | blocks.norms(128)
            | {"ffn_norm": (2_048,)}
            | blocks.experts(2_048, 768, 128)
        )
        draft.block(layer, shapes)
    return draft


def _phi(draft: Draft, width: int, inner: int, query: int, kv: int) -> Draft:
    size = width // query
    draft.values |= blocks.heads(query, kv) | {"rope.dimension_count": size}
    draft.ends(width, is_tied=False)
    shapes = {
        "attn_norm": (width,),
        "attn_qkv": (width, (query + 2 * kv) * size),
        "attn_output": (query * size, width),
        "ffn_norm": (width,),
        "ffn_up": (width, 2 * inner),
        "ffn_down": (inner, width),
    }
    for layer in range(draft.layers):
        draft.block(layer, shapes)
    return draft


def _phi_3_mini() -> Draft:
    """Its window stands in the file, and llama.cpp does not use it."""
    draft = Draft("phi3", "Phi 3 mini 4k instruct", 32, blocks.spm(32_064))
    draft.values = blocks.values(3_072, 4_096, 8_192, attention__sliding_window=2_047)
    return _phi(draft, 3_072, 8_192, 32, 32)


def _phi_4() -> Draft:
    draft = Draft("phi3", "Phi 4", 40, Vocabulary("gpt2", "dbrx", 100_352, 100_000))
    draft.values = blocks.values(5_120, 16_384, 17_920, rope__freq_base=250_000.0, attention__sliding_window=0)
    return _phi(draft, 5_120, 17_920, 40, 10)


# ---------------------------------------------------------------------------------- windows: Gemma, Command, gpt-oss


def _gemma_2_9b() -> Draft:
    """Every other layer sees 4,096 tokens; the attention's logits are capped."""
    width = 3_584
    draft = Draft("gemma2", "Gemma 2 9B it", 42, blocks.spm(256_000))
    draft.values = blocks.values(width, 8_192, 14_336, attention__sliding_window=4_096) | blocks.heads(16, 8, 256)
    draft.values |= {"attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0}
    draft.ends(width, is_tied=True)
    after = {"post_attention_norm": (width,), "post_ffw_norm": (width,)}
    for layer in range(draft.layers):
        draft.block(layer, blocks.attention(width, 16, 8, 256) | after | blocks.feed_forward(width, 14_336))
    return draft


def _gemma_3_12b() -> Draft:
    """Five layers of six see 1,024 tokens."""
    width = 3_840
    draft = Draft("gemma3", "Gemma 3 12B it", 48, blocks.spm(262_208))
    draft.values = blocks.values(width, 131_072, 15_360, attention__sliding_window=1_024) | blocks.heads(16, 8, 256)
    draft.values |= {"rope.freq_base": 1e6, "rope.scaling.type": "linear", "rope.scaling.factor": 8.0}
    draft.ends(width, is_tied=True)
    more = blocks.norms(256) | {"post_attention_norm": (width,), "post_ffw_norm": (width,)}
    for layer in range(draft.layers):
        draft.block(layer, blocks.attention(width, 16, 8, 256) | more | blocks.feed_forward(width, 15_360))
    return draft


def _gemma_3n_e2b() -> Draft:
    """The last ten of its layers use the K and V of earlier ones; an embedding of its own for every layer."""
    width, inner, small, layers = 2_048, 8_192, 256, 30
    draft = Draft("gemma3n", "Gemma 3n E2B it", layers, blocks.spm(262_144))
    draft.values = blocks.values(width, 32_768, inner, attention__sliding_window=512) | blocks.heads(8, 2, 256)
    draft.values |= {"altup.active_idx": 0, "altup.num_inputs": 4, "embedding_length_per_layer_input": small}
    draft.values |= {"attention.shared_kv_layers": 10, "rope.freq_base": 1e6}
    draft.values["attention.sliding_window_pattern"] = [(layer + 1) % 5 != 0 for layer in range(layers)]
    draft.ends(width, is_tied=True)
    draft.add("altup_proj.weight", width, width, 3)
    draft.add("altup_unembd_proj.weight", width, width, 3)
    draft.add("per_layer_token_embd.weight", small * layers, 262_144)
    draft.add("per_layer_model_proj.weight", width, small * layers)
    draft.add("per_layer_proj_norm.weight", small)
    more = blocks.norms(256) | {
        **dict.fromkeys(("post_attention_norm", "post_ffw_norm", "post_norm", "laurel_post_norm"), (width,)),
        **dict.fromkeys(("altup_correct_scale", "altup_router_norm"), (width,)),
        "inp_gate": (width, small),
        "proj": (small, width),
        "altup_correct_coef": (4, 4),
        "altup_predict_coef": (4, 16),
        "altup_router": (width, 4),
        "laurel_l": (width, 64),
        "laurel_r": (64, width),
    }
    for layer in range(layers):
        draft.block(layer, blocks.attention(width, 8, 2, 256) | more | blocks.feed_forward(width, inner))
    return draft


def _command_r7b() -> Draft:
    """Three layers of four see 4,096 tokens; no norm before the feed-forward part."""
    draft = Draft("cohere2", "Command R7B 12 2024", 32, Vocabulary("gpt2", "command-r", 256_000, 253_333))
    draft.values = blocks.values(
        4_096, 132_096, 14_336, attention__sliding_window=4_096, logit_scale=0.25
    ) | blocks.heads(32, 8)
    draft.values |= {"attention.layer_norm_epsilon": 1e-5, "rope.dimension_count": 128, "rope.freq_base": 50_000.0}
    draft.ends(4_096, is_tied=True)
    for layer in range(draft.layers):
        draft.block(layer, blocks.attention(4_096, 32, 8) | blocks.feed_forward(4_096, 14_336, "attn_norm"))
    return draft


def _gpt_oss_20b() -> Draft:
    """Its experts are stored as MXFP4, the rest as Q8_0; every other layer sees 128 tokens."""
    width = 2_880
    vocabulary = Vocabulary("gpt2", "gpt-4o", 201_088, 446_189)
    draft = Draft("gpt-oss", "gpt oss 20b", 24, vocabulary, experts=32, file_type=MXFP4_MOE)
    draft.values = blocks.values(width, 131_072, width, attention__sliding_window=128, rope__freq_base=150_000.0)
    draft.values |= blocks.heads(64, 8, 64) | {"expert_count": 32, "expert_used_count": 4, "rope.scaling.type": "yarn"}
    draft.values |= {"expert_feed_forward_length": width, "rope.scaling.factor": 32.0}
    draft.values["rope.scaling.original_context_length"] = 4_096
    draft.ends(width, is_tied=False)
    biases: dict[str, tuple[int, ...]] = {"attn_sinks.weight": (64,), "ffn_gate_inp.bias": (32,)}
    biases |= {"attn_q.bias": (4_096,), "attn_k.bias": (512,), "attn_v.bias": (512,), "attn_output.bias": (width,)}
    biases |= {f"ffn_{part}_exps.bias": (width, 32) for part in ("gate", "up", "down")}
    for layer in range(draft.layers):
        norm = {"post_attention_norm": (width,)}
        draft.block(layer, blocks.attention(width, 64, 8, 64) | norm | biases | blocks.experts(width, width, 32))
    return draft


MODELS: Mapping[str, Callable[[], Draft]] = {
    "llama-3.1-8b": _llama_31_8b,
    "llama-3.1-70b": _llama_31_70b,
    "smollm2-135m": _smollm2_135m,
    "mistral-7b-v0.3": _mistral_7b_v03,
    "mistral-7b-v0.1": _mistral_7b_v01,
    "mixtral-8x7b": _mixtral_8x7b,
    "llama-4-scout": _llama_4_scout,
    "qwen3-8b": _qwen3_8b,
    "qwen3-30b-a3b": _qwen3_30b_a3b,
    "phi-3-mini": _phi_3_mini,
    "phi-4": _phi_4,
    "gemma-2-9b": _gemma_2_9b,
    "gemma-3-12b": _gemma_3_12b,
    "gemma-3n-e2b": _gemma_3n_e2b,
    "command-r7b": _command_r7b,
    "gpt-oss-20b": _gpt_oss_20b,
    **shape_hybrids.MODELS,
}
