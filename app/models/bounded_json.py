"""JSON that may be hostile: bounded in bytes, in values and in depth before and after it is decoded.

Knows no model format. The number of values is counted on the bytes: each one follows a bracket, a colon or a comma, so
the memory of the decoded text is known before any of it is taken.
"""

from __future__ import annotations

import json
from typing import TypeVar

import msgspec

from app.models.byte_source import ByteSource, HeaderError

Decoded = TypeVar("Decoded")

MAX_DEPTH = 32
_MAX_SHOWN = 120


def check_values(data: bytes, name: str, max_values: int) -> None:
    """Refuse a text with more values than this; what stands inside its strings counts too, so be generous.

    Args:
        data: the text.
        name: of the file, for the sentence.
        max_values: how many values, keys not counted.

    Raises:
        HeaderError: there may be more.
    """
    values = data.count(b",") + data.count(b"[") + data.count(b"{") + 1
    if values > max_values:
        raise HeaderError(f"{name} holds {values:,} values; at most {max_values:,} are allowed.")


def decode_typed(data: bytes, name: str, decoder: msgspec.json.Decoder[Decoded]) -> Decoded:
    """Return the text in the decoder's type; the caller has counted its values.

    Raises:
        HeaderError: it is no JSON, or of another form.
    """
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError) as error:
        raise HeaderError(f"{name} is not as the format wants it: {_short(error)}.") from error
    except RecursionError as error:
        raise HeaderError(f"{name} is nested too deeply.") from error


def decode_object(data: bytes, name: str, max_values: int) -> dict[str, object]:
    """Return a text that is one object of anything, such as a config.json.

    Infinity and NaN, which Python writes into such files although JSON has none, become None.

    Raises:
        HeaderError: it is no JSON object, too large, or nested more than MAX_DEPTH deep.
    """
    check_values(data, name, max_values)
    try:
        found = json.loads(data, parse_constant=lambda _constant: None)
    except RecursionError as error:
        raise HeaderError(f"{name} is nested too deeply.") from error
    except ValueError as error:  # no JSON, no UTF-8, or a number of thousands of digits
        raise HeaderError(f"{name} is no valid JSON: {_short(error)}.") from error
    if not isinstance(found, dict):
        raise HeaderError(f"{name} is no JSON object.")
    _check_depth(found, name)
    return found


def read_whole(source: ByteSource, name: str, max_bytes: int) -> bytes:
    """Return all bytes of a small file.

    Raises:
        HeaderError: it is larger than this, or became shorter.
    """
    size = source.size_bytes
    if size > max_bytes:
        raise HeaderError(f"{name} takes {size:,} bytes; at most {max_bytes:,} are allowed.")
    data = source.read(0, size)
    while len(data) < size:
        more = source.read(len(data), size - len(data))
        if not more:
            raise HeaderError(f"{name} became shorter while it was read.")
        data += more
    return data


def _check_depth(found: dict[str, object], name: str) -> None:
    layer: list[object] = [found]
    for _depth in range(MAX_DEPTH):
        layer = [
            inner
            for one in layer
            for inner in (one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
            if isinstance(inner, dict | list)
        ]
        if not layer:
            return
    raise HeaderError(f"{name} is nested more than {MAX_DEPTH} deep.")


def _short(error: Exception) -> str:
    """Return a library's reason on one line; it may quote the file."""
    text = ascii(str(error))[1:-1].rstrip(".")
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"
