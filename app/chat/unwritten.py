"""What was asked of the store and is not on disk yet, so that a read sees every write that went before it.

A person's own message must be in the branch the next moment, though its fsync takes a while and may even fail.
Knows no SQLite and no file.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from app.chat.messages import Chat, DeletedChat, Message

Forget = Callable[[], None]


@dataclass(slots=True)
class _Answer:
    """An answer that is being written: pieces are collected and joined only when somebody looks."""

    message: Message
    pieces: list[str] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)

    def joined(self) -> Message:
        if self.pieces or self.token_ids:
            text = self.message.text + "".join(self.pieces)
            ids = (*self.message.token_ids, *self.token_ids)
            self.message = replace(self.message, text=text, token_ids=ids)
            self.pieces.clear()
            self.token_ids.clear()
        return self.message


class Unwritten:
    """Chats and messages as they will be once all writes are done.

    Every entry stays until its own write is done: each put returns a function that forgets the entry, and does nothing
    if a later write has replaced it. May be used from any thread.

    Attributes:
        _lock: guards the rest.
        _chats: by id; None is a chat that is being deleted.
        _messages: by id.
        _answers: answers that are being written, by message id; they hide the entry in _messages.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._chats: dict[int, Chat | None] = {}
        self._messages: dict[int, Message] = {}
        self._answers: dict[int, _Answer] = {}

    def put_chat(self, chat: Chat) -> Forget:
        """Remember a new or changed chat."""
        with self._lock:
            self._chats[chat.chat_id] = chat
        return lambda: self._forget_chat(chat.chat_id, chat)

    def put_deleted(self, chat_id: int) -> Forget:
        """Remember that a chat is being deleted, and drop what is known of its messages."""
        with self._lock:
            self._chats[chat_id] = None
            self._messages = {key: m for key, m in self._messages.items() if m.chat_id != chat_id}
            self._answers = {key: a for key, a in self._answers.items() if a.message.chat_id != chat_id}
        return lambda: self._forget_chat(chat_id, None)

    def put_message(self, message: Message) -> Forget:
        """Remember a new or finished message."""
        with self._lock:
            self._answers.pop(message.message_id, None)
            self._messages[message.message_id] = message
        return lambda: self._forget_messages((message,))

    def put_restored(self, deleted: DeletedChat) -> Forget:
        """Remember a chat that is being brought back."""
        with self._lock:
            self._chats[deleted.chat.chat_id] = deleted.chat
            self._messages.update((message.message_id, message) for message in deleted.messages)

        def forget() -> None:
            self._forget_messages(deleted.messages)
            self._forget_chat(deleted.chat.chat_id, deleted.chat)

        return forget

    def begin(self, message: Message) -> None:
        """Begin to collect pieces of an answer; message is the answer as it is before them."""
        with self._lock:
            self._answers.setdefault(message.message_id, _Answer(message))

    def append(self, message_id: int, text: str, token_ids: Sequence[int]) -> None:
        """Add a piece to an answer that was begun; one that was finished or deleted meanwhile is passed over."""
        with self._lock:
            answer = self._answers.get(message_id)
            if answer is not None:
                answer.pieces.append(text)
                answer.token_ids.extend(token_ids)

    def is_being_written(self, message_id: int) -> bool:
        """Return whether this answer was begun and not finished."""
        with self._lock:
            return message_id in self._answers

    def chats(self) -> dict[int, Chat | None]:
        """Return the chats whose write is not done; None is one that is being deleted."""
        with self._lock:
            return dict(self._chats)

    def message(self, message_id: int) -> Message | None:
        """Return the message as it will be, or None when nothing is known here."""
        with self._lock:
            answer = self._answers.get(message_id)
            return answer.joined() if answer else self._messages.get(message_id)

    def messages(self, chat_id: int) -> dict[int, Message]:
        """Return the messages of a chat whose write is not done, by id."""
        with self._lock:
            found = {key: message for key, message in self._messages.items() if message.chat_id == chat_id}
            found.update({k: a.joined() for k, a in self._answers.items() if a.message.chat_id == chat_id})
            return found

    def _forget_chat(self, chat_id: int, chat: Chat | None) -> None:
        with self._lock:
            if chat_id in self._chats and self._chats[chat_id] is chat:
                del self._chats[chat_id]

    def _forget_messages(self, messages: Iterable[Message]) -> None:
        with self._lock:
            for message in messages:
                if self._messages.get(message.message_id) is message:
                    del self._messages[message.message_id]
