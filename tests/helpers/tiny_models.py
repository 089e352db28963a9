"""Tiny models with random weights, one for each architecture that the torch engine meets, made in milliseconds."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, PretrainedConfig, PreTrainedModel

VOCABULARY = 300
_BASE: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "vocab_size": VOCABULARY,
    "max_position_embeddings": 256,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
_LATENT = {
    "kv_lora_rank": 16,
    "q_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 12,
    "n_routed_experts": 4,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
    "moe_intermediate_size": 16,
    "num_key_value_heads": 4,
}
_LINEAR_ATTENTION = {
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 2,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "num_hidden_layers": 4,
}
_MAMBA = {"mamba_d_state": 8, "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_n_groups": 1, "mamba_chunk_size": 4}
_EXTRA: dict[str, dict[str, Any]] = {
    "mistral": {"sliding_window": 8},
    "gemma": {"num_key_value_heads": 1},
    "gemma2": {"sliding_window": 8, "query_pre_attn_scalar": 8},
    "gemma3_text": {
        "sliding_window": 8,
        "query_pre_attn_scalar": 8,
        "layer_types": ["sliding_attention", "full_attention"] * 2,
        "num_hidden_layers": 4,
    },
    "gemma3n_text": {
        "sliding_window": 8,
        "num_hidden_layers": 6,
        "layer_types": ["sliding_attention", "full_attention"] * 3,
        "num_kv_shared_layers": 2,
        "intermediate_size": [48] * 6,
        "activation_sparsity_pattern": [0.0] * 6,
        "hidden_size_per_layer_input": 8,
        "vocab_size_per_layer_input": VOCABULARY,
        "laurel_rank": 8,
        "altup_num_inputs": 2,
    },
    "gemma4_text": {
        "sliding_window": 8,
        "num_hidden_layers": 6,
        "layer_types": ["sliding_attention", "full_attention"] * 3,
        "num_kv_shared_layers": 2,
        "global_head_dim": 16,
        "hidden_size_per_layer_input": 8,
        "vocab_size_per_layer_input": VOCABULARY,
    },
    "gpt_oss": {"sliding_window": 8, "num_local_experts": 4, "num_experts_per_tok": 2},
    "mixtral": {"num_local_experts": 4, "sliding_window": 8},
    "phimoe": {"num_local_experts": 4},
    "granitemoe": {"num_local_experts": 4},
    "qwen2_moe": {**_EXPERTS, "shared_expert_intermediate_size": 16},
    "qwen3_moe": _EXPERTS,
    "olmoe": {"num_experts": 4, "num_experts_per_tok": 2},
    "olmo3": {"sliding_window": 8},
    "ernie4_5_moe": {"moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": 16},
    "glm4_moe": {
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "n_group": 1,
        "topk_group": 1,
        "moe_intermediate_size": 16,
    },
    "cohere2": {"sliding_window": 8, "num_hidden_layers": 4},
    "exaone4": {"sliding_window": 8, "num_hidden_layers": 4},
    "starcoder2": {"sliding_window": 8},
    "deepseek_v2": _LATENT,
    "deepseek_v3": _LATENT,
    "llama4_text": {
        "num_local_experts": 2,
        "attention_chunk_size": 8,
        "intermediate_size_mlp": 48,
        "interleave_moe_layer_step": 2,
        "num_hidden_layers": 4,
    },
    "persimmon": {"num_key_value_heads": 4},
    "opt": {"ffn_dim": 48, "word_embed_proj_dim": 32},
    "qwen3_next": {**_EXPERTS, **_LINEAR_ATTENTION, "shared_expert_intermediate_size": 16},
    "qwen3_5_text": {**_LINEAR_ATTENTION},
    "jamba": {
        "num_hidden_layers": 4,
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
        "num_experts": 2,
        "mamba_d_state": 8,
        "mamba_dt_rank": 4,
    },
    "bamba": {**_MAMBA, "attn_layer_indices": [1]},
    "falcon_h1": {**_MAMBA, "mamba_d_ssm": 64},
    "minimax": {"num_hidden_layers": 4, "num_local_experts": 4, "block_size": 16},
    "lfm2": {"layer_types": ["conv", "full_attention", "conv"], "block_multiple_of": 8},
    "falcon": {"ffn_hidden_size": 48, "num_kv_heads": 2},
    "bloom": {"n_layer": 3, "n_head": 4},
    "mpt": {"d_model": 32, "n_heads": 4, "n_layers": 3, "max_seq_len": 256},
    "mamba": {"state_size": 8, "time_step_rank": 4},
}
# Architectures whose attention goes through blocks.
PAGED = [
    "llama",
    "qwen2",
    "qwen3",
    "mistral",
    "gemma",
    "gemma2",
    "gemma3_text",
    "gemma4_text",
    "gemma3n_text",
    "phi3",
    "gpt_oss",
    "mixtral",
    "qwen2_moe",
    "qwen3_moe",
    "olmo",
    "olmo2",
    "olmo3",
    "olmoe",
    "granite",
    "granitemoe",
    "cohere",
    "cohere2",
    "starcoder2",
    "stablelm",
    "nemotron",
    "smollm3",
    "glm",
    "glm4",
    "glm4_moe",
    "exaone4",
    "deepseek_v2",
    "deepseek_v3",
    "llama4_text",
    "helium",
    "phi",
    "phimoe",
    "gpt_neox",
    "gpt2",
    "opt",
    "persimmon",
    "ernie4_5",
    "ernie4_5_moe",
    "seed_oss",
    "hunyuan_v1_dense",
    "arcee",
    "apertus",
]
# Architectures that must not: their attention is their own, or they keep a state beside it.
PLAIN = [
    "falcon",
    "bloom",
    "mpt",
    "bamba",
    "qwen3_next",
    "qwen3_5_text",
    "jamba",
    "minimax",
    "falcon_h1",
    "lfm2",
    "mamba",
]


def tiny_config(architecture: str, **changes: Any) -> PretrainedConfig:
    """Return a config of a few thousand weights; changes win over what the architecture needs."""
    made = CONFIG_MAPPING[architecture]
    known = set(inspect.signature(made.__init__).parameters) | set(made.attribute_map)
    base = {name: value for name, value in _BASE.items() if name in known}
    return made(**{**base, **_EXTRA.get(architecture, {}), **changes})


def tiny_model(architecture: str, seed: int = 0, **changes: Any) -> PreTrainedModel:
    """Return a random model in float32 with the architecture's own eager attention, in evaluation mode."""
    torch.manual_seed(seed)
    config = tiny_config(architecture, **changes)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    return model.eval().float().requires_grad_(False)
