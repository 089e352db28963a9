"""The layers that a config.json of transformers describes: heads, windows, latent vectors, recurrent state.

Reference: the configuration_*.py and cache_utils.py of https://github.com/huggingface/transformers.
"""

from __future__ import annotations

from collections.abc import Sequence

from app.models.config_values import ConfigValues
from app.models.gguf_keys import BadKeyError

# KV heads, key length, value length, window, state elements.
Layer = tuple[int, int, int, int, int]
Layers = Sequence[Layer]

_FULL, _WINDOW, _STATE, _NOTHING, _BOTH = "full", "window", "state", "nothing", "both"
# What layer_types, layers_block_type and hybrid_override_pattern call them.
_KINDS = {
    **dict.fromkeys(("full_attention", "attention", "full", "*", "global", "G", "hybrid_attention"), _FULL),
    **dict.fromkeys(("sliding_attention", "chunked_attention", "local", "sliding", "L"), _WINDOW),
    **dict.fromkeys(("linear_attention", "mamba", "mamba2", "conv", "recurrent", "M"), _STATE),
    **dict.fromkeys(("mlp", "moe", "-", "E"), _NOTHING),
}
# Of so many layers the last sees everything, where neither the config's list nor its own number says otherwise.
_WINDOW_EVERY = {"gemma2": 2, "gemma3": 6, "gemma3_text": 6, "gemma3n": 5, "gemma3n_text": 5, "cohere2": 4}
_WINDOW_EVERY |= {"gpt_oss": 2, "exaone4": 4, "olmo3": 4, "llama4": 4, "llama4_text": 4}
# Every layer sees the window, when the config names one.
_ALL_WINDOWED = frozenset({"mistral", "mixtral", "phi3", "starcoder2", "ministral", "phimoe"})
_STATE_ONLY = frozenset({"mamba", "mamba2", "falcon_mamba"})
_STATE_BESIDE_ATTENTION = frozenset({"falcon_h1"})
_UNKNOWN = frozenset(
    {"zamba", "zamba2", "recurrent_gemma", "rwkv", "xlstm", "minimax", "deepseek_v32", "deepseek_v4", "t5", "mt5"}
)
_DEFAULT_STATE, _DEFAULT_CONVOLUTION, _DEFAULT_EXPANSION = 16, 4, 2  # of Mamba


def layers_of_config(values: ConfigValues, max_layers: int) -> Layers:
    """Return what each layer keeps.

    Raises:
        BadKeyError: a number is missing or makes no sense, or models of this kind keep what is not known here.
    """
    if values.kind in _UNKNOWN:
        raise BadKeyError(f"Models of the kind {values.kind} keep their memory in a way that is not known here.")
    count = values.number("num_hidden_layers", "n_layer", "num_layers", "n_layers")
    if not 1 <= count <= max_layers:
        raise BadKeyError(f"config.json does not say how many layers there are, or not between 1 and {max_layers}.")
    width = values.number("hidden_size", "n_embd", "d_model")
    if not width:
        raise BadKeyError("config.json does not say how wide the model is.")
    kinds = _kinds(values, count)
    key_length, value_length = _lengths(values, width)
    heads = _kv_heads(values, count)
    window = values.number("sliding_window", "attention_chunk_size")
    state = _state_elements(values, width) if _STATE in kinds or _BOTH in kinds else 0
    own = count - values.number("num_kv_shared_layers")
    made = []
    for index, kind in enumerate(kinds):
        has_kv = kind in (_FULL, _WINDOW, _BOTH) and index < own
        made.append(
            (
                heads[index] if has_kv else 0,
                key_length,
                value_length,
                window if has_kv and kind == _WINDOW else 0,
                state if kind in (_STATE, _BOTH) else 0,
            )
        )
    return made


def _kinds(values: ConfigValues, count: int) -> list[str]:
    """Say of each layer what it keeps."""
    if values.kind in _STATE_ONLY:
        return [_STATE] * count
    if values.kind in _STATE_BESIDE_ATTENTION:
        return [_BOTH] * count
    listed = values.words("layer_types", "layers_block_type") or list(values.word("hybrid_override_pattern"))
    if listed:
        if len(listed) != count or any(kind not in _KINDS for kind in listed):
            raise BadKeyError(f"config.json does not name the kind of each of the {count:,} layers.")
        return [_KINDS[kind] for kind in listed]
    linear = values.part("linear_attn_config").numbers_in("kda_layers")  # Kimi Linear counts from one
    if linear:
        return [_STATE if index + 1 in linear else _FULL for index in range(count)]
    if every := values.number("attn_layer_period"):  # Jamba
        offset = values.number("attn_layer_offset")
        return [_FULL if index % every == offset else _STATE for index in range(count)]
    attending = values.numbers_in("full_attn_idxs") or values.numbers_in("attn_layer_indices")
    if attending:  # LFM2, Bamba
        return [_FULL if index in attending else _STATE for index in range(count)]
    if every := values.number("full_attention_interval"):  # Qwen3 Next
        return [_FULL if (index + 1) % every == 0 else _STATE for index in range(count)]
    return _windowed(values, count)


def _windowed(values: ConfigValues, count: int) -> list[str]:
    if not values.number("sliding_window", "attention_chunk_size"):
        return [_FULL] * count
    if values.kind in _ALL_WINDOWED:
        return [_WINDOW] * count
    if values.is_true("use_sliding_window"):  # Qwen 2: the first so many see everything
        first = values.number("max_window_layers", absent=count)
        return [_FULL if index < first else _WINDOW for index in range(count)]
    if pattern := values.word("sliding_window_pattern"):  # EXAONE: "LLLG"
        return [_WINDOW if pattern[index % len(pattern)] == "L" else _FULL for index in range(count)]
    every = _WINDOW_EVERY.get(values.kind, 0)
    if every:
        every = values.number("sliding_window_pattern", "_sliding_window_pattern", absent=every) or every
        return [_FULL if (index + 1) % every == 0 else _WINDOW for index in range(count)]
    return [_FULL] * count


def _lengths(values: ConfigValues, width: int) -> tuple[int, int]:
    """Return the elements of K and of V a head; with latent attention (MLA) of the one vector, and no V."""
    if rank := values.number("kv_lora_rank"):
        return rank + values.number("qk_rope_head_dim"), 0
    heads = values.number("num_attention_heads", "n_head", "n_heads")
    head = values.number("head_dim", "attention_head_dim", "kv_channels", absent=width // heads if heads else 0)
    return head, head


def _kv_heads(values: ConfigValues, count: int) -> list[int]:
    if values.number("kv_lora_rank"):
        return [1] * count
    names = ("num_key_value_heads", "num_kv_heads", "n_head_kv", "multi_query_group_num")
    listed = values.per_layer(*names, count=count)
    if listed is not None:
        return listed
    shared = 1 if values.is_true("multi_query") else values.number("num_attention_heads", "n_head", "n_heads")
    return [values.number(*names, absent=shared)] * count


def _state_elements(values: ConfigValues, width: int) -> int:
    """Return the elements of one layer's recurrent state: what its convolution looks back on, and the state itself."""
    if cached := values.number("conv_L_cache"):  # LFM2
        return width * (cached - 1)
    if heads := values.number("linear_num_value_heads"):  # gated delta net
        key, value = values.number("linear_key_head_dim"), values.number("linear_value_head_dim")
        keys = key * values.number("linear_num_key_heads")
        looked_back = max(0, values.number("linear_conv_kernel_dim", absent=_DEFAULT_CONVOLUTION) - 1)
        return looked_back * (2 * keys + heads * value) + heads * key * value
    linear = values.part("linear_attn_config")
    if head := linear.number("head_dim"):  # Kimi delta attention
        inner = head * linear.number("num_heads")
        looked_back = max(0, linear.number("short_conv_kernel_size", absent=_DEFAULT_CONVOLUTION) - 1)
        return 3 * looked_back * inner + head * inner
    inner = _inner_width(values, width)
    state = values.number("mamba_d_state", "ssm_state_size", "state_size", absent=_DEFAULT_STATE)
    groups = values.number("mamba_n_groups", "n_groups")
    convolution = values.number("mamba_d_conv", "conv_kernel", absent=_DEFAULT_CONVOLUTION)
    return max(0, convolution - 1) * (inner + 2 * groups * state) + state * inner


def _inner_width(values: ConfigValues, width: int) -> int:
    """Return the width on which a Mamba layer works."""
    if inner := values.number("mamba_d_ssm"):
        return inner
    heads = values.number("mamba_n_heads", "mamba_num_heads")
    head = values.number("mamba_d_head", "mamba_head_dim")
    if heads and head:
        return heads * head
    if values.kind in _STATE_ONLY and (inner := values.number("intermediate_size")):
        return inner
    return width * values.number("mamba_expand", "expand", absent=_DEFAULT_EXPANSION)
