"""Keeps what each load really took, so that the next estimate can stand beside it.

Listens to the engine's events and hands finished records on; knows no library and no window.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from app.engines.supervisor import EngineEvent, LoadRequest, StateChanged
from app.models.fit_types import Measured
from app.telemetry.owners import measured_bytes
from backends import protocol
from backends.client import EngineDied
from backends.protocol import LifeCycle

# Shorter answers say little about a speed.
_FEWEST_TOKENS = 16

OnMeasured = Callable[[LoadRequest, Measured], None]


class LoadRecorder:
    """Follows one engine after the other; called by the engine's threads, one event at a time.

    Attributes:
        _on_measured: takes each record: when a model has been loaded and read, and when it has written.
        measured: the record of the present load as far as it goes; None before it.
        _floor_bytes: the first reading of the present worker, before any model.
        _last_bytes: the newest reading.
    """

    def __init__(self, request: Callable[[], LoadRequest | None], on_measured: OnMeasured) -> None:
        self._request = request
        self._on_measured = on_measured
        self.measured: Measured | None = None
        self._floor_bytes = self._last_bytes = 0

    def on_event(self, event: EngineEvent) -> None:
        """Take the engine's next event."""
        match event:
            case StateChanged(state=LifeCycle.STARTING) | EngineDied():
                self._floor_bytes, self.measured = 0, None
            case protocol.MemoryRead():
                self._read(event)
            case protocol.ModelLoaded():
                self._loaded(event)
            case protocol.RequestFinished(figures=figures):
                self._finished(figures)

    def _read(self, event: protocol.MemoryRead) -> None:
        self._last_bytes = total = measured_bytes(event, on_device=False)
        if self.measured is None:
            self._floor_bytes = self._floor_bytes or total
        elif not self.measured.process_bytes:
            self._tell(replace(self.measured, process_bytes=total))

    def _loaded(self, event: protocol.ModelLoaded) -> None:
        request = self._request()
        if request is None or not request.path:
            return
        self.measured = Measured(
            backend=event.backend,
            device=event.device,
            context_tokens=event.context_tokens,
            kv_type=event.kv_type,
            micro_batch_tokens=request.params.micro_batch_tokens,
            kv_mode=request.params.kv_mode,
            max_sequences=request.params.max_sequences,
            split=event.memory,
            floor_bytes=self._floor_bytes,
        )

    def _finished(self, figures: protocol.RequestFigures) -> None:
        """Take an answer's speed, and what the process grew to: the first answer touches the last of its memory."""
        if self.measured is None:
            return
        measured = replace(self.measured, process_bytes=max(self.measured.process_bytes, self._last_bytes))
        if figures.new_tokens >= _FEWEST_TOKENS and not figures.draft_accepted:
            measured = replace(measured, decode_tokens_per_s=figures.decode_tokens_per_s)
        if measured != self.measured:
            self._tell(measured)

    def _tell(self, measured: Measured) -> None:
        self.measured = measured
        request = self._request()
        if request is not None:
            self._on_measured(request, measured)
