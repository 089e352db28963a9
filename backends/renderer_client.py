"""The program's handle on the template renderer: starts it, asks it, kills it when it takes too long.

Knows nothing of Jinja and never runs a template itself.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec

from backends import wire
from backends.errors import EngineError, ErrorCode
from backends.protocol import RenderedPrompt
from backends.renderer_messages import (
    MAX_RENDERED_BYTES,
    MAX_TEMPLATE_BYTES,
    RENDER_LIMIT_S,
    RendererStarted,
    RenderMessage,
    RenderTemplate,
    TemplateFailed,
    TemplateRendered,
    client_end,
)

# What app/ needs for a request stands here too: it imports this module and none behind it.
__all__ = ["FALLBACK_TEMPLATE", "RenderMessage", "RenderTemplate", "RendererClient"]

# ChatML: the form that most models without a template of their own have seen in training.
FALLBACK_TEMPLATE = """\
{% for message in messages %}
{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}
{%- endfor %}
{% if add_generation_prompt %}
{{ '<|im_start|>assistant\\n' }}
{%- endif %}
"""

_SCRIPT = Path(__file__).resolve().with_name("renderer.py")

# Python, Jinja and a virus scanner on a cold disk; 0.2 s is usual.
_START_LIMIT_S = 30.0

# The renderer ends itself a little after its client would have killed it: the client's word comes first.
_ALARM_MARGIN_S = 0.2

# All that the renderer gets of the program's environment: no token, no proxy, no search path for modules.
_KEPT_VARIABLES = ("TZ", "TZDIR", "SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")

_TEMPLATE_CODES = (
    ErrorCode.TEMPLATE_MISSING,
    ErrorCode.TEMPLATE_BROKEN,
    ErrorCode.TEMPLATE_TOO_SLOW,
    ErrorCode.TEMPLATE_TOO_LONG,
)

_GONE = (EOFError, OSError, wire.MessageError)


class RendererClient:
    """Renders dialogues with chat templates in a child process of its own.

    The child is started by the first rendering and kept; after its death the next rendering starts another. Any
    thread may render; they take turns. The child has no parent-death signal, since that would fire when the thread
    that happened to start it ends: it ends at the end of its pipe, and by its own alarm in the middle of a rendering.

    Attributes:
        _python: the interpreter that runs the child.
        _limit_s: wall time of one rendering, the start of the child not counted.
        _lock: held while the child is asked.
        _child: the running child, None before the first rendering and after a death.
        _is_closed: no child is started any more.
    """

    def __init__(self, python: Path | None = None, limit_s: float = RENDER_LIMIT_S) -> None:
        self._python = python or Path(sys.executable)
        self._limit_s = limit_s
        self._lock = threading.Lock()
        self._child: _Child | None = None
        self._is_closed = False

    @property
    def pid(self) -> int | None:
        """The child's process id, None while there is none."""
        child = self._child
        return child.process.pid if child else None

    def render(self, request: RenderTemplate) -> RenderedPrompt:
        """Return the dialogue after the chat template.

        Raises:
            EngineError: TEMPLATE_MISSING, TEMPLATE_BROKEN, TEMPLATE_TOO_SLOW or TEMPLATE_TOO_LONG, which
                render_or_fallback survives; ENGINE_FAULT if the renderer does not start or is closed.
        """
        request = _checked(request, self._limit_s + _ALARM_MARGIN_S)
        with self._lock:
            event = self._ask(request)
        if isinstance(event, TemplateRendered):
            return event.prompt
        if event.code is ErrorCode.TEMPLATE_TOO_LONG:
            raise EngineError(event.code, limit_bytes=MAX_RENDERED_BYTES)
        raise EngineError(event.code, detail=event.detail, line=event.line)

    def render_or_fallback(self, request: RenderTemplate) -> tuple[RenderedPrompt, EngineError | None]:
        """Return the dialogue after the chat template, or after FALLBACK_TEMPLATE and why.

        Raises:
            EngineError: the fallback cannot be rendered either.
        """
        try:
            return self.render(request), None
        except EngineError as error:
            if error.code not in _TEMPLATE_CODES:
                raise
            return self.render(msgspec.structs.replace(request, template=FALLBACK_TEMPLATE)), error

    def close(self) -> None:
        """End the child, also in the middle of a rendering, which then fails. A second call does nothing."""
        self._is_closed = True
        child = self._child
        if child is not None:
            child.process.kill()
        with self._lock:
            self._drop_child()

    def _ask(self, request: RenderTemplate) -> TemplateRendered | TemplateFailed:
        """Ask the child, and once more a fresh one if the old one had died unnoticed."""
        while True:
            child = self._running_child()
            is_fresh = child.renderings == 0
            try:
                return child.ask(request, self._limit_s)
            except _GONE:
                self._drop_child()
            if child.took_too_long():
                raise EngineError(ErrorCode.TEMPLATE_TOO_SLOW, limit_s=self._limit_s)
            if is_fresh and not self._is_closed:
                raise EngineError(
                    ErrorCode.TEMPLATE_BROKEN, detail="the template renderer ended while reading it", line=0
                )

    def _running_child(self) -> _Child:
        if self._child is not None and self._child.process.poll() is not None:
            self._drop_child()
        if self._is_closed:
            raise EngineError(ErrorCode.ENGINE_FAULT, detail="the template renderer is closed")
        if self._child is None:
            try:
                self._child = _Child(self._python)
                self._child.wait_until_started()
            except _GONE as error:
                self._drop_child()
                detail = f"the template renderer did not start: {str(error) or type(error).__name__}"
                raise EngineError(ErrorCode.ENGINE_FAULT, detail=detail) from error
        return self._child

    def _drop_child(self) -> None:
        if self._child is not None:
            self._child.end()
            self._child = None


class _Child:
    """One renderer process.

    Attributes:
        process: the process.
        renderings: how many it was asked for.
        _pipe: our end of its pipe.
        _is_expired: it was killed for being silent too long.
    """

    def __init__(self, python: Path) -> None:
        connection, descriptor = wire.connection_pair()
        self._pipe = client_end(connection)
        try:
            self.process = subprocess.Popen(
                [str(python), "-I", str(_SCRIPT), "--fd", str(descriptor)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,  # a trace of Python's could quote the dialogue
                cwd=_SCRIPT.parent,  # the program's own may lie on a disk that a person wants to take out
                env={name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
                pass_fds=(descriptor,),
            )
        except OSError:
            self._pipe.close()
            raise
        finally:
            os.close(descriptor)
        self.renderings = 0
        self._is_expired = False

    def wait_until_started(self) -> None:
        """Wait for its first word; raises one of _GONE."""
        with self._killed_after(_START_LIMIT_S):
            event = self._pipe.receive()
        if not isinstance(event, RendererStarted):
            raise wire.MessageError("not the renderer's first word")

    def ask(self, request: RenderTemplate, limit_s: float) -> TemplateRendered | TemplateFailed:
        """Return the answer; raises one of _GONE."""
        self.renderings += 1
        with self._killed_after(limit_s):
            self._pipe.send(request)
            event = self._pipe.receive()
        if isinstance(event, RendererStarted):
            raise wire.MessageError("the renderer's first word in place of an answer")
        return event

    def took_too_long(self) -> bool:
        """Whether an ended child ended by a limit of time."""
        alarms = [-getattr(signal, name) for name in ("SIGALRM", "SIGXCPU") if hasattr(signal, name)]
        return self._is_expired or self.process.returncode in alarms

    def end(self) -> None:
        """Kill it and wait until nothing is left of it."""
        self.process.kill()
        self.process.wait()
        self._pipe.close()

    @contextlib.contextmanager
    def _killed_after(self, limit_s: float) -> Iterator[None]:
        """Kill the child if what is inside takes longer: a kill ends every wait for it, half an answer included."""
        timer = threading.Timer(limit_s, self._expire)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()

    def _expire(self) -> None:
        self._is_expired = True
        self.process.kill()


def _checked(request: RenderTemplate, alarm_s: float) -> RenderTemplate:
    """Return the request as it can travel; raises EngineError for what needs no renderer to be refused."""
    if not request.template.strip():
        raise EngineError(ErrorCode.TEMPLATE_MISSING)
    if len(request.template.encode("utf-8", "replace")) > MAX_TEMPLATE_BYTES:
        detail = f"it is longer than {MAX_TEMPLATE_BYTES // 1024} KiB"
        raise EngineError(ErrorCode.TEMPLATE_BROKEN, detail=detail, line=0)
    messages = tuple(
        msgspec.structs.replace(message, content=_whole_characters(message.content)) for message in request.messages
    )
    if sum(len(message.content.encode()) for message in messages) > MAX_RENDERED_BYTES:
        raise EngineError(ErrorCode.TEMPLATE_TOO_LONG, limit_bytes=MAX_RENDERED_BYTES)
    return msgspec.structs.replace(
        request, template=_whole_characters(request.template), messages=messages, limit_s=alarm_s
    )


def _whole_characters(text: str) -> str:
    """Replace halves of characters, which Qt's clipboard can bring and no encoding can carry."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
