"""The self-test: starts an engine, loads the starter model, keeps a chat, draws a window; on nobody's own data.

Everything lies in a temporary folder that is removed at the end. Knows no terminal; the window is drawn by a child
process, since a missing system library may end it.
"""

from __future__ import annotations

import functools
import os
import queue
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from app.chat.messages import JsonObject, MessageState, Role
from app.chat.store import open_store
from app.cli_chat import WaitingChat
from app.context import build_context
from app.deaths import words_for_death
from app.engines.supervisor import EngineEvent, EngineSupervisor, LoadRequest
from app.errors import AppError, Words, one_line, words_for, words_for_exception
from app.i18n import _
from app.log import new_worker_log
from app.models.library import LibraryError
from app.paths import install_folder
from backends import protocol
from backends.client import EngineDied
from backends.errors import EngineError

# Nothing here takes a tenth of this on a slow machine; a self-test that hangs tells nothing.
_LIMIT_S = 120.0

_TEN_TOKENS = "ten tokens"  # the echo engine's token is a byte
_PNG_START = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of one check.

    Attributes:
        name: what was checked.
        is_passed: whether it works.
        reason: what was seen, or why it failed.
        duration_s: how long it took.
    """

    name: str
    is_passed: bool
    reason: str
    duration_s: float


def run_checks(report: Callable[[Check], None] | None = None, backend: str = "") -> list[Check]:
    """Check everything, tell each outcome as it comes, and return them all.

    Args:
        report: told each outcome.
        backend: which backend is to load the starter model; "" for the one that takes it by itself.
    """
    checks: list[Check] = []
    with tempfile.TemporaryDirectory(prefix="cutaway-selftest-", ignore_cleanup_errors=True) as folder:
        for name, work in _WORKS.items():
            home = Path(folder) / name
            home.mkdir()
            check = _checked(name, functools.partial(work, backend=backend) if work is _starter else work, home)
            checks.append(check)
            if report is not None:
                report(check)
    return checks


def check_json(check: Check) -> JsonObject:
    """Return a check with the keys of `cutaway selftest --json`."""
    return {
        "name": check.name,
        "passed": check.is_passed,
        "reason": check.reason,
        "duration_s": round(check.duration_s, 3),
    }


def _checked(name: str, work: Callable[[Path], str], home: Path) -> Check:
    began_s = time.monotonic()
    try:
        reason, is_passed = work(home), True
    except LibraryError as error:
        reason, is_passed = str(error), False
    except (AppError, EngineError, OSError, MemoryError) as error:
        words = words_for_exception(error)
        reason, is_passed = f"{words.message} {words.hint}".strip(), False
    return Check(name, is_passed, reason, time.monotonic() - began_s)


def _fail(message: str, hint: str = "") -> AppError:
    return AppError(Words(message, hint))


# ------------------------------------------------------------------------------------------------- checks


def _echo(home: Path) -> str:
    """Start an engine that needs no model and have it repeat ten tokens."""
    events: queue.SimpleQueue[EngineEvent] = queue.SimpleQueue()
    engine = EngineSupervisor(lambda: new_worker_log(home), events.put)
    request_id = protocol.RequestId(1)
    pieces: list[protocol.Piece] = []
    engine.load(LoadRequest("", "echo"))
    try:
        while True:
            match _next_event(events):
                case protocol.ModelLoaded():
                    params = protocol.SamplingParams(max_tokens=len(_TEN_TOKENS))
                    prompt = protocol.Text(_TEN_TOKENS)
                    engine.send(protocol.Generate(request_id=request_id, prompt=prompt, params=params))
                case protocol.StepDone() as step:
                    pieces += step.pieces
                case protocol.RequestFinished():
                    break
                case protocol.EngineFailed() as failed:
                    raise AppError(words_for(failed.code, failed.parameters))
                case EngineDied() as died:
                    raise AppError(
                        words_for_death(died.exit_code, died.signal, cause=died.cause, log_lines=died.last_log_lines)
                    )
    finally:
        engine.close()
    text = "".join(piece.text for piece in pieces)
    tokens = sum(len(piece.token_ids) for piece in pieces)
    if text != _TEN_TOKENS or tokens != len(_TEN_TOKENS):
        raise _fail(_("Ten tokens were to come back, and “{text}” came.").format(text=one_line(text)))
    return _("ten tokens went to an engine's process and came back")


def _next_event(events: queue.SimpleQueue[EngineEvent]) -> EngineEvent:
    try:
        return events.get(timeout=_LIMIT_S)  # the engine's meter alone speaks ten times a second
    except queue.Empty as error:
        raise _fail(_("The engine said nothing."), _("Try again when the machine has less to do.")) from error


class _Unseen:
    """A face that nobody looks at."""

    def text(self, piece: str) -> None:
        """Nothing."""

    def notice(self, words: Words) -> None:
        """Nothing."""

    def progress(self, fraction: float) -> None:
        """Nothing."""


def _starter(home: Path, backend: str = "") -> str:
    """Load the starter model and have it answer a question in a chat."""
    context = build_context({"CUTAWAY_HOME": str(home)})
    try:
        entry = context.library.starter()
        if entry is None:
            raise _fail(_("The starter model is not there."), _("Install Cutaway again."))
        chat = WaitingChat(context, _Unseen(), _LIMIT_S)
        backend = backend or context.backend_of(entry)
        loaded = chat.load(LoadRequest(str(entry.path), backend, context.load_params(entry, backend)))
        chat.begin(params={"temperature": 0.0, "max_tokens": 6, "seed": 1})
        answer = chat.ask("Say hello.")
        if answer.words is not None:
            raise AppError(answer.words)
        if answer.message.state is not MessageState.COMPLETE or not answer.message.text.strip():
            raise _fail(_("{name} was loaded, but did not answer.").format(name=entry.name))
        written = _("{name} runs on the {device} ({variant}) and wrote: {text}")
        text = one_line(answer.message.text, 60)
        return written.format(name=entry.name, device=loaded.device, variant=loaded.engine_variant, text=text)
    finally:
        context.close()


def _store(home: Path) -> str:
    """Keep a message in a database, open it again and read it."""
    path = home / "chats.sqlite3"
    said = "a message"
    opened = open_store(path)
    try:
        for notice in opened.notices:
            raise _fail(notice.message, notice.hint)
        chat = opened.store.add_chat("selftest")
        opened.store.add_message(chat.chat_id, None, Role.USER, said)
        opened.store.settled().result(_LIMIT_S)
    finally:
        opened.store.close()
    again = open_store(path).store
    try:
        texts = [message.text for message in again.branch(chat.chat_id)]
    finally:
        again.close()
    if texts != [said]:
        raise _fail(_("A message was kept, and something else came back."))
    return _("a message was kept and read again")


def _window(home: Path) -> str:
    """Have a child process draw the window into a picture, with no screen."""
    picture = home / "window.png"
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen", "CUTAWAY_HOME": str(home)}
    command = [sys.executable, "-m", "app", "selftest-window", str(picture)]
    try:
        drawn = subprocess.run(
            command, cwd=install_folder(), env=environment, capture_output=True, timeout=_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise _fail(_("The window was not drawn in time."), _("Try again when the machine has less to do.")) from error
    if drawn.returncode != 0:
        lines = drawn.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = one_line(lines[-1]) if lines else _("it ended with code {code}").format(code=drawn.returncode)
        raise _fail(_("The window was not drawn: {reason}").format(reason=reason))
    if not picture.is_file() or not picture.read_bytes().startswith(_PNG_START):
        raise _fail(_("The window was drawn, but left no picture."))
    return _("a window with a plot was drawn without a screen")


_WORKS: dict[str, Callable[[Path], str]] = {
    "engine": _echo,
    "starter model": _starter,
    "store": _store,
    "window": _window,
}
