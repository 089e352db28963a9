"""The worker process: one engine, driven by commands from a pipe, speaking in events.

Started by its absolute path with `-I`, so that neither the environment nor the working folder can put a module in the
way; it sets its own sys.path. The main thread alone touches the model. Knows no Qt and no words for people.

Four threads: the main loop (take commands; step; send), the command thread (reads, answers CountTokens, ends the
process when the pipe ends), the sender (the only one that writes to the pipe) and the memory meter.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    # Isolated mode leaves the script's folder out of sys.path, and the import of a module `worker` never happens.
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import argparse
import contextlib
import faulthandler
import os
import queue
import threading
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import TypeVar

from backends import process_guard, protocol, registry, wire
from backends.engine import Engine
from backends.errors import EngineError, ErrorCode, Parameter
from backends.memory_meter import MemoryMeter, StepClock

# Readings wait behind text when the program is slow to read; beyond this many events they are dropped.
_READINGS_DROPPED_ABOVE = 200

_T = TypeVar("_T")
_Inbox = queue.SimpleQueue[protocol.Command]


class Outbox:
    """Events on their way to the program, written by one thread.

    Attributes:
        _queue: what waits; None ends the thread.
    """

    def __init__(self, pipe: wire.MessagePipe[protocol.Command]) -> None:
        self._pipe = pipe
        self._queue: queue.SimpleQueue[protocol.Event | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="sender", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def put(self, event: protocol.Event) -> None:
        """Send an event; never dropped."""
        self._queue.put(event)

    def offer(self, reading: protocol.MemoryRead) -> None:
        """Send a reading, unless the pipe is far behind."""
        if self._queue.qsize() < _READINGS_DROPPED_ABOVE:
            self._queue.put(reading)

    def close(self) -> None:
        """Write what waits and end the thread."""
        self._queue.put(None)
        self._thread.join(timeout=2.0)

    def _run(self) -> None:
        try:
            while (event := self._queue.get()) is not None:
                self._pipe.send(event)
        except OSError:
            os._exit(0)  # the program is gone: nobody is left to work for


class Worker:
    """The loop around one engine.

    Attributes:
        _inbox: commands for the main thread.
        _loaded: set while the vocabulary may be asked by the command thread.
        _ended: set by Shutdown.
    """

    def __init__(self, pipe: wire.MessagePipe[protocol.Command], backend: registry.Backend) -> None:
        self._pipe = pipe
        self._backend = backend
        self._outbox = Outbox(pipe)
        self._inbox: _Inbox = queue.SimpleQueue()
        self._clock = StepClock()
        self._meter = MemoryMeter(self._clock, self._outbox.offer)
        self._engine: Engine | None = None
        self._loaded = threading.Event()
        self._ended = False

    def run(self) -> int:
        """Say Hello, work until Shutdown or the end of the pipe, and return the exit code."""
        self._import_engine()
        self._outbox.start()
        self._outbox.put(
            protocol.Hello(protocol.PROTOCOL_VERSION, self._backend.version, os.getpid(), self._backend.name)
        )
        self._clock.state = protocol.LifeCycle.READY
        self._outbox.put(self._meter.read())  # what the worker takes without a model: no load has begun yet
        self._meter.start()
        threading.Thread(target=self._read_commands, name="commands", daemon=True).start()
        while not self._ended:
            self._guarded_turn()
        self._clock.state = protocol.LifeCycle.STOPPING
        if self._engine is not None:
            self._engine.unload()
        self._meter.stop()
        self._outbox.close()
        return 0

    def _import_engine(self) -> None:
        """Load the engine's library before the first reading: what comes on top of that is the model's."""
        with contextlib.suppress(ImportError, OSError, RuntimeError):  # said when a model is to be loaded
            registry.create_engine(self._backend.name)

    # ------------------------------------------------------------------------------------ main thread

    def _guarded_turn(self) -> None:
        """One turn of the loop; the wall that keeps an unforeseen error from ending the process."""
        try:
            self._turn()
        except Exception as error:  # noqa: BLE001 - the worker's wall
            traceback.print_exc()
            self._fail_all(ErrorCode.ENGINE_FAULT, {"detail": f"{type(error).__name__}: {error}"})

    def _turn(self) -> None:
        engine = self._engine
        busy = engine is not None and engine.has_work
        self._clock.state = protocol.LifeCycle.BUSY if busy else protocol.LifeCycle.READY
        if not busy:
            self._do(self._inbox.get())
        while not self._inbox.empty():
            self._do(self._inbox.get())
        if self._ended or engine is None or not engine.has_work:
            return
        self._clock.begin()
        try:
            events = engine.step()
        except EngineError as error:
            self._fail_all(error.code, dict(error.parameters))
            return
        finally:
            self._clock.end()
        for event in events:
            self._outbox.put(event)

    def _fail_all(self, code: ErrorCode, parameters: dict[str, Parameter]) -> None:
        """Tell every unfinished request that it cannot go on."""
        requests = self._engine.discard_requests() if self._engine is not None else ()
        for request_id in requests or (protocol.RequestId(0),):
            self._outbox.put(protocol.EngineFailed(code=code, parameters=parameters, request_id=request_id))

    def _do(self, command: protocol.Command) -> None:
        try:
            self._dispatch(command)
        except EngineError as error:
            request_id = getattr(command, "request_id", protocol.RequestId(0))
            self._outbox.put(
                protocol.EngineFailed(code=error.code, parameters=dict(error.parameters), request_id=request_id)
            )

    def _dispatch(self, command: protocol.Command) -> None:
        match command:
            case protocol.LoadModel():
                self._load(command)
            case protocol.Generate():
                self._loaded_engine().add(command)
            case protocol.Abort():
                if self._engine is not None:
                    for event in self._engine.abort(command.request_id):
                        self._outbox.put(event)
            case protocol.CountTokens():
                self._count(command)
            case protocol.DescribeBlock():
                self._outbox.put(self._loaded_engine().describe_block(command))
            case protocol.UnloadModel():
                self._loaded.clear()
                if self._engine is not None:
                    self._engine.unload()
                self._engine = None
            case protocol.Shutdown():
                self._ended = True
            case protocol.ProbeMemory():
                self._probe(command)
            case protocol.Tokenize():
                token_ids = self._loaded_engine().tokenize(command.prompt)
                self._outbox.put(protocol.Tokenized(command.request_id, token_ids))
            case protocol.Detokenize():
                pieces = self._loaded_engine().token_bytes(command.token_ids)
                self._outbox.put(protocol.Detokenized(command.request_id, pieces))
            case protocol.Score():
                engine = self._loaded_engine()
                self._outbox.put(self._timed(lambda: engine.score(command)))
            case protocol.CollectImportance():
                engine = self._loaded_engine()
                self._timed(lambda: engine.collect_importance(command, self._outbox.put))
            case protocol.Quantize():
                engine = self._any_engine()
                self._outbox.put(self._timed(lambda: engine.quantize(command, self._outbox.put)))

    def _load(self, command: protocol.LoadModel) -> None:
        if self._engine is not None:
            raise EngineError(ErrorCode.ALREADY_LOADED)
        self._clock.state = protocol.LifeCycle.LOADING
        self._clock.begin()
        try:
            engine = registry.create_engine(self._backend.name)
            loaded = engine.load(command, self._outbox.put)
        except (ImportError, OSError) as error:
            raise EngineError(ErrorCode.ENGINE_MISSING, backend=self._backend.title, detail=str(error)) from error
        finally:
            self._clock.end()
        self._engine = engine
        self._loaded.set()
        self._outbox.put(loaded)

    def _probe(self, command: protocol.ProbeMemory) -> None:
        """Say what a load would take; a loaded model is left alone, and none is needed."""
        engine = self._any_engine()
        split = self._timed(lambda: engine.probe_memory(command, self._outbox.put))
        self._outbox.put(
            protocol.Progress(request_id=command.request_id, phase="probe", done=1.0, total=1.0, memory=split)
        )

    def _timed(self, do: Callable[[], _T]) -> _T:
        """Do what takes a while as a step: the meter tells its age."""
        self._clock.state = protocol.LifeCycle.BUSY
        self._clock.begin()
        try:
            return do()
        finally:
            self._clock.end()

    def _any_engine(self) -> Engine:
        """Return the engine in use, or one without a model."""
        try:
            return self._engine or registry.create_engine(self._backend.name)
        except (ImportError, OSError) as error:
            raise EngineError(ErrorCode.ENGINE_MISSING, backend=self._backend.title, detail=str(error)) from error

    def _loaded_engine(self) -> Engine:
        if self._engine is None:
            raise EngineError(ErrorCode.NO_MODEL)
        return self._engine

    # --------------------------------------------------------------------------------- command thread

    def _read_commands(self) -> None:
        """Take commands as they come; the end of the pipe ends the process at once, in any state."""
        while True:
            try:
                command = self._pipe.receive()
            except (EOFError, OSError):
                os._exit(0)
            except wire.MessageError as error:
                traceback.print_exc()
                self._outbox.put(protocol.LogRecorded("error", f"a command could not be read: {error}"))
                self._outbox.close()
                os._exit(3)
            if isinstance(command, protocol.CountTokens) and self._loaded.is_set():
                self._do(command)
                continue
            if isinstance(command, protocol.Abort | protocol.Shutdown) and self._loaded.is_set() and self._engine:
                # Before the put: the main thread clears the flag when it takes the command, never the other way round.
                self._engine.interrupt()
            self._inbox.put(command)

    def _count(self, command: protocol.CountTokens) -> None:
        tokens = self._loaded_engine().count_tokens(command.prompt)
        self._outbox.put(protocol.TokensCounted(command.request_id, tokens))


def main(arguments: list[str]) -> int:
    """Run a worker on the inherited descriptor named in the arguments."""
    parser = argparse.ArgumentParser(prog="worker")
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--backend", required=True, choices=sorted(registry.BACKENDS))
    parser.add_argument("--parent", type=int, default=0)
    parsed = parser.parse_args(arguments)
    faulthandler.enable(all_threads=False)
    process_guard.guard_worker(parsed.parent)
    connection = Connection(parsed.fd)
    return Worker(wire.command_pipe(connection), registry.BACKENDS[parsed.backend]).run()


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)  # the command thread still blocks on the pipe; nothing is left to be written
