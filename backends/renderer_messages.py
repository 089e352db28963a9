"""What the program and its template renderer say to each other, and the limits both of them keep.

Apart from backends/protocol.py on purpose: the renderer is no engine, and its messages may change with the program
because both ends always come from the same tree. Knows nothing of Jinja and nothing of models.
"""

from __future__ import annotations

from multiprocessing.connection import Connection
from typing import Any, TypeVar

import msgspec

from backends import protocol
from backends.errors import ErrorCode
from backends.wire import MessagePipe

# Wall time of one rendering. The slowest honest template takes under 0.1 s on two old cores.
RENDER_LIMIT_S = 2.0

# The longest honest prompt (128k tokens of English) is about 0.6 MB.
MAX_RENDERED_BYTES = 4 * 1024 * 1024

# The longest published chat templates are about 30 kB.
MAX_TEMPLATE_BYTES = 1024 * 1024

Incoming = TypeVar("Incoming")


class RenderMessage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One turn of a dialogue as a chat template sees it.

    Attributes:
        role: "system", "user" or "assistant".
        content: what a person or a model wrote.
        token_ids: the exact ids of an earlier answer, empty when unknown.
    """

    role: str
    content: str
    token_ids: tuple[int, ...] = ()


class RenderTemplate(msgspec.Struct, frozen=True, tag=True, omit_defaults=True, kw_only=True):
    """Render a dialogue with a chat template; answered by TemplateRendered or TemplateFailed.

    Attributes:
        template: the model's own Jinja text.
        messages: the dialogue, oldest first.
        add_generation_prompt: end with the opening of an answer.
        bos_text: what the template knows as bos_token.
        eos_text: what the template knows as eos_token.
        extra: further variables, such as enable_thinking. Settings only: text of a person in here would count as the
            template's own.
        limit_s: wall time after which the renderer ends itself; the client fills it in.
    """

    template: str
    messages: tuple[RenderMessage, ...]
    add_generation_prompt: bool = True
    bos_text: str = ""
    eos_text: str = ""
    extra: dict[str, Any] = {}
    limit_s: float = RENDER_LIMIT_S


class RendererStarted(msgspec.Struct, frozen=True, tag=True):
    """The renderer has loaded what it needs, has put its limits on and waits."""


class TemplateRendered(msgspec.Struct, frozen=True, tag=True):
    """The dialogue, cut where the template's text and the written text meet."""

    prompt: protocol.RenderedPrompt


class TemplateFailed(msgspec.Struct, frozen=True, tag=True, omit_defaults=True):
    """The template could not be rendered.

    Attributes:
        code: why.
        detail: what Jinja or the template itself says; empty when the code says all.
        line: the template's line, 0 when unknown.
    """

    code: ErrorCode
    detail: str = ""
    line: int = 0


RendererEvent = RendererStarted | TemplateRendered | TemplateFailed


class RendererPipe(MessagePipe[Incoming]):
    """One end of the pipe between program and renderer."""

    def send(self, message: protocol.Command | protocol.Event | RenderTemplate | RendererEvent) -> None:
        """Write one message; raises OSError when the other end is gone."""
        self._connection.send_bytes(self._encoder.encode(message))


def renderer_end(connection: Connection) -> RendererPipe[RenderTemplate]:
    """Return the renderer's end: receives what is to be rendered."""
    return RendererPipe(connection, RenderTemplate)


def client_end(connection: Connection) -> RendererPipe[RendererEvent]:
    """Return the program's end: receives the renderer's answers."""
    return RendererPipe(connection, RendererEvent)
