"""What a model remembers of the tokens it has read: K and V by cell, and recurrent state by sequence.

Exact: llama.cpp sets these buffers aside as they are computed here. Knows no weights and no machine.
Reference: llama-kv-cache.cpp, llama-kv-cache-iswa.cpp and llama-memory-recurrent.cpp of llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from app.models.fit_context import ContextPlan
from app.models.ggml_types import GGML_TYPES, GgmlType
from app.models.shape import LayerShape

# How K and V can be stored: backends/llama_cpp_engine/loading.py offers the same.
_KV_NUMBERS = {"f32": 0, "f16": 1, "bf16": 30, "q8_0": 8, "q5_1": 7, "q5_0": 6, "q4_1": 3, "q4_0": 2}
KV_TYPES: Mapping[str, GgmlType] = MappingProxyType({name: GGML_TYPES[number] for name, number in _KV_NUMBERS.items()})
STATE_ELEMENT_BYTES = 4  # F32, whatever the KV type


@dataclass(frozen=True, slots=True)
class CacheShape:
    """The caches of some layers together.

    Attributes:
        elements: K and V of one cell in all layers, by the layers' window; 0 stands for the whole context.
        state_elements: of one sequence in all layers.
        head_lengths: every length of a head of K or V that occurs.
    """

    elements: Mapping[int, int]
    state_elements: int
    head_lengths: frozenset[int]

    def kv_bytes(self, kv_type: GgmlType, plan: ContextPlan) -> int:
        """Return what the caches take, recurrent state included."""
        in_all_cells = sum(
            count * (plan.window_cells(window) if window else plan.cells) for window, count in self.elements.items()
        )
        stored = in_all_cells * plan.streams * kv_type.block_bytes // kv_type.block_elements
        return stored + self.state_bytes * plan.sequences

    def read_bytes(self, kv_type: GgmlType, tokens: int) -> int:
        """Return what is read of the caches to write one token after so many others."""
        seen = sum(count * (min(window, tokens) if window else tokens) for window, count in self.elements.items())
        return seen * kv_type.block_bytes // kv_type.block_elements + self.state_bytes

    def can_store(self, kv_type: GgmlType) -> bool:
        """Say whether a head is a whole number of this type's blocks; llama.cpp refuses it otherwise."""
        return all(length % kv_type.block_elements == 0 for length in self.head_lengths)

    @property
    def state_bytes(self) -> int:
        """What the recurrent state of one sequence takes."""
        return self.state_elements * STATE_ELEMENT_BYTES


def cache_of(layers: Iterable[LayerShape]) -> CacheShape:
    """Return what these layers keep; numbers below zero count as none."""
    elements: dict[int, int] = {}
    lengths: set[int] = set()
    state = 0
    for layer in layers:
        of_one_head = max(0, layer.key_length) + max(0, layer.value_length)
        heads, window = max(0, layer.kv_heads), max(0, layer.window_tokens)
        if heads and of_one_head:
            elements[window] = elements.get(window, 0) + heads * of_one_head
            lengths.update((layer.key_length, layer.value_length))
        state += max(0, layer.state_elements)
    return CacheShape(MappingProxyType(elements), state, frozenset(lengths))
