"""The real window program in a process of its own, driven by tests/end_to_end/driver.py and watched from outside.

Whatever a drill wants to know beyond what a person sees is asked of the system: the process table, the database file,
the folders. Waiting is polling with a deadline; nothing here sleeps for a fixed time.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import psutil

ROOT = Path(__file__).resolve().parent.parent.parent
DRIVER = "tests.end_to_end.driver"

START_S = 30.0
PATIENCE_S = 60.0
_POLL_S = 0.02

State = dict[str, Any]
_T = TypeVar("_T")

# A greedy answer is the same each time, and to this prompt it goes on for hundreds of tokens.
LONG_ANSWER = "Write a very long story about a lighthouse keeper, with many chapters."
SHORT_ANSWER = "Say hello."
# Some 6,000 tokens: seconds of reading.
LONG_PROMPT = "Repeat the last word of this text. " + " ".join(f"w{number}" for number in range(1_400))


def wait_for(look: Callable[[], _T | None], what: str, limit_s: float = PATIENCE_S) -> _T:
    """Return the first thing that `look` finds; fails the test when there is none in time."""
    deadline_s = time.monotonic() + limit_s
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline_s:
            raise AssertionError(f"{what}: not within {limit_s:g} s")
        time.sleep(_POLL_S)


def stretched(limit_s: float) -> float:
    """Return a limit of the law as it holds here: longer where other programs keep the processors busy."""
    return limit_s * max(1.0, os.getloadavg()[0] / (os.cpu_count() or 1))


def report(line: str) -> None:
    """Print a measurement for whoever reads the drill's output (`pytest -s`, or `-rP` for those that passed)."""
    print(line)


def write_settings(home: Path, **changes: object) -> None:
    """Have the next start use these settings: greedy answers, unless something else is asked for."""
    folder = home / "config"
    folder.mkdir(parents=True, exist_ok=True)
    settings: dict[str, object] = {"temperature": 0.0, "seed": 1, **changes}
    (folder / "settings.json").write_bytes(msgspec.json.encode(settings))


class DrivenProgram:
    """A running window program; use it as a context manager, which ends it by force if it is still there.

    Attributes:
        home: its CUTAWAY_HOME.
        temporary: its TMPDIR, beside the home; short, since a socket's name goes into it.
        process: the window's process.
        worst_gap_s: the longest time the window stood still so far, as its event loop saw it; a drill may set it to 0.
    """

    def __init__(
        self,
        home: Path,
        *files: Path | str,
        worker: Path | None = None,
        changes: dict[str, str] | None = None,
        prefix: Sequence[str] = (),
    ) -> None:
        self.home = home
        self.temporary = home.with_name(home.name + ".tmp")
        self.temporary.mkdir(exist_ok=True)
        self.worst_gap_s = 0.0
        self._buffer = b""
        self._errors = home.with_name(home.name + ".stderr").open("ab")
        argv = [*prefix, sys.executable, "-m", DRIVER, *(("--worker", str(worker)) if worker else ())]
        own = {"CUTAWAY_HOME": str(home), "TMPDIR": str(self.temporary), "QT_QPA_PLATFORM": "offscreen"}
        self.process = subprocess.Popen(
            [*argv, *map(str, files)],
            cwd=ROOT,
            env={**os.environ, **own, **(changes or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
        )

    def __enter__(self) -> DrivenProgram:
        try:
            self.ask("state", limit_s=START_S)
        except AssertionError:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        left = self.children()
        self.process.kill()
        self.process.wait()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.stdout.close()
        self._errors.close()
        for child in left:  # its own end is what some drills look at; here only nothing must be left
            with contextlib.suppress(psutil.Error):
                child.kill()

    # -------------------------------------------------------------------------------------- the person

    def ask(self, *command: str, limit_s: float = 10.0) -> State:
        """Do something in the window and return its answer; a window that does not answer in time fails the test."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(command).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise AssertionError(self._story("the program is gone")) from None
        return dict(json.loads(self._line(stretched(limit_s), command[0])))

    def state(self) -> State:
        """Return what a person sees now."""
        state = self.ask("state")
        self.worst_gap_s = max(self.worst_gap_s, state.pop("worst_gap_s"))
        return state

    def wait(self, is_so: Callable[[State], bool], what: str, limit_s: float = PATIENCE_S) -> State:
        """Return the first state of which this is true."""
        deadline_s = time.monotonic() + limit_s
        while not is_so(state := self.state()):
            if time.monotonic() > deadline_s:
                raise AssertionError(self._story(f"{what}: not within {limit_s:g} s; last state {state}"))
            time.sleep(_POLL_S)
        return state

    def wait_ready(self, limit_s: float = PATIENCE_S) -> State:
        """Wait until the engine can answer."""
        return self.wait(lambda state: state["life_cycle"] == "ready", "the engine is ready", limit_s)

    def wait_writing(self, characters: int = 20, limit_s: float = PATIENCE_S) -> State:
        """Wait until the last answer has some text and goes on."""
        return self.wait(
            lambda s: s["messages"] and s["messages"][-1]["is_streaming"] and _length(s) >= characters,
            "an answer is being written",
            limit_s,
        )

    def wait_answered(self, limit_s: float = PATIENCE_S) -> State:
        """Wait until nothing is under way and the last message is an answer that has ended."""
        return self.wait(
            lambda s: not s["is_busy"] and s["messages"] and not s["messages"][-1]["is_streaming"],
            "the answer has ended",
            limit_s,
        )

    def wait_notice(self, words: str, limit_s: float = PATIENCE_S) -> State:
        """Wait for a notice that holds these words."""
        return self.wait(
            lambda state: any(words in notice for notice in state["notices"]), f"notice “{words}”", limit_s
        )

    def quit(self) -> int:
        """Close the window and return the exit code."""
        self.ask("quit")
        return self.process.wait(PATIENCE_S)

    # -------------------------------------------------------------------------------------- the system

    def children(self, word: str = "") -> list[psutil.Process]:
        """Return the child processes, those with this word in their command line if one is given."""
        try:
            found = psutil.Process(self.process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []
        return [child for child in found if not word or any(word in part for part in command_line(child))]

    def workers(self) -> list[psutil.Process]:
        """Return the workers that run."""
        return self.children("backends/worker.py")

    def renderers(self) -> list[psutil.Process]:
        """Return the template renderers that run."""
        return self.children("backends/renderer.py")

    def worker(self, limit_s: float = PATIENCE_S) -> psutil.Process:
        """Wait for a worker and return it."""
        return wait_for(self.workers, "a worker", limit_s)[0]

    def _line(self, limit_s: float, name: str) -> bytes:
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        deadline_s = time.monotonic() + limit_s
        while b"\n" not in self._buffer:
            readable, _write, _error = select.select([descriptor], [], [], max(0.0, deadline_s - time.monotonic()))
            if not readable:
                raise AssertionError(self._story(f"the window did not answer “{name}” within {limit_s:g} s"))
            data = os.read(descriptor, 1 << 20)
            if not data:
                raise AssertionError(self._story(f"the program ended at “{name}”: {self.process.wait(PATIENCE_S)}"))
            self._buffer += data
        line, _newline, self._buffer = self._buffer.partition(b"\n")
        return line

    def _story(self, words: str) -> str:
        errors = Path(self._errors.name).read_text(encoding="utf-8", errors="replace")
        return f"{words}\n{errors[-3000:]}"


def _length(state: State) -> int:
    return int(state["messages"][-1]["characters"])


# ------------------------------------------------------------------------------------------ processes and files


def command_line(process: psutil.Process) -> list[str]:
    """Return a process's command line; nothing for one that is gone or waits to be reaped."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def is_gone(process: psutil.Process) -> bool:
    """Return whether a process has ended; whether somebody has waited for it is another question."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def zombies(program: DrivenProgram) -> list[psutil.Process]:
    """Return the children of the program that ended and were never waited for."""
    found = []
    for child in program.children():
        with contextlib.suppress(psutil.NoSuchProcess):
            if child.status() == psutil.STATUS_ZOMBIE:
                found.append(child)
    return found


def maps_of(process: psutil.Process) -> str:
    """Return what is in a process's memory map, as Linux tells it; nothing for one that is gone."""
    try:
        return Path(f"/proc/{process.pid}/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def caught_loading(program: DrivenProgram, model: Path) -> psutil.Process:
    """Load a model and return its worker, stopped in the middle of that: it has mapped the file and said no more.

    A load takes some 0.3 s, so a slow look may come too late; then another load is tried.
    """
    for _attempt in range(10):
        before = {worker.pid for worker in program.workers()}
        program.ask("load", str(model))

        def look(before: set[int] = before) -> psutil.Process | None:
            found = [worker for worker in program.workers() if worker.pid not in before]
            return next((worker for worker in found if model.name in maps_of(worker)), None)

        worker = wait_for(look, "a worker maps the model")
        worker.suspend()
        if program.state()["life_cycle"] == "loading":
            return worker
        worker.resume()
        program.wait_ready()
    raise AssertionError("no load was caught in ten")


def let_die_of(process: psutil.Process, number: int) -> None:
    """Send a signal that also reaches a stopped process."""
    process.send_signal(number)
    with contextlib.suppress(psutil.NoSuchProcess):
        process.send_signal(signal.SIGCONT)


class ChatFile:
    """The database file of a home, opened for reading beside the running program, by SQLite alone."""

    def __init__(self, home: Path) -> None:
        self.path = home / "data" / "chats.sqlite3"

    def messages(self) -> list[dict[str, Any]]:
        """Return every message, oldest first; the stats as data."""
        rows = self._rows("SELECT role, state, text, stats, created_s FROM messages ORDER BY created_s, message_id")
        names = ("role", "state", "text", "stats", "created_s")
        found = [dict(zip(names, row, strict=True)) for row in rows]
        return [{**message, "stats": json.loads(message["stats"] or "{}")} for message in found]

    def last(self) -> dict[str, Any]:
        """Return the newest message."""
        return self.messages()[-1]

    def integrity(self) -> str:
        """Return SQLite's word about the file; "ok" is the good one."""
        return str(self._rows("PRAGMA integrity_check")[0][0])

    def _rows(self, query: str) -> list[tuple[Any, ...]]:
        with contextlib.closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=10.0)) as connection:
            return connection.execute(query).fetchall()


@contextlib.contextmanager
def small_disk(folder: Path, size_kib: int) -> Iterator[Path]:
    """Mount a memory disk of this size; only root can. The folder is a plain one again afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_kib}k", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def can_mount() -> bool:
    """Return whether small_disk() would work here."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        return False
    return subprocess.run(["unshare", "-m", "true"], capture_output=True, check=False).returncode == 0
