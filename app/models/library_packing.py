"""A found model as the library keeps it: small, quick to read by the ten thousand, and whatever its path is made of.

The layers of a model are mostly alike, so each kind is kept once. Knows no database.
"""

from __future__ import annotations

import os

import msgspec

from app.models.entry import FoundModel
from app.models.scan_messages import FoundOnDisk, from_disk, to_disk
from app.models.shape import LayerShape

_MAX_KINDS = 256  # one byte names a kind


class _Record(msgspec.Struct, frozen=True, array_like=True):
    """What is kept.

    Attributes:
        model: without its layers, and without its paths where those are no text.
        kinds: the different layers of its shape.
        order: which kind each layer is.
        raw: path, parts and projector as the system's own bytes, where those are no text.
    """

    model: FoundModel
    kinds: tuple[LayerShape, ...] = ()
    order: bytes = b""
    raw: tuple[bytes, tuple[bytes, ...], bytes] | None = None


_decoder = msgspec.msgpack.Decoder(_Record)
_encoder = msgspec.msgpack.Encoder()


def pack(found: FoundModel) -> bytes:
    """Return a found model as it is kept."""
    raw = None
    if not _is_text((found.path, *found.parts, found.projector_path)):
        bare = to_disk(found)
        found, raw = bare.model, (bare.path, bare.parts, bare.projector_path)
    if found.shape is None:
        return _encoder.encode(_Record(found, raw=raw))
    layers = found.shape.layers
    kinds = {layer: number for number, layer in enumerate(dict.fromkeys(layers))}
    if len(kinds) > _MAX_KINDS:
        return _encoder.encode(_Record(found, raw=raw))
    bare_shape = msgspec.structs.replace(found.shape, layers=())
    record = _Record(
        msgspec.structs.replace(found, shape=bare_shape),
        tuple(kinds),
        bytes(kinds[layer] for layer in layers),
        raw,
    )
    return _encoder.encode(record)


def unpack(data: bytes) -> FoundModel:
    """Return a found model as it was; raises msgspec.DecodeError or UnicodeDecodeError for what cannot be one."""
    record = _decoder.decode(data)
    found = record.model
    if record.order and found.shape is not None:
        try:
            layers = tuple(map(record.kinds.__getitem__, record.order))
        except IndexError as error:
            raise msgspec.DecodeError("a layer of no kind") from error
        msgspec.structs.force_setattr(found.shape, "layers", layers)  # nobody else has it yet
    if record.raw is not None:
        return from_disk(FoundOnDisk(*record.raw, found))
    return found


def _is_text(paths: tuple[str, ...]) -> bool:
    try:
        os.fsencode("".join(paths)).decode()
    except UnicodeError:
        return False
    return True
