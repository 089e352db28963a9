"""What a session tells its face, be it the window or the command line. Data only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from app.chat.messages import Message
from app.errors import Words


@dataclass(frozen=True, slots=True)
class MessageAdded:
    """A message joined the branch that is shown."""

    message: Message


@dataclass(frozen=True, slots=True)
class TextAppended:
    """An answer grew by this text.

    Attributes:
        start: how many characters the answer had before it; who has taken over a later state passes the text over.
    """

    chat_id: int
    message_id: int
    text: str
    start: int = 0


@dataclass(frozen=True, slots=True)
class MessageChanged:
    """A message got its final text, state or figures.

    Attributes:
        message: how it is now.
        words: why it ended badly; None when it did not.
    """

    message: Message
    words: Words | None = None


@dataclass(frozen=True, slots=True)
class ChatChanged:
    """The chat's title or place in the list changed."""

    chat_id: int


@dataclass(frozen=True, slots=True)
class ContextMeasured:
    """How much of the context the dialogue takes.

    Attributes:
        used_tokens: tokens of the dialogue so far.
        total_tokens: what the context holds.
    """

    chat_id: int
    used_tokens: int
    total_tokens: int


@dataclass(frozen=True, slots=True)
class NoticeRaised:
    """Something a person must know though the answer goes on, such as a fallback template.

    Attributes:
        key: equal notices have equal keys.
    """

    key: str
    words: Words


@dataclass(frozen=True, slots=True)
class AnswerWaiting:
    """Whether this session has an answer under way (waiting, reading or writing)."""

    chat_id: int
    is_waiting: bool


SessionEvent = (
    MessageAdded | TextAppended | MessageChanged | ChatChanged | ContextMeasured | NoticeRaised | AnswerWaiting
)
OnSessionEvent = Callable[[SessionEvent], None]
