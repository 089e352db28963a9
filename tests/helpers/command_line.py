"""The real program, started as a person starts it: in a pipe, or in a terminal of its own.

Everything is asserted from outside: what it printed, how it ended, what is in the database, which processes are left.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import psutil

from app.chat.messages import Message
from app.chat.store import open_store
from backends.echo_engine import EchoScript

ROOT = Path(__file__).resolve().parent.parent.parent
PATIENCE_S = 60.0
PLAIN_TEMPLATE = "{% for message in messages %}{{ message['content'] }}{% endfor %}"


def write_script(folder: Path, answer: str, chat_template: str = PLAIN_TEMPLATE, **script: Any) -> str:
    """Write a script for the echo engine, with further fields of EchoScript; return its path as text."""
    path = folder / "script.json"
    path.write_bytes(msgspec.json.encode(EchoScript(answer=answer, chat_template=chat_template, **script)))
    return str(path)


def environment(**changes: str) -> dict[str, str]:
    """Return this test's environment, changed; an empty value removes a variable."""
    merged = {**os.environ, **changes}
    return {name: value for name, value in merged.items() if value or name not in changes}


def run_cutaway(
    *arguments: str, stdin: bytes | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Run `python -m app` to its end; without stdin there is nothing to read."""
    given = {"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}
    return subprocess.run(
        [sys.executable, "-m", "app", *arguments],
        cwd=ROOT,
        env=dict(env) if env is not None else None,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
        **given,
    )


def text_of(data: bytes) -> str:
    """Return output as text; anything that is not UTF-8 fails the test."""
    return data.decode("utf-8")


def stored_chats(home: Path) -> list[list[Message]]:
    """Return the shown branch of every chat in the database, the one used last first."""
    store = open_store(home / "data" / "chats.sqlite3").store
    try:
        return [list(store.branch(chat.chat_id)) for chat in store.chats()]
    finally:
        store.close()


def children_of(pid: int) -> list[psutil.Process]:
    """Return the processes that a process has started."""
    return psutil.Process(pid).children(recursive=True)


class Typing:
    """The program in a terminal of its own, and somebody who types.

    Attributes:
        process: the program.
        screen: everything that was shown so far, as it came.
    """

    def __init__(self, process: subprocess.Popen[bytes], terminal: int) -> None:
        self.process = process
        self.screen = b""
        self._terminal = terminal

    def keys(self, text: str) -> None:
        """Press these keys."""
        os.write(self._terminal, text.encode())

    def see(self, text: str, start: int = 0) -> int:
        """Wait until a text is on the screen behind this place; return where it ends."""
        deadline = time.monotonic() + PATIENCE_S
        while not self._shows(text, start):
            if not self._read(deadline):
                raise AssertionError(f"{text!r} was not shown; this was: {self.screen[start:]!r}")
        return self._end_of(text, start)

    def interrupt(self, text: str, start: int = 0) -> int:
        """Press Ctrl+C until a text is on the screen behind this place; return where it ends.

        As a person does: Python's line editor notices an interrupt that comes right between its prompt and its wait
        for keys with the next key only.
        """
        for _ in range(int(PATIENCE_S)):
            self.keys("\x03")
            deadline = time.monotonic() + 1.0
            while not self._shows(text, start) and self._read(deadline):
                pass
            if self._shows(text, start):
                break
        return self.see(text, start)

    def leave(self) -> int:
        """Press Ctrl+D until the program has ended; return its exit code.

        Again and again as for interrupt(): a key that comes while the line editor changes the terminal's mode is lost.
        """
        for _ in range(int(PATIENCE_S)):
            with contextlib.suppress(OSError):  # it ended meanwhile
                self.keys("\x04")
            deadline = time.monotonic() + 1.0
            while self._read(deadline):
                pass
            if self.process.poll() is not None:
                break
        return self.end()

    def end(self) -> int:
        """Read until the program has ended; return its exit code."""
        while self._read(time.monotonic() + PATIENCE_S):
            pass
        return self.process.wait(PATIENCE_S)

    def _shows(self, text: str, start: int) -> bool:
        return text.encode() in self.screen[start:]

    def _end_of(self, text: str, start: int) -> int:
        wanted = text.encode()
        return self.screen.index(wanted, start) + len(wanted)

    def _read(self, deadline: float) -> bool:
        """Take what is shown next; False when the program has ended or nothing comes until the deadline."""
        wait_s = max(0.0, deadline - time.monotonic())
        if not select.select([self._terminal], [], [], wait_s)[0]:
            return False
        try:
            data = os.read(self._terminal, 65536)
        except OSError as error:  # Linux's way to say that nobody has the terminal open any more
            if error.errno != errno.EIO:
                raise
            return False
        self.screen += data
        return bool(data)


@contextlib.contextmanager
def typing(*arguments: str, env: Mapping[str, str] | None = None) -> Iterator[Typing]:
    """Start `python -m app` in a terminal; end it at the end."""
    ours, theirs = pty.openpty()

    process = subprocess.Popen(
        ["setsid", "--ctty", sys.executable, "-m", "app", *arguments],  # Ctrl+C needs a terminal of its own
        cwd=ROOT,
        env=dict(env) if env is not None else environment(TERM="xterm"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    try:
        yield Typing(process, ours)
    finally:
        process.kill()
        process.wait()
        os.close(ours)
