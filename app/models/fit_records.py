"""Estimates from what an engine said: its allocator before a load, or earlier loads on this machine.

Knows no shape: what only the header tells comes as an estimate. Knows no verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from app.models.fit_memory import PROJECTOR_COMPUTE_BYTES, bounded
from app.models.fit_types import FitQuestion, Measured, MemoryEstimate, Source
from backends.protocol import MemorySplit


def from_probe(
    header: MemoryEstimate | None, question: FitQuestion, probe: MemorySplit, floor_bytes: int
) -> MemoryEstimate:
    """Return what the engine's allocator said, with the rest from the header.

    Args:
        header: the estimate from the header; None when there is none.
        question: what the probe was asked.
        probe: its answer.
        floor_bytes: the worker before any model.
    """
    made = _from_split(header, question, probe, "probe")
    tables = probe.tables_bytes if probe.tables_bytes > 0 else made.tables_bytes
    return replace(made, floor_bytes=bounded(floor_bytes), tables_bytes=bounded(tables))


def from_history(
    header: MemoryEstimate | None,
    question: FitQuestion,
    records: Sequence[Measured],
    context_tokens: int,
    floor_bytes: int,
) -> MemoryEstimate | None:
    """Return what the latest load with exactly these params took; None where there was none.

    Args:
        header: the estimate from the header; None when there is none.
        question: how the model is to be loaded.
        records: earlier loads on the same device, newest first.
        context_tokens: as an engine reports it.
        floor_bytes: the worker before any model, where the load did not read it.
    """
    record = next(
        (one for one in records if one.context_tokens == context_tokens and _is_equal(one, question)),
        None,
    )
    if record is None:
        return None
    made = _from_split(header, question, record.split, "measured")
    floor = bounded(record.floor_bytes or floor_bytes)
    rest = rest_bytes(record)
    if rest is None:
        return replace(made, floor_bytes=floor)
    return replace(made, floor_bytes=min(floor, rest), tables_bytes=bounded(rest - floor))


def nearest_record(question: FitQuestion, records: Sequence[Measured], context_tokens: int) -> Measured | None:
    """Return the load that differs in its context only, the one whose context is nearest; None where there is none."""
    equal = [record for record in records if _is_equal(record, question) and record.context_tokens > 0]
    return min(equal, key=lambda record: abs(record.context_tokens - context_tokens), default=None)


def near_history(header: MemoryEstimate, record: Measured, predicted: MemoryEstimate) -> MemoryEstimate:
    """Return the estimate from the header, set right by a load with another context.

    KV is computed exactly for every context. Compute and the worker itself are off by as much as they were there.

    Args:
        header: the estimate for the context that is asked about.
        record: the load.
        predicted: what the header lets expect of that load.
    """
    split = record.split
    rest = rest_bytes(record)
    in_file = header.weights_bytes - header.copied_bytes
    weights = max(split.weights_bytes, in_file)
    more = rest - predicted.floor_bytes - predicted.tables_bytes if rest is not None else 0
    return replace(
        header,
        weights_bytes=bounded(weights),
        copied_bytes=bounded(weights - in_file),
        compute_bytes=bounded(header.compute_bytes + split.compute_bytes - predicted.compute_bytes),
        tables_bytes=bounded(header.tables_bytes + more),
    )


def rest_bytes(record: Measured) -> int | None:
    """Return what no buffer explains of a process; None where the process was not read."""
    split = record.split
    owned = split.weights_bytes + split.kv_reserved_bytes + split.compute_bytes + split.output_bytes + split.draft_bytes
    return max(0, record.process_bytes - owned) if record.process_bytes > 0 else None


def _is_equal(record: Measured, question: FitQuestion) -> bool:
    params = question.params
    return (
        record.backend == question.backend
        and record.kv_type == params.kv_type
        and record.micro_batch_tokens == params.micro_batch_tokens
        and record.kv_mode == params.kv_mode
        and record.max_sequences == params.max_sequences
    )


def _from_split(
    header: MemoryEstimate | None, question: FitQuestion, split: MemorySplit, source: Source
) -> MemoryEstimate:
    """Return an engine's buffers as an estimate; what it does not say is taken from the header.

    Where the engine holds more weights than the file has, it keeps copies of some.
    """
    told = max(0, split.weights_bytes)
    in_file = header.weights_bytes - header.copied_bytes if header is not None else told
    weights = max(told, in_file)
    projector = max(0, question.projector_bytes)
    return MemoryEstimate(
        weights_bytes=bounded(weights),
        kv_bytes=bounded(split.kv_reserved_bytes),
        compute_bytes=bounded(split.compute_bytes),
        output_bytes=bounded(split.output_bytes),
        draft_bytes=bounded(split.draft_bytes or (header.draft_bytes if header is not None else 0)),
        projector_bytes=bounded(projector + (PROJECTOR_COMPUTE_BYTES if projector else 0)),
        floor_bytes=header.floor_bytes if header is not None else 0,
        source=source,
        copied_bytes=bounded(weights - in_file),
        tables_bytes=header.tables_bytes if header is not None else 0,
    )
