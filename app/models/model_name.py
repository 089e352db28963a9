"""What a model is called, from its header and its file's name.

Both are untrusted: a name comes out as one short word without invisible or directing characters. Knows no library.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from app.models.ggml_types import FILE_TYPES, GGML_TYPES
from app.models.gguf_header import GgufHeader

_MAX_CHARACTERS = 80
_NAMELESS = "model"
# The longest first: Q3_K_M must not be taken for a name that ends in Q3_K.
_LABELS = sorted({*FILE_TYPES.values(), *(kind.name for kind in GGML_TYPES.values())}, key=len, reverse=True)
_PART_NUMBER = re.compile(r"-\d{5}-of-\d{5}$")
_OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def model_name(header: GgufHeader, path: Path) -> str:
    """Return the model's name: the file's where it agrees with the header, else the header's."""
    from_file = file_name(path)
    basename, size_label = header.text("general.basename"), header.text("general.size_label")
    composed = _tidy(f"{basename}-{size_label}") if basename and size_label else ""
    if composed and from_file.casefold().startswith(composed.casefold()):
        return from_file  # the same words, in the spelling people know
    return _tidy(header.name) or composed or from_file


def file_name(path: Path) -> str:
    """Return the name in a file's name: without its ending, its quantization and the number of its part."""
    stem = _PART_NUMBER.sub("", os.fsencode(path.stem).decode(errors="replace"))
    for label in _LABELS:
        head, tail = stem[: -len(label)], stem[-len(label) :]
        if tail.casefold() == label.casefold() and head[-1:] in (".", "-", "_", " ") and head[:-1]:
            return _tidy(head[:-1]) or _NAMELESS
    return _tidy(stem) or _NAMELESS


def model_owner(header: GgufHeader) -> str:
    """Return who made the model, when that is one plain word; else ""."""
    owner = header.text("general.organization")
    return owner if _OWNER.fullmatch(owner) else ""


def plain_name(text: str) -> str:
    """Return a name that a folder or another program gives, as one short word; "" when nothing is left of it."""
    return _tidy(os.fsencode(text).decode(errors="replace"))


def plain_owner(text: str) -> str:
    """Return an owner that a folder or another program names, when that is one plain word; else ""."""
    return text if _OWNER.fullmatch(text) else ""


def without_format(name: str) -> str:
    """Return the name of a publication without the word for its file format at the end."""
    for ending in ("-gguf", "_gguf", ".gguf"):
        if name.lower().endswith(ending) and len(name) > len(ending):
            return name[: -len(ending)]
    return name


def _tidy(name: str) -> str:
    visible = "".join(character for character in name if character.isprintable() or character.isspace())
    return re.sub(r"[\s/\\:]+", "-", visible.strip())[:_MAX_CHARACTERS].strip("-")
