"""What bytes each token of a vocabulary adds to a text.

Two spellings are known. Byte-level vocabularies write each byte as a printable character; sentencepiece ones write a
space as a low bar and a byte that is no character as <0xAB>. Joined, the bytes are the text, cut wherever a token
ends: in the middle of a character too, which backends/detokenizer.py puts together.
References: bytes_to_unicode() of GPT-2's encoder.py; ByteFallback of https://huggingface.co/docs/tokenizers.
"""

from __future__ import annotations

import enum
import functools
import re
from collections.abc import Iterator, Mapping

_SPACE = "▁"
_BYTE = re.compile(r"<0x([0-9A-Fa-f]{2})>")


class Spelling(enum.Enum):
    """How a vocabulary writes bytes. The values are llama.cpp's numbers for the two (llama_vocab_type)."""

    SENTENCEPIECE = 1
    BYTE_LEVEL = 2


@functools.lru_cache(maxsize=1)
def byte_of_character() -> Mapping[str, int]:
    """Return which byte each character of a byte-level vocabulary stands for.

    Printable characters of Latin-1 stand for themselves; the other 68 bytes are numbered from U+0100 on.
    """
    plain = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + place): byte for place, byte in enumerate(others)}


def token_bytes(name: str, spelling: Spelling) -> bytes:
    """Return the bytes of a token of the model's vocabulary; added tokens stand for their own text instead."""
    if spelling is Spelling.BYTE_LEVEL:
        known = byte_of_character()
        return b"".join(bytes([known[one]]) if one in known else one.encode(errors="replace") for one in name)
    if byte := _BYTE.fullmatch(name):
        return bytes([int(byte[1], 16)])
    return name.replace(_SPACE, " ").encode(errors="replace")


def spelling_of(decoder: object) -> Spelling | None:
    """Return how a vocabulary is written, told by its decoder in tokenizer.json; None for any other way."""
    kinds = set(_kinds(decoder))
    if "ByteLevel" in kinds:
        return Spelling.BYTE_LEVEL if kinds <= {"Sequence", "ByteLevel", "Fuse"} else None
    if kinds & {"Metaspace", "ByteFallback", "Replace"}:
        known = {"Sequence", "Metaspace", "ByteFallback", "Replace", "Fuse", "Strip"}
        return Spelling.SENTENCEPIECE if kinds <= known else None
    return None


def _kinds(decoder: object) -> Iterator[str]:
    if not isinstance(decoder, Mapping):
        return
    kind = decoder.get("type")
    if isinstance(kind, str):
        yield kind
    parts = decoder.get("decoders")
    for part in parts if isinstance(parts, list) else ():
        yield from _kinds(part)
