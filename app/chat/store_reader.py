"""Reading chats: what is on disk, and over it what was asked for and is not on disk yet.

Reads run on the caller's thread, one at a time. Knows no engine, no window and no session, and writes nothing.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Iterable, Iterator

from app.chat import rows, store_words
from app.chat.messages import Chat, Message, SearchHit, parents_first
from app.chat.store_search import find_messages
from app.chat.store_words import StoreCode, StoreError
from app.chat.unwritten import Unwritten


class ChatReader:
    """The reading half of ChatStore.

    Attributes:
        _connection: the connection for reads.
        _read_guard: held while it is used.
        _unwritten: what was asked for and is not on disk; always looked at before the disk, so that nothing slips
            through between the two.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._read_guard = threading.RLock()
        self._unwritten = Unwritten()

    def close_reader(self) -> None:
        """Close the connection for reads; may be called again."""
        with self._read_guard:
            self._connection.close()

    def chats(self) -> list[Chat]:
        """Return all chats, the one used last first."""
        unwritten = self._unwritten.chats()
        with self._reading() as connection:
            found: dict[int, Chat | None] = {chat.chat_id: chat for chat in rows.read_chats(connection)}
        found.update(unwritten)
        return sorted((chat for chat in found.values() if chat), key=lambda chat: chat.updated_s, reverse=True)

    def chat(self, chat_id: int) -> Chat:
        """Return one chat.

        Raises:
            StoreError: if it is not there.
        """
        unwritten = self._unwritten.chats()
        if chat_id in unwritten:
            chat = unwritten[chat_id]
        else:
            with self._reading() as connection:
                chat = rows.read_chat(connection, chat_id)
        if chat is None:
            raise store_words.missing(f"chat {chat_id}")
        return chat

    def message(self, message_id: int) -> Message:
        """Return one message; an answer in progress with all it has said.

        Raises:
            StoreError: if it is not there.
        """
        deleted = self._deleted_chats()
        message = self._unwritten.message(message_id)
        if message is None:
            with self._reading() as connection:
                message = rows.read_message(connection, message_id)
        if message is None or message.chat_id in deleted:
            raise store_words.missing(f"message {message_id}")
        return message

    def messages(self, chat_id: int, *, with_token_ids: bool = True) -> tuple[Message, ...]:
        """Return all messages of a chat, of every branch, each after its parent, older ones first among equals.

        Args:
            chat_id: the chat; one that is not there has no messages.
            with_token_ids: False leaves most messages' token ids out, which a long chat is read faster without.
        """
        return parents_first(self._tree(chat_id, with_token_ids).values())

    def branch(self, chat_id: int, *, with_token_ids: bool = True) -> list[Message]:
        """Return the messages of a chat from its beginning to its active leaf.

        Args:
            chat_id: the chat.
            with_token_ids: False leaves most messages' token ids out, which a long chat is read faster without.

        Raises:
            StoreError: if the chat is not there.
        """
        message_id = self.chat(chat_id).active_leaf_id
        tree = self._tree(chat_id, with_token_ids)
        branch: list[Message] = []
        while message_id is not None and message_id in tree:
            message = tree.pop(message_id)  # taken out, so that a ring in a damaged store ends
            branch.append(message)
            message_id = message.parent_id
        branch.reverse()
        return branch

    def children(self, message_id: int) -> list[Message]:
        """Return the messages that follow a message, oldest first: more than one where the chat branches.

        Raises:
            StoreError: if the message is not there.
        """
        unwritten = self._unwritten.messages(self.message(message_id).chat_id)
        with self._reading() as connection:
            found = {child.message_id: child for child in rows.read_children(connection, message_id)}
        found.update((key, message) for key, message in unwritten.items() if message.parent_id == message_id)
        return list(parents_first(found.values()))

    def search(self, words: str) -> list[SearchHit]:
        """Return finished messages that hold all the words, the best first; the last word may be unfinished.

        Any text may be given. What is not on disk yet is not found.
        """
        deleted = self._deleted_chats()
        with self._reading() as connection:
            return [hit for hit in find_messages(connection, words) if hit.chat_id not in deleted]

    def _note_damage(self) -> None:
        """Take note that something that was read cannot be true."""

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        try:
            with self._read_guard:
                yield self._connection
        except sqlite3.Error as error:
            raise self._noted(store_words.error_for(error)) from error
        except StoreError as error:
            raise self._noted(error) from error.__cause__

    def _noted(self, error: StoreError) -> StoreError:
        """Return the error; if it tells of damage, the file is checked at its next opening."""
        if error.code is StoreCode.DAMAGED:
            self._note_damage()
        return error

    def _deleted_chats(self) -> set[int]:
        return {chat_id for chat_id, chat in self._unwritten.chats().items() if chat is None}

    def _tree(self, chat_id: int, with_token_ids: bool) -> dict[int, Message]:
        """Return all messages of a chat by id."""
        if chat_id in self._deleted_chats():
            return {}
        unwritten = self._unwritten.messages(chat_id)
        with self._reading() as connection:
            stored: Iterable[Message] = rows.read_messages(connection, chat_id, with_token_ids)
        return {message.message_id: message for message in stored} | unwritten
