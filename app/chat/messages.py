"""Chats and their messages as plain data.

Messages form a tree: each names its parent, and a chat names the message its shown branch ends with. Nothing here
knows a file, a thread or an engine.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypedDict

# What json can hold: strings as keys; numbers, strings, booleans, None, lists and further such dicts as values.
JsonObject = dict[str, Any]


class Role(enum.StrEnum):
    """Who speaks."""

    SYSTEM = "system"  # the instructions a model gets before the dialogue
    USER = "user"  # the person
    ASSISTANT = "assistant"  # the model


class MessageState(enum.StrEnum):
    """Whether a message is finished, and if not, why."""

    COMPLETE = "complete"  # it ended by itself
    STREAMING = "streaming"  # it is being written now
    STOPPED = "stopped"  # the person stopped it; what was written is kept
    INTERRUPTED = "interrupted"  # the engine or the program died; what was written is kept
    FAILED = "failed"  # the engine could not go on, or could not begin


@dataclass(frozen=True, slots=True)
class Chat:
    """One dialogue.

    Attributes:
        chat_id: positive, below 2**53, never used again.
        title: what the person sees in the list; "" while it has none.
        created_s: when it was made, in seconds since 1970.
        updated_s: when its last message was added or finished, in seconds since 1970.
        active_leaf_id: the message the shown branch ends with; None in an empty chat.
        system_prompt: the instructions of this chat; "" for none.
        params: sampling params that hold for this chat only.
    """

    chat_id: int
    title: str
    created_s: float
    updated_s: float
    active_leaf_id: int | None = None
    system_prompt: str = ""
    params: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat.

    Attributes:
        message_id: positive, below 2**53, never used again.
        chat_id: the chat it belongs to.
        parent_id: the message it follows; None at the beginning of a chat.
        role: who speaks.
        text: what is said.
        state: whether it is finished.
        model: the name of the model that wrote it; "" for the person's own.
        params: the sampling params it was written with.
        stats: the figures of the answer (RequestFigures as a dict).
        token_ids: the exact ids of the text, so that the engine can reuse what it computed; () when not known.
        tokenizer_hash: the tokenizer the ids belong to.
        created_s: when it was begun, in seconds since 1970.
    """

    message_id: int
    chat_id: int
    parent_id: int | None
    role: Role
    text: str
    state: MessageState = MessageState.COMPLETE
    model: str = ""
    params: JsonObject = field(default_factory=dict)
    stats: JsonObject = field(default_factory=dict)
    token_ids: tuple[int, ...] = ()
    tokenizer_hash: str = ""
    created_s: float = 0.0


class MessageDetails(TypedDict, total=False):
    """What may be said about a new message beyond its place and text; see Message."""

    state: MessageState
    model: str
    params: JsonObject
    stats: JsonObject
    token_ids: tuple[int, ...]
    tokenizer_hash: str


@dataclass(frozen=True, slots=True)
class DeletedChat:
    """Everything of a deleted chat, so that deleting can be undone.

    Attributes:
        chat: the chat.
        messages: all its messages, each after its parent.
    """

    chat: Chat
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A message that holds the words searched for.

    Attributes:
        message_id: the message.
        chat_id: its chat.
        chat_title: the chat's title.
        role: who speaks.
        snippet: a piece of the text around the words, plain text.
        marks: where the words stand in the snippet, as (start, end) in characters.
        created_s: when the message was begun, in seconds since 1970.
    """

    message_id: int
    chat_id: int
    chat_title: str
    role: Role
    snippet: str
    marks: tuple[tuple[int, int], ...]
    created_s: float


def parents_first(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Order messages so that each stands after its parent, older ones first among equals.

    A message whose parent is not among them counts as a beginning. Messages that form a ring (only damage makes one)
    are left out.
    """
    by_age = sorted(messages, key=lambda message: (message.created_s, message.message_id))
    known = {message.message_id for message in by_age}
    followers: dict[int | None, list[Message]] = {}
    for message in by_age:
        parent = message.parent_id if message.parent_id in known else None
        followers.setdefault(parent, []).append(message)
    ordered = list(followers.get(None, ()))
    for message in ordered:  # grows while it is walked
        ordered.extend(followers.get(message.message_id, ()))
    return tuple(ordered)
