"""Whether a model fits, how much context there is room for, and how fast it would write: one answer for every screen.

A pure function of the model's shape, the load params, the machine as it is now, and of what the engine's allocator
(a probe) or earlier loads said. It never fails: where nobody can tell, the answer is UNKNOWN with the reason, which
one confirmation overrules, and no number is ever NaN.

Weights that are mapped from the file count in full: pages that are not resident are read from the disk for every token,
and a model that does not fit into memory is thirty times slower than one that does. Only pages that a rearranged copy
stands in for may be given back (MemoryEstimate.copied_bytes).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.i18n import _
from app.models.fit_cache import KV_TYPES
from app.models.fit_context import CELLS_STEP, largest_context, plan_context, wanted_context
from app.models.fit_memory import Sizes, bounded, context_of
from app.models.fit_place import CachePlan, Place, gpu_of, place, read_parts
from app.models.fit_records import from_history, from_probe, near_history, nearest_record
from app.models.fit_speed import measured_speed, predicted_speed
from app.models.fit_torch import as_loaded
from app.models.fit_types import Device, Fit, FitQuestion, Machine, Measured, MemoryEstimate, Verdict
from app.models.shape import ModelShape
from backends.protocol import MemorySplit
from backends.registry import BACKENDS

SHOWN_KV_TYPES = ("f16", "q8_0", "q4_0")
KNOWN_FLOOR_BYTES = 48 * 2**20  # a worker before any model, where the machine does not say


def fit(
    shape: ModelShape | None,
    question: FitQuestion,
    machine: Machine,
    probe: MemorySplit | None = None,
    history: Sequence[Measured] = (),
) -> Fit:
    """Return whether a model fits when it is loaded like this.

    Args:
        shape: of the model; None when its header cannot be read.
        question: how it is to be loaded.
        machine: what there is to fit into, now.
        probe: what the engine's allocator said of exactly these params; None when it was not asked.
        history: what earlier loads of this model here took, newest first.
    """
    shape = as_loaded(shape, question) if shape is not None else None
    device = gpu_of(question, machine) or machine.cpu
    records = [record for record in history if record.device == device.name]
    if shape is None or shape.unknown or (question.draft is not None and question.draft.unknown):
        estimate = _told(None, question, machine, probe, records, context_of(shape, question.params))
        if estimate is None:
            return _unknown(shape, question, machine, _unknown_reason(shape, question), {})
        return _from_estimate(shape, question, machine, estimate, records)
    sizes = Sizes(shape, question)
    if fault := _kv_type_fault(question, sizes):
        rooms = _Rooms(shape, sizes, question, machine, 0).by_type()
        return _unknown(shape, question, machine, fault, rooms)
    return _known(shape, sizes, question, machine, (probe, records))


def _known(
    shape: ModelShape,
    sizes: Sizes,
    question: FitQuestion,
    machine: Machine,
    told: tuple[MemorySplit | None, Sequence[Measured]],
) -> Fit:
    """Return the answer for a model whose memory can be computed; `told` is what an engine said of it."""
    kv_type, (probe, records) = question.params.kv_type, told
    context_tokens = context_of(shape, question.params)
    asked = wanted_context(question.params, shape.context_tokens)
    floor_bytes = machine.floor_bytes.get(question.backend, KNOWN_FLOOR_BYTES)
    header = sizes.owners(kv_type, asked).estimate(floor_bytes)
    estimate = _told(header, question, machine, probe, records, context_tokens)
    if estimate is None and (near := nearest_record(question, records, context_tokens)) is not None:
        streams = plan_context(question.params, asked).streams
        there = sizes.owners(kv_type, near.context_tokens * streams).estimate(floor_bytes)
        estimate = near_history(header, near, there)
    estimate = estimate or header
    # What an engine or an earlier load knows better holds for every context: the difference is taken along.
    rooms = _Rooms(shape, sizes, question, machine, estimate.needed_bytes - header.needed_bytes)
    where = rooms.place(kv_type, asked)
    verdict = _verdict(where, machine, len(shape.layers))
    device = _deciding_device(where, machine)
    speed = measured_speed(records, question.backend, device.name, kv_type)
    return Fit(
        verdict=verdict,
        estimate=replace(estimate, by_device=_by_device(where, estimate, machine)),
        context_tokens=context_tokens,
        max_context_tokens=rooms.by_type(),
        gpu_layers=where.gpu_layers,
        layers_count=len(shape.layers),
        decode_tokens_per_s=speed or predicted_speed(read_parts(shape, question, where, machine, context_tokens)),
        is_speed_measured=speed is not None,
        free_bytes=max(0, device.free_bytes),
        device=device,
    )


# ----------------------------------------------------------------------------------------------------- verdicts


def _verdict(where: Place, machine: Machine, layers_count: int) -> Verdict:
    """Return whether what lies on each device is free there."""
    free_bytes = max(0, machine.cpu.free_bytes)
    if where.cpu_bytes > free_bytes or (where.gpu is not None and where.gpu_bytes > max(0, where.gpu.free_bytes)):
        return Verdict.TOO_LARGE
    if where.gpu is not None and where.gpu_layers < layers_count:
        return Verdict.PARTIAL
    return Verdict.FITS if where.cpu_bytes <= free_bytes - machine.reserve_bytes else Verdict.TIGHT


def _deciding_device(where: Place, machine: Machine) -> Device:
    """Return the device on which there is not enough, else the card, else the computer."""
    if where.gpu is None or where.gpu_bytes > max(0, where.gpu.free_bytes):
        return where.gpu or machine.cpu
    return machine.cpu if where.cpu_bytes > max(0, machine.cpu.free_bytes) else where.gpu


def _by_device(where: Place, estimate: MemoryEstimate, machine: Machine) -> Mapping[str, int]:
    on_cpu = where.cpu_bytes + estimate.copied_bytes
    return {machine.cpu.name: on_cpu, **({where.gpu.name: where.gpu_bytes} if where.gpu is not None else {})}


# ---------------------------------------------------------------------------------------------------- contexts


class _Rooms:
    """How much context there is room for, and where everything would lie with it.

    Attributes:
        _correction: what is needed beyond what the header lets expect, with any context, in bytes.
        _gpu: the card that takes part; None for none.
    """

    def __init__(
        self, shape: ModelShape, sizes: Sizes, question: FitQuestion, machine: Machine, correction: int
    ) -> None:
        self._shape, self._sizes, self._question, self._machine = shape, sizes, question, machine
        self._floor_bytes = machine.floor_bytes.get(question.backend, KNOWN_FLOOR_BYTES) + correction
        self._gpu = gpu_of(question, machine)

    def place(self, kv_type: str, context_tokens: int) -> Place:
        """Return where everything lies with a context of so many tokens, the worker itself included."""
        owners = self._sizes.owners(kv_type, context_tokens)
        if self._gpu is None:
            return Place(bounded(owners.needed_bytes + self._floor_bytes))
        plan = CachePlan(plan_context(self._question.params, context_tokens), kv_type)
        where = place(self._shape, self._question, owners, self._gpu, plan)
        return replace(where, cpu_bytes=bounded(where.cpu_bytes + self._floor_bytes))

    def by_type(self) -> Mapping[str, int | None]:
        """Return the largest context by KV type: those that are always shown, and the one asked for."""
        return {kv_type: self._room(kv_type) for kv_type in _shown_types(self._question)}

    def _room(self, kv_type: str) -> int:
        """Return the largest context that fits with something to spare; 0 when none does or the type cannot be.

        With a card it is the largest that leaves every layer there, as long as the context asked for does; else the
        largest that fits with some layers beside it.
        """
        if not self._sizes.can_store(kv_type):
            return 0
        trained, good = self._shape.context_tokens, {Verdict.FITS, Verdict.PARTIAL}
        if self._gpu is not None:
            asked = self.place(kv_type, wanted_context(self._question.params, trained))
            good = {Verdict.FITS} if asked.gpu_layers == len(self._shape.layers) else good
        most = largest_context(self._question.params, trained)
        steps = most // CELLS_STEP
        if steps == 0:
            return most if self._fits(kv_type, most, good) else 0
        low, high = 0, steps  # the largest number of steps that fits is in [low, high]
        middle = steps  # where memory is plenty, all of it fits
        while low < high:
            if self._fits(kv_type, middle * CELLS_STEP, good):
                low = middle
            else:
                high = middle - 1
            middle = (low + high + 1) // 2
        return low * CELLS_STEP

    def _fits(self, kv_type: str, context_tokens: int, good: set[Verdict]) -> bool:
        where = self.place(kv_type, context_tokens)
        if where.cpu_bytes > self._machine.cpu.free_bytes - self._machine.reserve_bytes:
            return False
        return _verdict(where, self._machine, len(self._shape.layers)) in good


def _shown_types(question: FitQuestion) -> tuple[str, ...]:
    asked = question.params.kv_type
    return SHOWN_KV_TYPES if asked in SHOWN_KV_TYPES else (*SHOWN_KV_TYPES, asked)


# ----------------------------------------------------------------------------------------- who knows better


def _told(
    header: MemoryEstimate | None,
    question: FitQuestion,
    machine: Machine,
    probe: MemorySplit | None,
    records: Sequence[Measured],
    context_tokens: int,
) -> MemoryEstimate | None:
    """Return the estimate of an equal earlier load, else of the probe; None where neither is there."""
    floor_bytes = machine.floor_bytes.get(question.backend, KNOWN_FLOOR_BYTES)
    return from_history(header, question, records, context_tokens, floor_bytes) or (
        from_probe(header, question, probe, floor_bytes) if probe is not None else None
    )


def _from_estimate(
    shape: ModelShape | None,
    question: FitQuestion,
    machine: Machine,
    estimate: MemoryEstimate,
    records: Sequence[Measured],
) -> Fit:
    """Return the answer for a model whose shape nobody knows but whose memory the engine told."""
    where = Place(bounded(estimate.needed_bytes))
    speed = measured_speed(records, question.backend, machine.cpu.name, question.params.kv_type)
    return Fit(
        verdict=_verdict(where, machine, 0),
        estimate=replace(estimate, by_device=_by_device(where, estimate, machine)),
        context_tokens=context_of(shape, question.params),
        max_context_tokens=dict.fromkeys(_shown_types(question)),
        layers_count=len(shape.layers) if shape is not None else 0,
        decode_tokens_per_s=speed,
        is_speed_measured=speed is not None,
        free_bytes=max(0, machine.cpu.free_bytes),
        device=machine.cpu,
    )


def _unknown(
    shape: ModelShape | None,
    question: FitQuestion,
    machine: Machine,
    reason: str,
    rooms: Mapping[str, int | None],
) -> Fit:
    return Fit(
        verdict=Verdict.UNKNOWN,
        estimate=None,
        context_tokens=context_of(shape, question.params),
        max_context_tokens=rooms or dict.fromkeys(_shown_types(question)),
        layers_count=len(shape.layers) if shape is not None else 0,
        free_bytes=max(0, machine.cpu.free_bytes),
        device=machine.cpu,
        reason=reason,
    )


def _unknown_reason(shape: ModelShape | None, question: FitQuestion) -> str:
    if shape is None:
        return _("The model's header does not say how it is built.")
    detail = shape.unknown or (question.draft.unknown if question.draft is not None else "")
    return _("How much memory it needs cannot be told before it is loaded. {detail}").format(detail=detail)


def _kv_type_fault(question: FitQuestion, sizes: Sizes) -> str:
    """Return why the KV type asked for cannot be; "" when it can."""
    kv_type = question.params.kv_type
    if sizes.can_store(kv_type):
        return ""
    backend = BACKENDS.get(question.backend)
    if kv_type in KV_TYPES and backend is not None and not backend.can_store(kv_type):
        words = _("The {backend} engine keeps the KV cache as {types}. Choose one of these.")
        return words.format(backend=backend.title, types=", ".join(backend.kv_types))
    if kv_type not in KV_TYPES:
        return _("There is no KV type {type}. Choose f16.").format(type=kv_type)
    words = _("This model's KV cache cannot be stored as {type}: its heads are no whole blocks of it. Choose f16.")
    return words.format(type=kv_type)
