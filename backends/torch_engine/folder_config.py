"""The config.json of a folder: whether its numbers can be true, and whether it asks for somebody's code.

Knows the names of dimensions, not what an architecture makes of them. The program asked the same questions before
(app/models/safetensors_config.py); the worker trusts nobody, since a path may be given to it from elsewhere.
References: trust.md S-07 and S-08; PretrainedConfig of https://github.com/huggingface/transformers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from backends.errors import EngineError, ErrorCode

MAX_VALUES = 500_000
MAX_DEPTH = 32
MAX_WHOLE_NUMBER = 2**53
MAX_PER_LAYER = 4_096
MAX_LAYER_EXPERTS = 2**17  # layers x experts: each may become modules of Python

# Dimension -> the least and the most that any model could mean. A list gives one number for each layer.
_DIMS: Mapping[str, tuple[int, int]] = {
    **dict.fromkeys(("hidden_size", "n_embd", "d_model", "embedding_size"), (1, 2**20)),
    **dict.fromkeys(
        ("intermediate_size", "moe_intermediate_size", "ffn_dim", "n_inner", "ffn_hidden_size"), (0, 2**24)
    ),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers"), (1, 512)),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_key_value_heads", "num_kv_heads"), (0, 2**14)),
    **dict.fromkeys(("head_dim", "v_head_dim", "qk_nope_head_dim", "qk_rope_head_dim", "global_head_dim"), (0, 2**16)),
    **dict.fromkeys(("kv_lora_rank", "q_lora_rank", "state_size", "ssm_state_size", "mamba_d_state"), (0, 2**20)),
    **dict.fromkeys(("num_experts", "num_local_experts", "n_routed_experts", "n_shared_experts"), (0, 2**13)),
    "num_experts_per_tok": (0, 2**13),
    **dict.fromkeys(("mamba_d_conv", "conv_kernel", "conv_L_cache", "max_window_layers"), (0, 2**16)),
    "vocab_size": (1, 2**24),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "sliding_window", "attention_chunk_size"), (0, 2**31)),
}
_MUST_BE_SOME = {"max_position_embeddings", "n_positions"}
_LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
_EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts")

# Ways of attention that transformers carries itself. We set our own; any other word is a repository whose code would
# be fetched and run.
_KNOWN_ATTENTION = {"", "eager", "sdpa", "flash_attention_2", "flash_attention_3", "flex_attention"}
_CODE_KEYS = ("auto_map", "custom_pipelines", "custom_generate")
# Keys that steer how transformers loads rather than what the model is; never passed on.
_STEERING = frozenset(
    {"attn_implementation", "experts_implementation", "transformers_weights", "fusion_config", "distributed_config"}
    | {"kernel_config", "device_map", "tp_plan", "name_or_path"}
)


def parse_object(data: bytes, name: str, path: Path) -> dict[str, object]:
    """Return a JSON file that is one object, bounded in values and depth.

    Infinity and NaN, which Python writes into such files although JSON has none, become None.

    Raises:
        EngineError: HEADER_INVALID.
    """
    if data.count(b",") + data.count(b"[") + data.count(b"{") >= MAX_VALUES:
        raise damaged(path, f"{name} holds more values than any model needs")
    try:
        found = json.loads(data, parse_constant=lambda _constant: None)
    except RecursionError as error:
        raise damaged(path, f"{name} is nested too deeply") from error
    except ValueError as error:
        raise damaged(path, f"{name} is no valid JSON") from error
    if not isinstance(found, dict):
        raise damaged(path, f"{name} is no JSON object")
    _check_depth(found, name, path)
    return found


def check_config(config: Mapping[str, object], path: Path) -> None:
    """Refuse a config that cannot be true or that asks for code.

    Raises:
        EngineError: RUNS_CODE, UNKNOWN_ARCHITECTURE, WEIGHTS_UNSUPPORTED or HEADER_INVALID.
    """
    for key, value in every_value(config):
        _check_code(key, value, path)
        _check_number(key, value, path)
        if key in _DIMS:
            _check_dim(key, value, path)
    model_type = config.get("model_type")
    if not isinstance(model_type, str) or not model_type.isascii() or not 0 < len(model_type) <= 64:
        raise EngineError(ErrorCode.UNKNOWN_ARCHITECTURE, path=str(path), architecture="config.json does not say")
    _check_products(config, path)
    if config.get("quantization_config"):
        raise EngineError(ErrorCode.WEIGHTS_UNSUPPORTED, path=str(path), detail=_quantized_as(config))


def without_steering(config: Mapping[str, object]) -> dict[str, object]:
    """Return what the config says of the model, without what it says of how to load it."""

    def clean(value: object) -> object:
        if isinstance(value, Mapping):
            return {
                key: clean(inner) for key, inner in value.items() if not any(word in str(key) for word in _STEERING)
            }
        return [clean(inner) for inner in value] if isinstance(value, list) else value

    cleaned = clean(config)
    return cleaned if isinstance(cleaned, dict) else {}


def every_value(config: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield every key and value of every object in it; the depth is bounded already."""
    todo: list[object] = [config]
    while todo:
        one = todo.pop()
        if isinstance(one, Mapping):
            for key, value in one.items():
                yield str(key), value
                todo.append(value)
        elif isinstance(one, list):
            todo += one


def damaged(path: Path, detail: str) -> EngineError:
    """Return the error for a file that cannot be true."""
    return EngineError(ErrorCode.HEADER_INVALID, path=str(path), detail=detail)


def _check_depth(found: dict[str, object], name: str, path: Path) -> None:
    layer: list[object] = [found]
    for _depth in range(MAX_DEPTH):
        inner = (one.values() if isinstance(one, dict) else one for one in layer if isinstance(one, dict | list))
        layer = [value for values in inner for value in values if isinstance(value, dict | list)]
        if not layer:
            return
    raise damaged(path, f"{name} is nested more than {MAX_DEPTH} deep")


def _check_code(key: str, value: object, path: Path) -> None:
    asks = key in _CODE_KEYS and value
    if "attn_implementation" in key or "experts_implementation" in key:
        words = _texts(value)
        asks = any("/" in word or ":" in word for word in words)
        if "attn_implementation" in key:
            asks = asks or any(word.removeprefix("paged|") not in _KNOWN_ATTENTION for word in words)
    if asks:
        raise EngineError(ErrorCode.RUNS_CODE, path=str(path), detail=key[:80])


def _texts(value: object) -> list[str]:
    """Return the texts of a value; anything that is neither a text nor nothing counts as one that nobody knows."""
    if value is None:
        return []
    if isinstance(value, Mapping):
        return [text for inner in value.values() for text in _texts(inner)]
    return [value] if isinstance(value, str) else [f"/{type(value).__name__}"]


def _check_number(key: str, value: object, path: Path) -> None:
    numbers = value if isinstance(value, list) else [value]
    for number in numbers:
        is_large = isinstance(number, int) and abs(number) > MAX_WHOLE_NUMBER
        if is_large or (isinstance(number, float) and math.isinf(number)):  # 1e999
            raise damaged(path, f"the number of {key[:80]!a} in config.json is larger than any model needs")


def _check_dim(key: str, value: object, path: Path) -> None:
    if value is None:
        return
    least, most = _DIMS[key]
    least = 1 if key in _MUST_BE_SOME else least
    numbers = value if isinstance(value, list) else [value]
    if len(numbers) > MAX_PER_LAYER:
        raise damaged(path, f"{key} in config.json lists {len(numbers):,} numbers")
    for number in numbers:
        if number is None and isinstance(value, list):
            continue
        if type(number) is not int or not least <= number <= most:
            raise damaged(path, f"{key} in config.json is no whole number between {least:,} and {most:,}")


def _check_products(config: Mapping[str, object], path: Path) -> None:
    for part in (config, *(value for value in config.values() if isinstance(value, Mapping))):
        layers = max((_number(part.get(key)) for key in _LAYERS), default=0)
        experts = max((_number(part.get(key)) for key in _EXPERTS), default=0)
        if layers * experts > MAX_LAYER_EXPERTS:
            raise damaged(path, f"config.json claims {layers:,} layers of {experts:,} experts")


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0


def _quantized_as(config: Mapping[str, object]) -> str:
    facts = config["quantization_config"]
    method = facts.get("quant_method") if isinstance(facts, Mapping) else None
    return method[:40] if isinstance(method, str) and method.isprintable() else "a way it does not name"
