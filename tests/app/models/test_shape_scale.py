"""A shape scaled to another quantization's size."""

from __future__ import annotations

from app.models.fit import fit
from app.models.fit_types import Device, FitQuestion, Machine
from app.models.gguf_header import read_header
from app.models.shape import LayerShape, ModelShape
from app.models.shape_gguf import shape_of_gguf
from app.models.shape_scale import scaled_shape
from tests.helpers import shape_files

GIB = 2**30


def test_weights_are_scaled_and_the_cache_is_not(tmp_path):
    shape = shape_of_gguf(read_header(shape_files.write_shape("llama-3.1-8b", tmp_path)))
    half = scaled_shape(shape, shape.weights_bytes // 2)
    assert half.weights_bytes == shape.weights_bytes // 2
    assert half.copied_bytes == 0
    assert [(layer.kv_heads, layer.key_length) for layer in half.layers] == [(8, 128)] * 32
    machine = Machine((Device("CPU", "This computer", 64 * GIB, 64 * GIB),))
    before, after = fit(shape, FitQuestion(), machine).estimate, fit(half, FitQuestion(), machine).estimate
    assert after.kv_bytes == before.kv_bytes
    assert after.weights_bytes == shape.weights_bytes // 2
    parts = half.input_bytes + half.output_bytes + half.other_bytes + sum(one.weights_bytes for one in half.layers)
    assert abs(parts - half.weights_bytes) <= len(half.layers) + 3


def test_nothing_is_scaled_by_nothing():
    empty = ModelShape(architecture="llama", layers=(LayerShape(8, 128, 128),))
    assert scaled_shape(empty, 100) is empty
    known = ModelShape(architecture="llama", weights_bytes=100)
    assert scaled_shape(known, 0) is known
