"""A shape survives the pipe and the library, however little it says."""

from __future__ import annotations

import msgspec

from app.models.shape import LayerShape, ModelShape
from tests.helpers.fit_models import llama_8b


def test_a_shape_comes_back_as_it_went():
    shape = llama_8b(layers=(LayerShape(8, 128, 128, 4096, 5, 6, 7), LayerShape()))
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(shape), type=ModelShape) == shape
    assert msgspec.json.decode(msgspec.json.encode(shape), type=ModelShape) == shape


def test_what_is_not_known_takes_no_room():
    assert msgspec.json.encode(ModelShape(architecture="x")) == b'{"architecture":"x"}'


def test_an_older_shape_is_read_with_nothing_copied():
    assert msgspec.json.decode(b'{"architecture":"x","weights_bytes":5}', type=ModelShape).copied_bytes == 0
