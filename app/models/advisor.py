"""Whether a model fits, asked one way by every screen, the command line and the loader.

Brings together what the fit needs: the model's shape from the library, the person's load params, what is free now, an
earlier probe or load. Two methods take their time (`probe`, `learn_bandwidth`): call them on a background thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping

from app.engines.backend_choice import chosen_backend
from app.engines.probe import probe_memory
from app.models.bandwidth import decode_bandwidth, machine_key, measure_bandwidth
from app.models.entry import ModelEntry
from app.models.fit import fit
from app.models.fit_torch import as_loaded
from app.models.fit_types import Fit, FitQuestion, Machine, Measured
from app.models.library import Library
from app.models.machine import read_machine
from app.models.shape import ModelShape
from backends.protocol import LoadParams, MemorySplit
from backends.registry import BACKENDS

# How old a reading of the machine's free memory may be.
_MACHINE_AGE_S = 1.0


class FitAdvisor:
    """Answers for every model of the library. Any thread may ask.

    Attributes:
        _library: knows shapes, earlier loads and probes.
        _params: returns how an entry would be loaded.
        _held_bytes: returns what the engine in use would give back, since a load ends it first.
        backend_of: returns the name of the backend that would load an entry.
        _probing: held while the allocator is asked.
        _machine: the last reading, taken at _read_s of the monotonic clock.
    """

    def __init__(
        self,
        library: Library,
        params: Callable[[ModelEntry | None], LoadParams],
        held_bytes: Callable[[], int] = lambda: 0,
        read: Callable[..., Machine] | None = None,
        backend_of: Callable[[ModelEntry], str] = chosen_backend,
    ) -> None:
        self._library = library
        self._params = params
        self._held_bytes = held_bytes
        self._read = read or read_machine
        self.backend_of = backend_of
        self._lock = threading.Lock()
        self._probing = threading.Lock()
        self._machine: Machine | None = None
        self._read_s = 0.0

    def machine(self) -> Machine:
        """Return what there is to fit into, at most a second old."""
        with self._lock:
            now_s = time.monotonic()
            if self._machine is None or now_s - self._read_s > _MACHINE_AGE_S:
                self._machine = self._read(
                    floor_bytes=self._library.floors(),
                    bandwidth_bytes_per_s=self._library.bandwidth(machine_key()),
                    held_bytes=self._held_bytes(),
                )
                self._read_s = now_s
            return self._machine

    def fit(self, entry: ModelEntry, params: LoadParams | None = None, backend: str = "") -> Fit:
        """Return whether a model fits; at once, from what is known.

        Args:
            entry: the model.
            params: how it would be loaded; None for its own way.
            backend: by which backend; "" for the one that takes it.
        """
        params, backend = params or self._params(entry), backend or self.backend_of(entry)
        question = FitQuestion(backend=backend, params=params)
        probe = self._library.probed(entry, params) if BACKENDS[backend].can_probe else None
        return fit(entry.shape, question, self.machine(), probe, self._library.measured(entry))

    def fit_shape(self, shape: ModelShape) -> Fit:
        """Return whether a model that is not here would fit, from its shape alone."""
        return fit(shape, FitQuestion(params=self._params(None)), self.machine())

    def fits(self, entries: Iterable[ModelEntry]) -> Mapping[str, Fit]:
        """Return whether each model fits, by key; the broken ones are left out."""
        return {entry.key: self.fit(entry) for entry in entries if not entry.fault}

    def measured(self, entry: ModelEntry, params: LoadParams | None = None, backend: str = "") -> Measured | None:
        """Return what the last load of this model with this KV type and context took; None before there was one.

        A context of 0 asks for the last load with any context.
        """
        params, backend = params or self._params(entry), backend or self.backend_of(entry)
        return next(
            (
                record
                for record in self._library.measured(entry)
                if record.backend == backend
                and record.kv_type == params.kv_type
                and params.context_tokens in (0, record.context_tokens)
            ),
            None,
        )

    def probe(
        self,
        entry: ModelEntry,
        params: LoadParams | None = None,
        cancelled: threading.Event | None = None,
        backend: str = "",
    ) -> MemorySplit | None:
        """Ask the engine's allocator what a load would take, and keep its answer; blocks for some tenths of a second.

        Returns:
            None where the engine gives no answer: the estimate from the header stands then.
        """
        params, backend = params or self._params(entry), backend or self.backend_of(entry)
        if not BACKENDS[backend].can_probe:
            return None
        with self._probing:  # two answers to one question differ by a page or two, and every screen says one number
            known = self._library.probed(entry, params)
            if known is not None or entry.fault or entry.format != "gguf":
                return known
            split = probe_memory(entry.path, params, backend, cancelled=cancelled).split
            if split is not None:
                self._library.record_probe(entry, params, split)
            return split

    def learn_bandwidth(self) -> float:
        """Return this machine's memory read bandwidth in bytes/s, measuring it the first time; blocks for a second."""
        known = self._library.bandwidth(machine_key())
        return known or self._keep_bandwidth(measure_bandwidth())

    def learn_from_answer(
        self, entry: ModelEntry, tokens_per_s: float, params: LoadParams | None = None, backend: str = ""
    ) -> None:
        """Take what an answer's speed says of this machine: what was measured while others worked is too low."""
        if entry.shape is not None and tokens_per_s > 0:
            question = FitQuestion(backend or self.backend_of(entry), params or self._params(entry))
            self._keep_bandwidth(decode_bandwidth(as_loaded(entry.shape, question).read_bytes, tokens_per_s))

    def _keep_bandwidth(self, measured: float) -> float:
        """Keep the larger of what is known and what was measured now, and return it."""
        key = machine_key()
        known = self._library.bandwidth(key)
        if measured <= known:
            return known
        self._library.set_bandwidth(key, measured)
        with self._lock:
            self._machine = None
        return measured
