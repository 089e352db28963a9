"""What must hold for a GGUF header before an engine may see its file; trust.md S-02.

Knows the values that were read and the size of the file, and reads nothing itself.
Reference: gguf.cpp and llama-model-loader.cpp of llama-cpp-python 0.3.36.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from app.models.byte_source import HeaderError
from app.models.ggml_types import SCALAR_TYPES
from app.models.gguf_facts import ArrayNote, TensorInfo, Value

MAX_ALIGNMENT = 2**20
MAX_BLOCKS = 512  # LLAMA_MAX_LAYERS: llama.cpp aborts above it

UINT16, UINT32, INT32 = 2, 4, 5  # numbers of SCALAR_TYPES

_ALIGNMENT = "general.alignment"
_ALIGNMENT_FAULT = "The alignment of the tensors is no 32-bit power of two between 8 bytes and 1 MiB."
_DEFAULT_ALIGNMENT = 32
# gguf.cpp refuses another alignment; get_key() and gguf_get_val_u16() of the loader want exactly these.
_REQUIRED_TYPES = {_ALIGNMENT: UINT32, "split.no": UINT16, "split.count": UINT16, "split.tensors.count": INT32}
_ARCHITECTURE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def check_type(key: str, value_type: int) -> None:
    """Refuse a value of another type than llama.cpp insists on, which ends its process for some of them."""
    wanted = _REQUIRED_TYPES.get(key)
    if wanted is None or wanted == value_type:
        return
    if key == _ALIGNMENT:
        raise HeaderError(_ALIGNMENT_FAULT)
    raise HeaderError(f"The value of {shown(key)} is not stored as {SCALAR_TYPES[wanted][0]}.")


def check_metadata(metadata: Mapping[str, Value], is_part_enough: bool) -> int:
    """Refuse values an engine would trust blindly; return the alignment of the tensors.

    Args:
        metadata: all of it.
        is_part_enough: whether the later parts of a split set are wanted too; they do not say what model it is.
    """
    alignment = metadata.get(_ALIGNMENT, _DEFAULT_ALIGNMENT)
    if type(alignment) is not int or not 8 <= alignment <= MAX_ALIGNMENT or alignment & (alignment - 1):
        raise HeaderError(_ALIGNMENT_FAULT)
    part, num_parts = metadata.get("split.no", 0), metadata.get("split.count", 0)
    is_later_part = part != 0 and num_parts not in (0, 1)
    if is_later_part and not is_part_enough:
        raise HeaderError(f"This is a later one of {num_parts} parts of a model; open the first part.")
    architecture = metadata.get("general.architecture")
    if architecture is None and is_later_part:
        return alignment
    if not isinstance(architecture, str) or not _ARCHITECTURE.fullmatch(architecture):
        raise HeaderError("The header does not name the model's architecture in a plain word.")
    blocks = metadata.get(f"{architecture}.block_count", 1)
    if type(blocks) is not int or not 1 <= blocks <= MAX_BLOCKS:
        raise HeaderError(f"The number of layers is not between 1 and {MAX_BLOCKS}.")
    tokens = metadata.get("tokenizer.ggml.tokens")
    num_tokens = tokens.length if isinstance(tokens, ArrayNote) else 0
    for key in ("tokenizer.ggml.scores", "tokenizer.ggml.token_type"):
        facts = metadata.get(key)
        num_facts = facts.length if isinstance(facts, ArrayNote) else len(facts) if isinstance(facts, tuple) else None
        if num_facts is not None and num_facts < num_tokens:
            raise HeaderError(f"The vocabulary has {num_tokens:,} tokens and only {num_facts:,} entries of {key}.")
    return alignment


def check_names(tensors: Sequence[TensorInfo], metadata: Mapping[str, Value]) -> None:
    """Refuse a name that stands twice, and a file without weights."""
    names = Counter(tensor.name for tensor in tensors)
    twice = next((name for name, count in names.items() if count > 1), None)
    if twice is not None:
        raise HeaderError(f"The tensor {shown(twice)} stands twice in the header.")
    if not tensors and "split.count" not in metadata:  # the first part of a split model may hold none
        raise HeaderError("The file holds no weights, only a vocabulary.")


def check_places(tensors: Sequence[TensorInfo], alignment: int, data_bytes: int) -> None:
    """Refuse tensors outside the file, upon another or off their place; llama.cpp wants them without gaps."""
    expected = 0
    for tensor in tensors:
        if tensor.offset + tensor.size_bytes > data_bytes:
            raise HeaderError(
                f"The tensor {shown(tensor.name)} reaches beyond the end of the file, which is cut short or damaged."
            )
        if tensor.offset % alignment:
            raise HeaderError(f"The tensor {shown(tensor.name)} does not begin at a multiple of {alignment:,} bytes.")
        if tensor.offset < expected:
            raise HeaderError(f"The tensor {shown(tensor.name)} lies upon the one before it.")
        if tensor.offset > expected:
            raise HeaderError(f"There is a gap in front of the tensor {shown(tensor.name)}.")
        expected = -(-(tensor.offset + tensor.size_bytes) // alignment) * alignment


def describe_stranger(head: bytes) -> str:
    """Say what a file is that is no GGUF, where its first bytes tell."""
    if head[:4] in (b"lmgg", b"tjgg", b"fmgg", b"algg"):
        return "This is a model in the format before GGUF, which no current engine reads; get a newer file."
    if head[:4] == b"PK\3\4":
        return "This is a ZIP archive or a PyTorch file, not a GGUF model file."
    if head == b"version ":
        return "This is a Git LFS pointer, a note in place of the model file; download the file itself."
    if head[:1] == b"<":
        return "This is a web page, not a model file; the download went wrong."
    if not head.strip(b"\0"):
        return "The file begins with zeros only, as an unfinished download does."
    return "This is not a GGUF model file: its first bytes are not those of one."


def shown(name: str) -> str:
    """Return a name out of the file as it may stand in a sentence."""
    return ascii(name if len(name) <= 80 else name[:79] + "…")
