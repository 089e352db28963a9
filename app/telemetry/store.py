"""What the plots, tables and the command line draw from: an engine's readings and steps as series over time.

One thread writes (the client's reader), others read; every operation holds one lock for microseconds and hands out
copies. Knows no window and asks nobody: a version counter tells a reader whether anything moved.

Times are seconds since the load began: the worker's monotonic clock, shifted so that the first reading is 0. An engine
that is started anew continues the same axis one second after the last reading; its beginning is in `restarts()`.
"""

from __future__ import annotations

import math
import threading
from collections import deque
from dataclasses import dataclass

from app.telemetry import owners
from app.telemetry.block_map import BlockKeeper, BlockView
from app.telemetry.series import FloatArray, Series, TieredSeries
from app.telemetry.speed import WritingSpeed
from backends import protocol

MEMORY_FIELDS = ("measured", "rest", "weights", "compute", "kv_used", "kv_reserved", "device_used", "device_total")
KV_FIELDS = ("used", "predicted", "reserved", "tokens")
WRITING_FIELDS = ("tokens_per_s", "began_s")
READING_FIELDS = ("duration_s", "tokens_per_s", "tokens")

# Two meter readings always have rows of their own; a flood cannot push the history out.
_MEMORY_SLOT_S = 0.05
_STEP_SLOT_S = 0.1
# Prompts read in a day of hard use; one mark is 32 bytes, stored twice.
_READING_MARKS = 4096
_RESTARTS = 256
# Between the last reading of an engine and the first of the next one, so that the axis shows two.
_RESTART_GAP_S = 1.0
# Readings of the load, kept to be split again once the owners are known: two minutes at ten a second.
_LOAD_READINGS = 1200


@dataclass(frozen=True, slots=True)
class LiveFigures:
    """The newest figures; None where there is none yet.

    Attributes:
        has_engine: an engine is sending readings.
        tokens_per_s: speed of the latest writing.
        is_writing: that speed is of the last second.
        kv_used_bytes: bytes of the KV cache that hold tokens.
        kv_reserved_bytes: bytes the engine set aside for it.
        kv_tokens: tokens it holds.
        memory_bytes: the measured total of the process, or of the card.
        highest_memory_bytes: the largest such total in the last day.
        device_name: the card whose memory that is; "" for system memory.
        device_total_bytes: what the card has; 0 without one.
    """

    has_engine: bool = False
    tokens_per_s: float | None = None
    is_writing: bool = False
    kv_used_bytes: float | None = None
    kv_reserved_bytes: float | None = None
    kv_tokens: int | None = None
    memory_bytes: float | None = None
    highest_memory_bytes: float | None = None
    device_name: str = ""
    device_total_bytes: int = 0


class TelemetryStore:
    """The series of one program run.

    Attributes:
        _lock: guards everything else.
        _loaded: the load in force, None before the first and after an engine's end.
        _floors: total of the segment's first reading: (of the process, of the card); zeros where it came too late.
        _load_reads: readings since the segment began and before its load ended, with their shown times.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._clock = _ShownClock()
        self._memory = TieredSeries(MEMORY_FIELDS, _MEMORY_SLOT_S)
        self._kv = TieredSeries(KV_FIELDS, _STEP_SLOT_S)
        self._writing = TieredSeries(WRITING_FIELDS, _STEP_SLOT_S)
        self._reading = Series(_READING_MARKS, READING_FIELDS)
        self._speed = WritingSpeed()
        self._blocks = BlockKeeper()
        self._loaded: protocol.ModelLoaded | None = None
        self._predicted_per_token: float | None = None
        self._floors: tuple[int, int] | None = None
        self._load_reads: deque[tuple[float, protocol.MemoryRead]] = deque(maxlen=_LOAD_READINGS)
        self._read: protocol.MemoryRead | None = None
        self._stats: protocol.StepStats | None = None
        self._tokens_per_s: float | None = None
        self._changes = 0

    # ------------------------------------------------------------------------------------------- writing

    def record_memory(self, read: protocol.MemoryRead) -> None:
        """Take a reading of the worker's memory."""
        with self._lock:
            time_s = self._clock.shown(read.read_s)
            if self._floors is None:
                self._set_floors(read)
            if self._loaded is None:
                self._load_reads.append((time_s, read))
            self._read = read
            self._append_memory(time_s, read)
            self._blocks.record_memory(read)

    def record_step(self, done: protocol.StepDone) -> None:
        """Take the figures of an engine step."""
        stats = done.stats
        with self._lock:
            time_s = self._clock.shown(stats.ended_s)
            self._stats = stats
            self._append_kv(time_s, stats)
            self._blocks.record_step(done)
            rate = self._speed.add(time_s, stats)
            began_s = time_s - max(stats.duration_s, 0.0)
            if rate is not None and self._writing.append(time_s, (rate, began_s)):
                self._tokens_per_s = rate
            if stats.prefill_tokens and stats.duration_s > 0:
                values = (stats.duration_s, stats.prefill_tokens / stats.duration_s, stats.prefill_tokens)
                self._reading.append(began_s, values)

    def model_loaded(self, loaded: protocol.ModelLoaded, predicted_kv_bytes_per_token: float | None = None) -> None:
        """Take the owners of the memory; the readings of the load are split again, now that they are known.

        Args:
            loaded: what the engine said.
            predicted_kv_bytes_per_token: what the file's header lets expect; None when it does not tell.
        """
        with self._lock:
            self._loaded = loaded
            self._predicted_per_token = predicted_kv_bytes_per_token
            self._stats = None
            self._speed.clear()
            self._blocks.model_loaded(loaded)
            if self._load_reads:
                self._memory.forget_since(self._load_reads[0][0])
                for time_s, read in self._load_reads:
                    self._append_memory(time_s, read)
                self._load_reads.clear()
            if self._clock.is_running:
                self._append_kv(self._clock.last_s, None)
            self._changes += 1

    def engine_gone(self) -> None:
        """Note that the engine ended; what was drawn stays, and the next engine continues the axis."""
        with self._lock:
            self._clock.stop()
            self._loaded = self._floors = self._read = self._stats = self._tokens_per_s = None
            self._load_reads.clear()
            self._speed.clear()
            self._blocks.engine_gone()
            self._changes += 1

    # ------------------------------------------------------------------------------------------- reading

    @property
    def version(self) -> int:
        """Grows whenever anything moved."""
        return self.memory_version + self.kv_version + self.speed_version

    @property
    def memory_version(self) -> int:
        """Grows whenever the memory series moved."""
        return self._memory.version + self._changes

    @property
    def kv_version(self) -> int:
        """Grows whenever the KV series moved, or the time that it is drawn up to."""
        return self._kv.version + self.memory_version

    @property
    def speed_version(self) -> int:
        """Grows whenever a speed was added, or the time that they are drawn up to."""
        return self._writing.version + self._reading.version + self.memory_version

    @property
    def blocks_version(self) -> int:
        """Grows whenever the map of the KV blocks moved."""
        return self._blocks.version

    @property
    def now_s(self) -> float:
        """The newest time of all series, where the time axis ends; 0 when there is none."""
        with self._lock:
            return self._clock.last_s

    @property
    def dropped(self) -> int:
        """Readings and steps refused because their time ran backwards."""
        with self._lock:
            return self._memory.dropped + self._kv.dropped

    @property
    def loaded(self) -> protocol.ModelLoaded | None:
        """The load in force, None before the first and after an engine's end."""
        return self._loaded

    def memory(self, since_s: float = -math.inf) -> dict[str, FloatArray]:
        """Return the memory readings by owner, in bytes: time_s and MEMORY_FIELDS; NaN for a card that is not there."""
        with self._lock:
            return self._memory.view(since_s)

    def kv(self, since_s: float = -math.inf) -> dict[str, FloatArray]:
        """Return the KV cache after each step: time_s, bytes used, predicted and reserved, and tokens."""
        with self._lock:
            return self._kv.view(since_s)

    def writing(self, since_s: float = -math.inf) -> dict[str, FloatArray]:
        """Return the speed of writing: time_s, tokens_per_s, and began_s, when the latest step of the row began."""
        with self._lock:
            return self._writing.view(since_s)

    def reading(self, since_s: float = -math.inf) -> dict[str, FloatArray]:
        """Return the prompts read that began since then: time_s (the start), duration_s, tokens_per_s, tokens."""
        with self._lock:
            return {name: column.copy() for name, column in self._reading.view(since_s).items()}

    def blocks(self) -> BlockView | None:
        """Return the newest map of the KV blocks; None before the first load, and where there is nothing to map."""
        with self._lock:
            snapshot = self._blocks.snapshot()
        return snapshot.view()

    def restarts(self) -> tuple[float, ...]:
        """Return when each further engine began, in shown seconds."""
        with self._lock:
            return tuple(self._clock.restarts)

    def is_empty(self) -> bool:
        """Say whether nothing was ever recorded."""
        with self._lock:
            return not self._clock.has_begun

    def live(self) -> LiveFigures:
        """Return the newest figures."""
        with self._lock:
            read, stats = self._read, self._stats
            reserved = self._loaded.memory.kv_reserved_bytes if self._loaded else None
            on_device = read is not None and owners.is_on_device(self._split, read)
            highest = self._memory.highest("measured")
            return LiveFigures(
                has_engine=self._clock.is_running,
                tokens_per_s=self._tokens_per_s,
                is_writing=self._tokens_per_s is not None and self._writing.last_s > self._clock.last_s - 1.0,
                kv_used_bytes=stats.kv_used_bytes if stats else (0 if self._loaded else None),
                kv_reserved_bytes=reserved,
                kv_tokens=stats.kv_used_tokens if stats else (0 if self._loaded else None),
                memory_bytes=owners.measured_bytes(read, on_device) if read else None,
                highest_memory_bytes=None if math.isnan(highest) else highest,
                device_name=read.device_name if read and on_device else "",
                device_total_bytes=read.device_total_bytes if read and on_device else 0,
            )

    # ------------------------------------------------------------------------------------------- helpers

    @property
    def _split(self) -> protocol.MemorySplit | None:
        return self._loaded.memory if self._loaded else None

    def _set_floors(self, read: protocol.MemoryRead) -> None:
        preceded_load = self._loaded is None and read.state in (
            protocol.LifeCycle.STARTING,
            protocol.LifeCycle.LOADING,
        )
        # A first reading from after the load holds the model already and is no floor.
        process, device = owners.measured_bytes(read, False), owners.measured_bytes(read, True)
        self._floors = (process, device) if preceded_load else (0, 0)

    def _append_memory(self, time_s: float, read: protocol.MemoryRead) -> None:
        split = self._split
        on_device = owners.is_on_device(split, read)
        measured = owners.measured_bytes(read, on_device)
        floor = (self._floors or (0, 0))[1 if on_device else 0]
        used = self._stats.kv_used_bytes if self._stats else 0
        owned = owners.attribute(measured, floor, split, used)
        values = (
            measured,
            owned.rest_bytes,
            owned.weights_bytes,
            owned.compute_bytes,
            owned.kv_used_bytes,
            split.kv_reserved_bytes if split and read.state is not protocol.LifeCycle.LOADING else 0,
            # No card is not a card with nothing on it.
            read.device_used_bytes if read.device_total_bytes else math.nan,
            read.device_total_bytes or math.nan,
        )
        self._memory.append(time_s, values)

    def _append_kv(self, time_s: float, stats: protocol.StepStats | None) -> None:
        used, tokens = (stats.kv_used_bytes, stats.kv_used_tokens) if stats else (0, 0)
        per_token = self._predicted_per_token
        predicted = tokens * per_token if per_token else math.nan
        reserved = self._loaded.memory.kv_reserved_bytes if self._loaded else math.nan
        self._kv.append(time_s, (used, predicted, reserved, tokens))


class _ShownClock:
    """Turns a worker's monotonic clock into shown seconds, across restarts.

    Attributes:
        last_s: the newest shown time; 0 before the first.
        is_running: an engine has sent a time since the last stop.
        has_begun: one ever has.
        restarts: when each further engine began, in shown seconds.
    """

    def __init__(self) -> None:
        self.last_s = 0.0
        self.is_running = False
        self.has_begun = False
        self.restarts: deque[float] = deque(maxlen=_RESTARTS)
        self._offset_s = 0.0

    def shown(self, worker_s: float) -> float:
        """Return the shown time of a worker's time."""
        if not self.is_running:
            begins_s = self.last_s + _RESTART_GAP_S if self.has_begun else 0.0
            if self.has_begun:
                self.restarts.append(begins_s)
            self._offset_s = begins_s - worker_s
            self.is_running = self.has_begun = True
        time_s = worker_s + self._offset_s
        self.last_s = max(self.last_s, time_s)
        return time_s

    def stop(self) -> None:
        """Note that the engine is gone: the next time begins a new segment."""
        self.is_running = False
