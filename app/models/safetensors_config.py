"""The config.json beside safetensors: whether its numbers can be true, and whether it asks for somebody's code.

Knows the names of dimensions, not what each architecture makes of them; that is app/models/shape_config.py.
Reference: PretrainedConfig of https://github.com/huggingface/transformers; trust.md S-07 and S-08.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from app.models.bounded_json import decode_object
from app.models.byte_source import HeaderError
from app.models.gguf_checks import MAX_BLOCKS, shown

MAX_CONFIG_BYTES = 8 * 2**20  # classifiers list thousands of labels; a language model's takes 2 KB
MAX_VALUES = 500_000
MAX_WHOLE_NUMBER = 2**53  # exact in every JSON reader
MAX_PER_LAYER = 4_096
MAX_MODEL_TYPE = 64

# Dimension -> the least and the most that any model could mean. A list gives one number for each layer.
_DIMS: Mapping[str, tuple[int, int]] = {
    "hidden_size": (1, 2**20),
    "n_embd": (1, 2**20),
    "d_model": (1, 2**20),
    "intermediate_size": (0, 2**24),
    "moe_intermediate_size": (0, 2**24),
    "ffn_dim": (0, 2**24),
    "num_hidden_layers": (1, MAX_BLOCKS),
    "n_layer": (1, MAX_BLOCKS),
    "n_layers": (1, MAX_BLOCKS),
    "num_layers": (1, MAX_BLOCKS),
    "num_attention_heads": (0, 2**14),
    "n_head": (0, 2**14),
    "num_key_value_heads": (0, 2**14),
    "head_dim": (0, 2**16),
    "v_head_dim": (0, 2**16),
    "qk_nope_head_dim": (0, 2**16),
    "qk_rope_head_dim": (0, 2**16),
    "kv_lora_rank": (0, 2**20),
    "q_lora_rank": (0, 2**20),
    "vocab_size": (1, 2**24),
    "max_position_embeddings": (1, 2**31),
    "n_positions": (1, 2**31),
    "sliding_window": (0, 2**31),
    "num_experts": (0, 2**16),
    "num_local_experts": (0, 2**16),
    "n_routed_experts": (0, 2**16),
    "n_shared_experts": (0, 2**16),
    "num_experts_per_tok": (0, 2**16),
    "state_size": (0, 2**20),
    "ssm_state_size": (0, 2**20),
    "mamba_d_state": (0, 2**20),
    "mamba_d_conv": (0, 2**16),
    "conv_kernel": (0, 2**16),
    "time_step_rank": (0, 2**20),
}
_WORDS_TOO = {"time_step_rank"}  # may be "auto"


def parse_config(data: bytes) -> dict[str, object]:
    """Return a checked config.json.

    Raises:
        HeaderError: it is no JSON object, too large, or holds a number that no model can mean.
    """
    config = decode_object(data, "config.json", MAX_VALUES)
    for key, value in _every_value(config):
        _check_number(key, value)
        if key in _DIMS:
            _check_dim(key, value)
    model_type = config.get("model_type", "")
    if not isinstance(model_type, str) or len(model_type) > MAX_MODEL_TYPE or not model_type.isprintable():
        raise HeaderError("config.json does not name the kind of model in a plain word.")
    return config


def code_request(config: Mapping[str, object]) -> str:
    """Return what in a config asks for code that is not ours, such as "auto_map"; "" when nothing does."""
    for key, value in _every_value(config):
        if key == "auto_map" and value:
            return "auto_map"
        if key == "custom_pipelines" and value:
            return "custom_pipelines"
        # A name with a slash is that of a repository whose code would be fetched and run.
        if "attn_implementation" in key and any("/" in name for name in _texts(value)):
            return key
    return ""


def _every_value(config: Mapping[str, object]) -> Iterator[tuple[str, object]]:
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


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    inner = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return [one for one in inner if isinstance(one, str)]


def _check_number(key: str, value: object) -> None:
    numbers = value if isinstance(value, list) else [value]
    for number in numbers:
        if isinstance(number, int) and abs(number) > MAX_WHOLE_NUMBER:
            raise HeaderError(f"The number of {shown(key)} in config.json is larger than any model needs.")
        if isinstance(number, float) and number in (float("inf"), float("-inf")):  # 1e999
            raise HeaderError(f"The number of {shown(key)} in config.json is larger than any model needs.")


def _check_dim(key: str, value: object) -> None:
    if value is None or (isinstance(value, str) and key in _WORDS_TOO):
        return
    least, most = _DIMS[key]
    numbers = value if isinstance(value, list) else [value]
    if len(numbers) > MAX_PER_LAYER:
        raise HeaderError(f"{shown(key)} in config.json lists {len(numbers):,} numbers.")
    for number in numbers:
        if number is None and isinstance(value, list):
            continue
        if type(number) is not int or not least <= number <= most:
            raise HeaderError(f"{shown(key)} in config.json is no whole number between {least:,} and {most:,}.")
