"""The question whether a model fits, and its answer: plain values shared by the fit, its words and every screen."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from app.models.shape import ModelShape
from backends.protocol import LoadParams, MemorySplit

# Where a figure comes from: computed from the header, told by the engine's allocator without loading, or measured
# in an earlier load on this machine.
Source = Literal["header", "probe", "measured"]


class Verdict(enum.Enum):
    """Whether a model can be used."""

    FITS = "fits"
    TIGHT = "tight"  # it fits, with less to spare than the machine needs for itself
    PARTIAL = "partial"  # it fits when some layers stay on the CPU
    TOO_LARGE = "too_large"  # it needs more than is free
    UNKNOWN = "unknown"  # nobody can tell; loading is allowed after one confirmation


@dataclass(frozen=True, slots=True)
class Device:
    """A place with memory of its own.

    Attributes:
        name: as the engine calls it: "CPU", "CUDA0".
        title: for people, such as "RTX 4060" or "This computer".
        total_bytes: of the device.
        free_bytes: what a program can still take now.
        read_bytes_per_s: measured read bandwidth; 0 when it was not measured.
    """

    name: str
    title: str
    total_bytes: int
    free_bytes: int
    read_bytes_per_s: float = 0.0

    @property
    def is_cpu(self) -> bool:
        """Whether this is the computer's own memory."""
        return self.name == "CPU"


@dataclass(frozen=True, slots=True)
class Machine:
    """What there is to fit into, now.

    Attributes:
        devices: the CPU first, then each GPU that a backend here can use.
        floor_bytes: what a worker takes before any model, by backend name; measured here, else a known value.
        reserve_bytes: what is left to everything else on the computer.
    """

    devices: tuple[Device, ...]
    floor_bytes: Mapping[str, int] = field(default_factory=dict)
    reserve_bytes: int = 512 * 2**20

    @property
    def cpu(self) -> Device:
        """The computer's own memory."""
        return self.devices[0]


@dataclass(frozen=True, slots=True)
class FitQuestion:
    """How a model is to be loaded.

    Attributes:
        backend: a name of the registry.
        params: as the engine will get them; context_tokens 0 means the engine's own choice.
        draft: the shape of a draft model; None for none.
        projector_bytes: weights of a vision projector; 0 for none.
        is_mapped: whether the weights are read from the file in place, as llama.cpp does.
    """

    backend: str = "llama_cpp"
    params: LoadParams = field(default_factory=LoadParams)
    draft: ModelShape | None = None
    projector_bytes: int = 0
    is_mapped: bool = True


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Predicted memory by owner, in bytes.

    Attributes:
        source: where KV, compute and output come from; weights always come from the header.
        floor_bytes: the worker itself, before any model.
        by_device: the total by device name.
        copied_bytes: of weights_bytes, pages of the file that a rearranged copy stands in for. They are resident as
            long as there is room, and given back by the system when there is none.
        tables_bytes: what the worker keeps beside the buffers: the vocabulary, the graph, a note for every cell.
    """

    weights_bytes: int
    kv_bytes: int
    compute_bytes: int
    output_bytes: int
    draft_bytes: int
    projector_bytes: int
    floor_bytes: int
    source: Source
    by_device: Mapping[str, int] = field(default_factory=dict)
    copied_bytes: int = 0
    tables_bytes: int = 0

    @property
    def needed_bytes(self) -> int:
        """What must be there for it to work: everything but the pages that the system may take back."""
        return self.total_bytes - self.copied_bytes

    @property
    def total_bytes(self) -> int:
        """Everything together."""
        return (
            self.weights_bytes
            + self.kv_bytes
            + self.compute_bytes
            + self.output_bytes
            + self.draft_bytes
            + self.projector_bytes
            + self.floor_bytes
            + self.tables_bytes
        )


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether, and how well, a model fits.

    Attributes:
        verdict: the answer.
        estimate: None when nobody can tell.
        context_tokens: the context the estimate is for.
        max_context_tokens: the largest context that fits, by KV type: 0 when not even the smallest does, None when
            nobody can tell. At most what the model was trained for, where that is known.
        gpu_layers: how many layers a GPU takes; 0 without one.
        layers_count: how many layers there are.
        decode_tokens_per_s: predicted from measured bandwidth, or measured; None when neither is known.
        is_speed_measured: whether the speed was measured here with this model.
        free_bytes: what is free on the device that decides.
        device: that device.
        reason: for UNKNOWN: why, in words; "" otherwise.
    """

    verdict: Verdict
    estimate: MemoryEstimate | None
    context_tokens: int
    max_context_tokens: Mapping[str, int | None]
    gpu_layers: int = 0
    layers_count: int = 0
    decode_tokens_per_s: float | None = None
    is_speed_measured: bool = False
    free_bytes: int = 0
    device: Device | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Measured:
    """What an earlier load on this machine took.

    Attributes:
        context_tokens: really created.
        kv_type: as loaded. Likewise backend, device, micro_batch_tokens, kv_mode and max_sequences.
        split: the engine's own buffers.
        process_bytes: the worker's memory with everything touched (anonymous, file and swap); 0 when not read.
        floor_bytes: the same before the model; 0 when not read.
        decode_tokens_per_s: of the longest answer since; 0 when there was none.
    """

    backend: str
    device: str
    context_tokens: int
    kv_type: str
    micro_batch_tokens: int
    kv_mode: str
    max_sequences: int
    split: MemorySplit
    process_bytes: int = 0
    floor_bytes: int = 0
    decode_tokens_per_s: float = 0.0
