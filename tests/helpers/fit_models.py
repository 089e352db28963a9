"""Headers and shapes of well-known models in a few lines, for tests of the fit."""

from __future__ import annotations

from collections.abc import Sequence

from app.models.fit_types import Device, FitQuestion, Machine
from app.models.gguf_header import GgufHeader, TensorInfo
from app.models.shape import LayerShape, ModelShape
from backends.protocol import LoadParams

MIB, GIB = 2**20, 2**30
Dims = Sequence[int]

LLAMA_8B = {
    "block_count": 32,
    "context_length": 131_072,
    "embedding_length": 4096,
    "feed_forward_length": 14_336,
    "attention.head_count": 32,
    "attention.head_count_kv": 8,
}
GEMMA3_270M = {
    "block_count": 18,
    "context_length": 32_768,
    "embedding_length": 640,
    "feed_forward_length": 2048,
    "attention.head_count": 4,
    "attention.head_count_kv": 1,
    "attention.key_length": 256,
    "attention.value_length": 256,
    "attention.sliding_window": 512,
}
DEEPSEEK_V2_LITE = {
    "block_count": 27,
    "context_length": 163_840,
    "embedding_length": 2048,
    "attention.head_count": 16,
    "attention.head_count_kv": 1,
    "attention.kv_lora_rank": 512,
    "attention.key_length": 576,
    "attention.value_length": 512,
    "attention.key_length_mla": 192,
    "attention.value_length_mla": 128,
}


def gguf_header(architecture: str, values: dict[str, object], tensors: Sequence[TensorInfo] = ()) -> GgufHeader:
    """Return a header with these keys of its architecture."""
    metadata: dict[str, object] = {"general.architecture": architecture}
    metadata |= {f"{architecture}.{key}": value for key, value in values.items()}
    return GgufHeader(version=3, alignment=32, metadata=metadata, tensors=tuple(tensors), data_offset=0, file_bytes=0)


def tensor(name: str, dims: Dims, type_name: str = "F16", size_bytes: int = 0) -> TensorInfo:
    """Return what a header says of a tensor."""
    return TensorInfo(name, tuple(dims), type_name, 0, size_bytes)


def llama_8b(**changes: object) -> ModelShape:
    """Return Llama 3.1 8B in Q4_K_M, as its header tells it."""
    layer = LayerShape(8, 128, 128, weights_bytes=136 * MIB, read_bytes=136 * MIB)
    shape = ModelShape(
        architecture="llama",
        context_tokens=131_072,
        embedding_length=4096,
        feed_forward_length=14_336,
        head_count=32,
        vocabulary_tokens=128_256,
        parameters_count=8_030_261_312,
        weights_bytes=32 * 136 * MIB + 282 * MIB + 411 * MIB,
        input_bytes=282 * MIB,
        output_bytes=411 * MIB,
        read_bytes=32 * 136 * MIB + 411 * MIB,
        layers=(layer,) * 32,
    )
    return _changed(shape, changes)


def _changed(shape: ModelShape, changes: dict[str, object]) -> ModelShape:
    values = {name: getattr(shape, name) for name in shape.__struct_fields__} | changes
    return ModelShape(**values)


def computer(free_gib: float, *cards: Device, bandwidth: float = 20e9, total_gib: float = 32) -> Machine:
    """Return a machine with so much free memory; it leaves half a GiB to others."""
    cpu = Device("CPU", "This computer", int(total_gib * GIB), int(free_gib * GIB), bandwidth)
    return Machine((cpu, *cards), {"llama_cpp": 48 * MIB})


def card(free_gib: float, bandwidth: float = 256e9) -> Device:
    """Return a card of 8 GiB."""
    return Device("CUDA0", "RTX 4060", 8 * GIB, int(free_gib * GIB), bandwidth)


def question(backend: str = "llama_cpp", **params: object) -> FitQuestion:
    """Return how a model is to be loaded."""
    return FitQuestion(backend=backend, params=LoadParams(**params))


def with_window(shape: ModelShape, window_tokens: int, every: int) -> ModelShape:
    """Return the shape with a window in all layers but each so-manieth."""
    layers = [
        layer if (index + 1) % every == 0 else LayerShape(*_with(layer, window_tokens))
        for index, layer in enumerate(shape.layers)
    ]
    return _changed(shape, {"layers": tuple(layers)})


def _with(layer: LayerShape, window_tokens: int) -> tuple[int, ...]:
    return (
        layer.kv_heads,
        layer.key_length,
        layer.value_length,
        window_tokens,
        layer.state_elements,
        layer.weights_bytes,
        layer.read_bytes,
    )
