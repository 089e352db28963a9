"""The template renderer: a small process that runs a model's chat template and can be killed at any moment.

Started as `<python> -I <absolute path of this file> --fd N`; reads RenderTemplate from the inherited pipe, writes one
answer each, and ends when the other end is gone. A chat template is a program written by a stranger: it runs in
Jinja's sandbox, in a process that may open no file, start no process and hold little memory, and that an alarm ends.

The template sees what transformers would show it: the same Jinja settings, tags, filter, functions and variables.
Nothing here knows a model, and nothing of a dialogue is ever logged. Jinja is imported in this file only.

Reference: https://huggingface.co/docs/transformers/chat_templating_writing
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import signal
import sys
from collections.abc import Callable, Sequence
from datetime import datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NoReturn

if __package__ in (None, ""):  # started by path and isolated: nothing of the tree is on sys.path yet
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import jinja2
import msgspec
from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from backends.errors import EngineError, ErrorCode
from backends.protocol import RenderedPrompt
from backends.renderer_cut import cut_prompt
from backends.renderer_messages import (
    MAX_RENDERED_BYTES,
    RendererStarted,
    RenderMessage,
    RenderTemplate,
    TemplateFailed,
    TemplateRendered,
    renderer_end,
)

# Above what the process holds when it is ready. A 4 MB prompt of 1,000 messages takes about 60 MB.
_MEMORY_LIMIT_BYTES = 512 * 1024 * 1024

# A detail longer than this says no more to a person.
_DETAIL_CHARACTERS = 300

# A written text shorter than this is a word of any language and not worth hiding in a detail.
_HIDDEN_CHARACTERS = 4

# What Jinja and Python's strings would import in the middle of a rendering.
_LATE_IMPORTS = (
    "encodings.ascii",
    "encodings.latin_1",
    "html",
    "html.entities",
    "jinja2.constants",
    "jinja2.debug",
    "pprint",
    "unicodedata",
)

# What running a stranger's program can raise. Anything else ends this process, which its client also survives.
_FAULTS = (
    jinja2.TemplateError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    BufferError,
    ImportError,
    LookupError,
    MemoryError,
    NameError,
    OSError,
    RuntimeError,
    StopIteration,
    SyntaxError,
    TypeError,
    ValueError,
)


class GenerationTag(Extension):
    """The `{% generation %}` tag, with which templates mark answers for training: its body is rendered as it is."""

    tags = {"generation"}  # noqa: RUF012 - Jinja's own class attribute

    def parse(self, parser: Parser) -> nodes.Node:
        """Return the body as a call, which gives it a scope of its own as in transformers."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller: Callable[[], str]) -> str:
        return caller()


class TemplateRenderer:
    """Renders dialogues with the templates it is given, one at a time.

    Attributes:
        _jinja: the sandbox.
        _now: the time a template sees, one for all renderings of a dialogue.
        _compiled: the last template that rendered, by its text.
    """

    def __init__(self) -> None:
        self._now = datetime.now()
        self._compiled: dict[str, jinja2.Template] = {}
        self._jinja = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[GenerationTag, "jinja2.ext.loopcontrols"]
        )
        self._jinja.filters["tojson"] = _to_json
        self._jinja.globals["raise_exception"] = _raise_exception
        self._jinja.globals["strftime_now"] = self._strftime_now

    def answer(self, command: RenderTemplate) -> TemplateRendered | TemplateFailed:
        """Render one dialogue; whatever is wrong with the template becomes a TemplateFailed."""
        self._now = datetime.now()
        try:
            return TemplateRendered(self._render(command))
        except EngineError as error:
            detail = str(error.parameters.get("detail", ""))
            return TemplateFailed(error.code, _readable(detail, command.messages), int(error.parameters.get("line", 0)))

    def _render(self, command: RenderTemplate) -> RenderedPrompt:
        template = self._compile(command.template)
        try:
            prompt = self._render_messages(template, command)
        except EngineError as error:
            merged = _system_in_user(command.messages)
            if error.code is not ErrorCode.TEMPLATE_BROKEN or merged is None:
                raise
            # Many templates know no system role and say so by raising. If it was not that, the first error is the
            # one that tells a person more.
            try:
                prompt = self._render_messages(template, msgspec.structs.replace(command, messages=merged))
            except EngineError:
                raise error from None
        self._compiled = {command.template: template}
        return prompt

    def _compile(self, text: str) -> jinja2.Template:
        if text in self._compiled:
            return self._compiled[text]
        self._compiled = {}  # a template may hold a constant as large as the memory limit
        try:
            return self._jinja.from_string(text)
        except _FAULTS as error:
            raise _broken(error) from None

    def _render_messages(self, template: jinja2.Template, command: RenderTemplate) -> RenderedPrompt:
        messages = command.messages

        def render_again(contents: Sequence[str]) -> str | None:
            try:
                return self._render_text(template, command, contents)
            except EngineError:
                return None

        rendered = self._render_text(template, command, [message.content for message in messages])
        if messages and not rendered.strip():
            raise EngineError(ErrorCode.TEMPLATE_BROKEN, detail="it writes nothing", line=0)
        return cut_prompt(messages, rendered, render_again)

    def _render_text(self, template: jinja2.Template, command: RenderTemplate, contents: Sequence[str]) -> str:
        """Return what the template makes of these contents in the places of the dialogue's own."""
        turns = [
            {"role": message.role, "content": content}
            for message, content in zip(command.messages, contents, strict=True)
        ]
        variables: dict[str, Any] = {
            "tools": None,
            "documents": None,
            **command.extra,
            "messages": turns,
            "add_generation_prompt": command.add_generation_prompt,
            "bos_token": command.bos_text,
            "eos_token": command.eos_text,
        }
        pieces = []
        length = 0  # in characters, of which a byte is at most one
        try:
            for piece in template.generate(variables):
                pieces.append(piece)
                length += len(piece)
                if length > MAX_RENDERED_BYTES:
                    break
            text = "".join(pieces)
            if length > MAX_RENDERED_BYTES or len(text.encode()) > MAX_RENDERED_BYTES:
                raise EngineError(ErrorCode.TEMPLATE_TOO_LONG, limit_bytes=MAX_RENDERED_BYTES)
        except _FAULTS as error:
            raise _broken(error) from None
        return text

    def _strftime_now(self, layout: str) -> str:
        """Return the time in a layout of strftime."""
        return self._now.strftime(layout)


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Write a value as JSON, without the escapes for web pages that Jinja's own filter adds."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: Any) -> NoReturn:
    """Let a template refuse a dialogue in its own words."""
    raise jinja2.TemplateError(str(message))


def _system_in_user(messages: tuple[RenderMessage, ...]) -> tuple[RenderMessage, ...] | None:
    """Move a system prompt into the first message of the person; None if there is no such pair."""
    if len(messages) < 2 or messages[0].role != "system" or messages[1].role != "user":
        return None
    system, user, *rest = messages
    content = f"{system.content}\n\n{user.content}" if system.content.strip() else user.content
    return (RenderMessage("user", content), *rest)


def _broken(error: BaseException) -> EngineError:
    """Map what a template raised to the one error that leaves this process."""
    if isinstance(error, MemoryError):
        detail = "it takes more memory than a chat template may"
    elif isinstance(error, jinja2.TemplateError):
        detail = str(error.message)
    else:
        detail = f"{type(error).__name__}: {error}"
    return EngineError(ErrorCode.TEMPLATE_BROKEN, detail=detail, line=_line_of(error))


def _line_of(error: BaseException) -> int:
    """Return the template's line at which an error arose, 0 when unknown."""
    if isinstance(error, jinja2.TemplateSyntaxError):
        return error.lineno
    line = 0
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _readable(detail: str, messages: Sequence[RenderMessage]) -> str:
    """Return a detail as one short line without anything of the dialogue, so that it may be logged."""
    for message in messages:
        content = message.content.strip()
        if len(content) >= _HIDDEN_CHARACTERS:
            detail = detail.replace(content, "…")
    return " ".join(detail[: 10 * _DETAIL_CHARACTERS].split())[:_DETAIL_CHARACTERS]


def _put_limits_on() -> None:
    """Give up what no template needs. What the system does not know (Windows, partly macOS) stays as it is.

    Nothing can be opened after this, so everything that Jinja imports late is imported before.
    """
    try:
        import resource
    except ImportError:
        return
    limits = [(name, 0) for name in ("RLIMIT_CORE", "RLIMIT_FSIZE", "RLIMIT_NPROC", "RLIMIT_NOFILE")]
    held_bytes = _held_bytes(resource.getpagesize())
    if held_bytes:
        limits.append(("RLIMIT_AS", held_bytes + _MEMORY_LIMIT_BYTES))
    for name, limit in limits:
        try:
            resource.setrlimit(getattr(resource, name), (limit, limit))
        except (AttributeError, ValueError, OSError):
            continue


def _held_bytes(page_bytes: int) -> int:
    """Return the address space in use, 0 where the system does not say."""
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[0]) * page_bytes
    except (OSError, ValueError):
        return 0


def _set_alarm(limit_s: float) -> None:
    """Let the system end this process after so much wall or processor time; 0 takes the alarm off.

    The client keeps the same limit. This one holds when the client is gone.
    """
    if not hasattr(signal, "setitimer"):
        return
    import resource

    signal.setitimer(signal.ITIMER_REAL, limit_s)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    soft = math.ceil(usage.ru_utime + usage.ru_stime + limit_s) + 1
    if hard == resource.RLIM_INFINITY or soft <= hard:
        resource.setrlimit(resource.RLIMIT_CPU, (soft, hard))


def _warm_up(renderer: TemplateRenderer) -> None:
    """Render once and fail once, so that nothing is imported or looked up after the limits are on."""
    for name in _LATE_IMPORTS:
        importlib.import_module(name)
    for template in ("{{ strftime_now('%c') }}{{ messages | tojson }}{{ lipsum(1) }}", "{{ 1 // 0 }}"):
        renderer.answer(RenderTemplate(template=template, messages=(RenderMessage("user", "a"),)))


def main() -> None:
    """Answer until the other end of the pipe is gone."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--fd", type=int, required=True)
    connection = Connection(parser.parse_args().fd)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl+C in a terminal is for the program, which closes the pipe
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    pipe = renderer_end(connection)
    renderer = TemplateRenderer()
    _warm_up(renderer)
    _put_limits_on()
    try:
        pipe.send(RendererStarted())
        while True:
            command = pipe.receive()
            _set_alarm(command.limit_s)
            event = renderer.answer(command)
            _set_alarm(0)
            pipe.send(event)
    except (EOFError, OSError):
        return


if __name__ == "__main__":
    main()
