"""The program's handle on one worker: starts it, sends commands, hands its events on, notices its death.

Two threads a client: the reader, which also starts the process and therefore lives exactly as long (Linux's
parent-death signal follows the thread that forked), and the sender, so that a stopped worker never blocks a caller.
Knows no Qt, no words and no policy: whether to restart is the supervisor's business.
"""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from backends import protocol, wire

_WORKER_SCRIPT = Path(__file__).resolve().parent / "worker.py"

# What a child needs of our environment; everything else, tokens above all, stays here.
_ENVIRONMENT_KEPT = {
    "PATH", "HOME", "USER", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "LANG", "LD_LIBRARY_PATH", "VK_DRIVER_FILES",
}  # fmt: skip
_ENVIRONMENT_KEPT_PREFIXES = ("LC_", "CUDA_", "NVIDIA_", "HIP_", "ROCR_", "GGML_", "MESA_", "OPENBLAS_")

_TAIL_BYTES = 4096
_REAP_S = 2.0


def child_environment(source: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment for a child process: a short list of what it needs, offline flags set."""
    source = os.environ if source is None else source
    kept = {
        name: value
        for name, value in source.items()
        if name.upper() in _ENVIRONMENT_KEPT or name.startswith(_ENVIRONMENT_KEPT_PREFIXES)
    }
    # The engine's own threads do the work; a second pool only costs memory. Without the last one a ggml that aborts
    # starts a debugger on itself, where one is installed.
    offline = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    return kept | offline | {"OPENBLAS_NUM_THREADS": "1", "GGML_NO_BACKTRACE": "1"}


@dataclass(frozen=True, slots=True)
class WorkerCommand:
    """How a worker is started: data, so that another runtime's Python can stand here.

    Attributes:
        argv: the command line up to the arguments every worker takes.
        environment: the child's whole environment.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=child_environment)


def bundled_worker() -> WorkerCommand:
    """Return the command of a worker on this Python."""
    return WorkerCommand((sys.executable, "-I", str(_WORKER_SCRIPT)))


@dataclass(frozen=True, slots=True)
class EngineDied:
    """The process is gone. The last event of every client.

    Attributes:
        exit_code: its exit code; None when a signal ended it or it never started.
        signal: the number of the signal that ended it; None for none.
        last_log_lines: the end of its log.
        cause: "exited", "killed" (by this program), "protocol" (it spoke nonsense), "not_started",
            "unheard" (whoever took its events failed) or "replaced" (by the supervisor, for another model).
    """

    exit_code: int | None
    signal: int | None
    last_log_lines: tuple[str, ...]
    cause: str


ClientEvent = protocol.Event | EngineDied
OnEvent = Callable[["EngineClient", ClientEvent], None]


class EngineClient:
    """One worker process, from start to death. Not reusable.

    Attributes:
        pid: the process id; 0 before the start.
        _on_event: called on the reader thread with every event; EngineDied is the last.
    """

    def __init__(self, command: WorkerCommand, backend: str, log_path: Path, on_event: OnEvent) -> None:
        self.pid = 0
        self._command = command
        self._backend = backend
        self._log_path = log_path
        self._on_event = on_event
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: wire.MessagePipe[protocol.Event] | None = None
        self._outgoing: queue.SimpleQueue[protocol.Command | None] = queue.SimpleQueue()
        self._was_killed = threading.Event()
        self._heard_s = time.monotonic()
        self._step_age_s = 0.0
        self._reader = threading.Thread(target=self._run, name="engine-reader", daemon=True)

    # ---------------------------------------------------------------------------------------- callers

    def start(self) -> None:
        """Start the process and its threads; returns at once."""
        self._reader.start()

    def send(self, command: protocol.Command) -> None:
        """Queue a command; never blocks. After the worker's death it goes nowhere."""
        self._outgoing.put(command)

    def kill(self) -> None:
        """End the process now, whatever it does; EngineDied follows."""
        self._was_killed.set()
        process = self._process
        if process is not None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()

    def join(self, timeout_s: float) -> bool:
        """Wait until the process is gone and every event was handed on; returns whether it is so."""
        if threading.current_thread() is not self._reader and self._reader.ident is not None:
            self._reader.join(timeout_s)
        return not self._reader.is_alive()

    @property
    def silence_s(self) -> float:
        """Seconds since anything was heard of the worker; the meter alone speaks ten times a second."""
        return time.monotonic() - self._heard_s

    @property
    def step_age_s(self) -> float:
        """Age in seconds of the step in progress at the last reading."""
        return self._step_age_s

    # ----------------------------------------------------------------------------------- reader thread

    def _run(self) -> None:
        sender = threading.Thread(target=self._send_all, name="engine-sender", daemon=True)
        try:
            self._start_process()
        except OSError as error:
            self._on_event(self, EngineDied(None, None, (str(error),), "not_started"))
            return
        sender.start()
        cause = "unheard"  # somebody who took an event failed: without a listener the engine must not live on
        try:
            cause = self._read_all()
        finally:
            if cause == "unheard":
                self.kill()
            died = self._reap(cause)
            self._outgoing.put(None)
            sender.join()
            if self._pipe is not None:
                self._pipe.close()
            self._on_event(self, died)

    def _start_process(self) -> None:
        connection, child_end = wire.connection_pair()
        self._pipe = wire.event_pipe(connection)
        arguments = ("--fd", str(child_end), "--backend", self._backend, "--parent", str(os.getpid()))
        try:
            with self._open_log() as log:
                self._process = subprocess.Popen(
                    (*self._command.argv, *arguments),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=(child_end,),
                    env=dict(self._command.environment),
                    cwd="/" if os.name == "posix" else None,
                    start_new_session=True,  # Ctrl+C in a terminal is ours to handle
                )
        finally:
            os.close(child_end)
        self.pid = self._process.pid
        if self._was_killed.is_set():
            self._process.kill()
        self._heard_s = time.monotonic()

    def _open_log(self) -> IO[bytes]:
        try:
            return self._log_path.open("ab")
        except OSError:  # a full or read-only folder must not keep an engine from running
            return Path(os.devnull).open("ab")

    def _read_all(self) -> str:
        """Hand events on until the pipe ends; returns why it did."""
        assert self._pipe is not None
        while True:
            try:
                event = self._pipe.receive()
            except (EOFError, OSError):
                return "exited"
            except wire.MessageError:
                self.kill()
                return "protocol"
            self._heard_s = time.monotonic()
            if isinstance(event, protocol.MemoryRead):
                self._step_age_s = event.step_age_s
            self._on_event(self, event)

    def _reap(self, cause: str) -> EngineDied:
        """Wait for the process and say how it ended."""
        assert self._process is not None
        try:
            code = self._process.wait(_REAP_S)
        except subprocess.TimeoutExpired:  # it closed the pipe and lives on
            self._process.kill()
            code = self._process.wait()
        if cause == "exited" and self._was_killed.is_set():
            cause = "killed"
        exit_code, ended_by = (code, None) if code >= 0 else (None, -code)
        return EngineDied(exit_code, ended_by, self.last_log_lines(), cause)

    def last_log_lines(self, count: int = 20) -> tuple[str, ...]:
        """Return the end of the worker's log."""
        try:
            with self._log_path.open("rb") as log:
                log.seek(0, os.SEEK_END)
                log.seek(max(0, log.tell() - _TAIL_BYTES))
                text = log.read().decode(errors="replace")
        except OSError:
            return ()
        return tuple(text.splitlines()[-count:])

    # ----------------------------------------------------------------------------------- sender thread

    def _send_all(self) -> None:
        assert self._pipe is not None
        while (command := self._outgoing.get()) is not None:
            with contextlib.suppress(OSError):  # the reader notices the death
                self._pipe.send(command)
