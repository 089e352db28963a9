"""What a model will take, from its header alone and before anything is loaded.

A pure function of the header. Where the header's shape is one this file does not know, the answer is None: unknown is a
state, never a guess.
"""

from __future__ import annotations

from app.models.ggml_types import GGML_TYPES
from app.models.gguf_header import GgufHeader

# Shapes whose cache is not "every layer keeps K and V of every token": not predicted here.
_OTHER_CACHES = ("attention.sliding_window", "attention.kv_lora_rank", "ssm.state_size", "wkv.head_size")


def kv_bytes_per_token(header: GgufHeader, kv_type: str) -> float | None:
    """Return the KV cache's bytes for one token, or None when the header does not tell.

    The sum over layers of KV heads x (key length + value length) x bytes an element: grouped-query attention (Ainslie
    et al. 2023) shares each KV head among several query heads, so the query heads do not count.

    Args:
        header: the model's header.
        kv_type: how K and V are stored, such as "f16" or "q8_0".
    """
    prefix = header.architecture
    heads = header.number(f"{prefix}.attention.head_count")
    width = header.number(f"{prefix}.embedding_length")
    element = next((known for known in GGML_TYPES.values() if known.name.lower() == kv_type), None)
    if element is None or not heads or any(f"{prefix}.{key}" in header.metadata for key in _OTHER_CACHES):
        return None
    key_length = header.number(f"{prefix}.attention.key_length", absent=width // heads)
    value_length = header.number(f"{prefix}.attention.value_length", absent=width // heads)
    kv_heads = header.metadata.get(f"{prefix}.attention.head_count_kv", heads)
    if isinstance(kv_heads, int):
        all_kv_heads = kv_heads * header.block_count
    elif isinstance(kv_heads, tuple) and all(isinstance(count, int) for count in kv_heads):
        all_kv_heads = sum(int(count) for count in kv_heads)
    else:
        return None
    return all_kv_heads * (key_length + value_length) * element.block_bytes / element.block_elements


def weights_bytes(header: GgufHeader) -> int:
    """Return the bytes of all weights, which llama.cpp maps as they are in the file."""
    return header.tensor_bytes
