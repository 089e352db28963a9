"""Where a model's memory lies: all on the computer, or as many layers as go on a card and the rest beside it.

llama.cpp puts the output on a card first and then layers from the last one down, each with its K and V; both sides
need scratch memory. Our torch backend puts all on one device. Knows no verdict and no words.
Reference: llama_model_base::load_tensors() of the llama.cpp in llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from dataclasses import dataclass

from app.models.fit_cache import KV_TYPES, cache_of
from app.models.fit_context import ContextPlan
from app.models.fit_memory import Owners, bounded
from app.models.fit_speed import SPEED_AT_TOKENS, weights_read
from app.models.fit_torch import KV_ELEMENT_BYTES
from app.models.fit_types import Device, FitQuestion, Machine
from app.models.shape import LayerShape, ModelShape

GPU_CONTEXT_BYTES = 500 * 10**6  # what CUDA takes on a card for a process, 300 to 600 MB


@dataclass(frozen=True, slots=True)
class Place:
    """A model's memory by device, in bytes, without the worker itself.

    Attributes:
        cpu_bytes: on the computer.
        gpu: the card that takes part; None for none.
        gpu_bytes: on it.
        gpu_layers: how many layers lie there.
    """

    cpu_bytes: int
    gpu: Device | None = None
    gpu_bytes: int = 0
    gpu_layers: int = 0


@dataclass(frozen=True, slots=True)
class CachePlan:
    """A context and how its K and V are stored."""

    context: ContextPlan
    kv_type: str


def gpu_of(question: FitQuestion, machine: Machine) -> Device | None:
    """Return the card that is asked for; None where all stays on the computer.

    A card takes part when it is named or layers are asked onto one: for llama.cpp that is what a load with these
    params does. Torch takes the first card unless told otherwise.
    """
    cards = [device for device in machine.devices if not device.is_cpu]
    params = question.params
    named = next((device for device in cards if device.name == params.device), None)
    if named is not None or params.device == "CPU" or not cards:
        return named
    return cards[0] if question.backend == "torch" or params.gpu_layers != 0 else None


def place(shape: ModelShape, question: FitQuestion, owners: Owners, gpu: Device | None, plan: CachePlan) -> Place:
    """Return where everything lies, with as many layers on the card as fit there and are asked for.

    Args:
        shape: of the model.
        question: how it is to be loaded.
        owners: what it takes in all.
        gpu: the card that takes part; None for none.
        plan: the context that the owners are for, and how K and V are stored.
    """
    if gpu is None:
        return Place(owners.needed_bytes)
    if question.backend == "torch":
        return Place(0, gpu, bounded(owners.needed_bytes + GPU_CONTEXT_BYTES), len(shape.layers))
    return _split(shape, question, owners, gpu, plan)


def read_parts(
    shape: ModelShape, question: FitQuestion, where: Place, machine: Machine, context_tokens: int
) -> list[tuple[int, float]]:
    """Return what each device reads for one token, in bytes, and how fast it does, in bytes/s."""
    on_gpu = _on_gpu(shape, where.gpu_layers)
    total = bounded(weights_read(shape) + _kv_read(shape.layers, question, context_tokens))
    if where.gpu is None:
        return [(total, machine.cpu.read_bytes_per_s)]
    if where.gpu_layers >= len(shape.layers):
        return [(total, where.gpu.read_bytes_per_s)]
    layers_read = sum(max(0, layer.read_bytes) for layer in on_gpu) + _kv_read(on_gpu, question, context_tokens)
    there = min(total, layers_read + max(0, shape.output_bytes or shape.input_bytes))
    return [(there, where.gpu.read_bytes_per_s), (total - there, machine.cpu.read_bytes_per_s)]


def _split(shape: ModelShape, question: FitQuestion, owners: Owners, gpu: Device, plan: CachePlan) -> Place:
    count, asked = len(shape.layers), question.params.gpu_layers
    limit = min(count, asked) if asked > 0 else count
    # A tied embedding is looked up on the computer and multiplied by on the card: it lies on both.
    output = max(0, shape.output_bytes or shape.input_bytes)
    used = bounded(output + owners.compute_bytes + GPU_CONTEXT_BYTES)
    taken = moved = 0
    for layer, kv in zip(reversed(shape.layers), reversed(_kv_shares(shape, plan)), strict=True):
        layer_bytes = max(0, layer.weights_bytes) + kv
        if taken == limit or used + layer_bytes > gpu.free_bytes:
            break
        used, moved, taken = used + layer_bytes, moved + layer_bytes, taken + 1
    if not taken:
        return Place(owners.needed_bytes)
    stays = owners.needed_bytes - moved - max(0, shape.output_bytes)
    if taken == count:  # only the input is made there: an embedding for each token
        stays += 4 * plan.context.micro_batch_tokens * max(0, shape.embedding_length) - owners.compute_bytes
    return Place(bounded(stays), gpu, bounded(used), taken)


def _kv_shares(shape: ModelShape, plan: CachePlan) -> list[int]:
    """Return what each layer keeps, in bytes; a model has few kinds of layers."""
    known: dict[tuple[int, ...], int] = {}
    shares = []
    for layer in shape.layers:
        kind = (layer.kv_heads, layer.key_length, layer.value_length, layer.window_tokens, layer.state_elements)
        if kind not in known:
            known[kind] = bounded(cache_of([layer]).kv_bytes(KV_TYPES[plan.kv_type], plan.context))
        shares.append(known[kind])
    return shares


def _on_gpu(shape: ModelShape, count: int) -> tuple[LayerShape, ...]:
    return shape.layers[len(shape.layers) - min(count, len(shape.layers)) :]


def _kv_read(layers: tuple[LayerShape, ...], question: FitQuestion, context_tokens: int) -> int:
    """Return what a token reads of the cache when a chat is some way in."""
    tokens = max(0, min(SPEED_AT_TOKENS, context_tokens))
    cache = cache_of(layers)
    kv_type = question.params.kv_type
    if kv_type in KV_TYPES and question.backend != "torch":
        return cache.read_bytes(KV_TYPES[kv_type], tokens)
    seen = cache.read_bytes(KV_TYPES["f16"], tokens) - cache.state_bytes
    return int(seen * KV_ELEMENT_BYTES.get(kv_type, KV_ELEMENT_BYTES["f16"]) / 2) + cache.state_bytes
