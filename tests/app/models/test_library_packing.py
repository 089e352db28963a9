"""Found models as they are kept."""

from __future__ import annotations

import msgspec
import pytest

from app.models.entry import FoundModel
from app.models.library_packing import pack, unpack
from app.models.shape import LayerShape, ModelShape
from tests.helpers.libraries import found_model


def shape(*layers):
    return ModelShape(architecture="llama", layers=layers)


@pytest.mark.parametrize(
    "found",
    [
        FoundModel(path="/a.gguf"),
        found_model(),
        found_model(shape=None, fault="It is broken."),
        found_model(path="/caf\udce9.gguf", parts=("/caf\udce9.gguf", "/b"), projector_path="/\udcff"),
        found_model(path="/ü🦭.gguf"),
        found_model(shape=shape()),
        found_model(shape=shape(*(LayerShape(kv_heads=number % 3) for number in range(512)))),
        found_model(shape=shape(*(LayerShape(kv_heads=number) for number in range(512)))),
    ],
)
def test_what_is_kept_comes_back_as_it_was(found):
    assert unpack(pack(found)) == found


def test_alike_layers_are_kept_once():
    layer = LayerShape(8, 128, 128, 0, 0, 12_345_678, 12_345_678)
    one, many = (len(pack(found_model(shape=shape(*[layer] * count)))) for count in (1, 80))
    assert many - one == 79  # a byte a layer


def test_what_is_kept_of_one_model_does_not_change_another():
    data = pack(found_model())
    assert unpack(data).shape.layers == unpack(data).shape.layers == found_model().shape.layers


@pytest.mark.parametrize("cut", [0, 1, 10, -1])
def test_damage_is_an_error_and_nothing_worse(cut):
    with pytest.raises(msgspec.DecodeError):
        unpack(pack(found_model())[:cut])


def test_a_layer_of_no_kind_is_damage():
    data = pack(found_model())
    with pytest.raises(msgspec.DecodeError):
        unpack(data.replace(bytes(32), b"\x09" * 32))
