"""The chat store: every chat and message of this person, in one SQLite file.

Writes return at once and are done by the one writer thread; reads (store_reader.py) see them the same moment. Several
processes may have the store open. Knows no engine, no window and no session.
"""

from __future__ import annotations

import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Unpack

from app.chat import rows, store_words
from app.chat.messages import (
    Chat,
    DeletedChat,
    JsonObject,
    Message,
    MessageDetails,
    MessageState,
    Role,
)
from app.chat.store_file import OpenedFile, StoreMode, open_file, remove_backups
from app.chat.store_reader import ChatReader
from app.chat.store_words import StoreCode, StoreError, StoreNotice
from app.chat.store_writer import StoreWriter

__all__ = ["ChatStore", "OpenedStore", "StoreCode", "StoreError", "StoreMode", "StoreNotice", "open_store"]

# Two times in a row differ by at least this much, so that messages have an order even under a coarse clock.
_CLOCK_STEP_S = 1e-6


@dataclass(frozen=True, slots=True)
class OpenedStore:
    """A store that is ready, and what a person must be told about its opening.

    Attributes:
        store: the store; close() it at the end.
        notices: to be shown until dismissed.
    """

    store: ChatStore
    notices: tuple[StoreNotice, ...]


def open_store(path: Path) -> OpenedStore:
    """Open the store at path, making it and its folder if they are missing; never fails.

    A damaged store is moved aside and a fresh one made; a newer or unwritable one is opened read-only; where nothing
    can be kept, the store lives in memory. Each of these is a notice.
    """
    opened = open_file(path)
    store = ChatStore(opened)
    store.start()
    return OpenedStore(store, opened.notices)


class ChatStore(ChatReader):
    """Reads and writes chats; may be used from any thread.

    Methods that return a record raise StoreError when its chat or message is not there; methods that return a future
    put every error into it. A future is done when the change is on disk; when it carries a StoreError whose code is
    neither REFUSED nor CLOSED, the change is still shown by reads and is tried again with the next write.

    Attributes:
        mode: whether what is written is kept.
        _path: where the store lies.
        _write_guard: held while a write is asked for, so that memory and the writer's line have one order.
        _writer: the thread that writes.
        _last_time_s: the newest time given to a record.
    """

    def __init__(self, opened: OpenedFile) -> None:
        super().__init__(opened.reader)
        self.mode = opened.mode
        self._path = opened.path
        self._write_guard = threading.RLock()
        own_connection = opened.mode is StoreMode.WRITABLE
        self._writer = StoreWriter(opened.connect_writer, threading.RLock() if own_connection else self._read_guard)
        self._last_time_s = 0.0

    def start(self) -> None:
        """Start the writer thread; call once."""
        self._writer.start()

    def on_problem(self, callback: Callable[[StoreError], None]) -> None:
        """Have the callback told, on the writer's thread, when writes begin to fail: once, until one succeeds again."""
        self._writer.on_problem(callback)

    def settled(self) -> Future[None]:
        """Return a future that is done when everything asked so far is on disk; it carries a StoreError if not."""
        return self._writer.settled()

    def flush(self, timeout_s: float) -> None:
        """Wait until everything asked so far is on disk.

        Raises:
            StoreError: if some of it could not be saved; it is tried again with the next write.
            TimeoutError: if the disk took longer.
        """
        self.settled().result(timeout_s)

    def close(self) -> None:
        """Save what waits, leave the file in order and end the writer thread; may be called again."""
        self._writer.close()
        self.close_reader()

    # ------------------------------------------------------------------------------------------------ chats

    def add_chat(self, title: str = "") -> Chat:
        """Add an empty chat and return it."""
        now_s = self._now_s()
        chat = Chat(_new_id(), rows.clean_text(title), now_s, now_s)
        with self._write_guard:
            self._writer.put(partial(rows.insert_chat, chat=chat), self._unwritten.put_chat(chat))
        return chat

    def rename_chat(self, chat_id: int, title: str) -> Future[None]:
        """Give a chat another title; its place among the chats stays."""
        return self._change_chat(chat_id, title=rows.clean_text(title))

    def set_active_leaf(self, chat_id: int, message_id: int | None) -> Future[None]:
        """Choose the branch that is shown by the message it ends with."""
        return self._change_chat(chat_id, active_leaf_id=message_id)

    def set_system_prompt(self, chat_id: int, system_prompt: str) -> Future[None]:
        """Set the instructions of a chat; "" for none."""
        return self._change_chat(chat_id, system_prompt=rows.clean_text(system_prompt))

    def set_params(self, chat_id: int, params: JsonObject) -> Future[None]:
        """Set the sampling params that hold for a chat only.

        Raises:
            TypeError, ValueError: if JSON cannot hold them.
        """
        return self._change_chat(chat_id, params=rows.plain_json(params))

    def delete_chat(self, chat_id: int) -> DeletedChat:
        """Delete a chat and all its messages, and return them for restore_chat.

        The rows are overwritten with zeros; call vacuum() when the deletion cannot be undone any more.

        Raises:
            StoreError: if the chat is not there.
        """
        with self._write_guard:
            deleted = DeletedChat(self.chat(chat_id), self.messages(chat_id))
            self._writer.put(partial(rows.delete_chat, chat_id=chat_id), self._unwritten.put_deleted(chat_id))
        return deleted

    def restore_chat(self, deleted: DeletedChat) -> Future[None]:
        """Bring a deleted chat back as it was, with all ids."""
        restore = partial(rows.restore_chat, deleted=deleted, writer_id=self._writer.writer_id)
        with self._write_guard:
            return self._writer.put(restore, self._unwritten.put_restored(deleted))

    def vacuum(self) -> Future[None]:
        """Make deletions final: shrink the file, the index and the WAL, and remove copies made before migrations.

        Takes seconds on a large store, and other writes wait meanwhile: not for the middle of an answer.
        """
        return self._writer.put_chore(self._vacuum)

    # --------------------------------------------------------------------------------------------- messages

    def add_message(
        self, chat_id: int, parent_id: int | None, role: Role, text: str = "", **details: Unpack[MessageDetails]
    ) -> Message:
        """Add a message behind its parent, make it the chat's active leaf, and return it.

        Args:
            chat_id: its chat.
            parent_id: the message it follows; None at the beginning.
            role: who speaks.
            text: what is said; "" for an answer that will be streamed.
            **details: further fields of Message; state STREAMING opens it for append_text.

        Raises:
            StoreError: if the chat is not there.
            TypeError, ValueError: if JSON cannot hold the params or stats, or a token id is out of range.
        """
        now_s = self._now_s()
        message = Message(_new_id(), chat_id, parent_id, role, rows.clean_text(text), created_s=now_s, **details)
        message = _storable(message)
        insert = partial(rows.insert_messages, messages=(message,), writer_id=self._writer.writer_id)
        with self._write_guard:
            self.chat(chat_id)
            self._writer.put(insert, self._unwritten.put_message(message))
            self._change_chat(chat_id, active_leaf_id=message.message_id, updated_s=now_s)
        return message

    def append_text(self, message_id: int, text: str, token_ids: Sequence[int] = ()) -> Future[None]:
        """Add a piece to an answer in progress; it is on disk within a second.

        Raises:
            ValueError: if a token id is out of range.
        """
        rows.pack_token_ids(token_ids)
        with self._write_guard:
            if not self._unwritten.is_being_written(message_id):
                try:
                    message = self.message(message_id)
                except StoreError as error:
                    return _failed(error)
                if message.state is not MessageState.STREAMING:
                    return _failed(store_words.finished())
                self._unwritten.begin(message)
            self._unwritten.append(message_id, rows.clean_text(text), token_ids)
            return self._writer.put_journal(message_id, partial(self._journal, message_id=message_id))

    def finish_message(
        self,
        message_id: int,
        state: MessageState,
        text: str,
        token_ids: Sequence[int],
        stats: JsonObject,
        tokenizer_hash: str | None = None,
    ) -> Future[None]:
        """Set an answer's last text, ids, figures and state at once, whatever was appended before.

        Args:
            message_id: the answer.
            state: why it ended.
            text: all it said.
            token_ids: all its ids.
            stats: its figures.
            tokenizer_hash: the tokenizer of the ids; None leaves what was given to add_message.

        Raises:
            TypeError, ValueError: if JSON cannot hold the stats, or a token id is out of range.
        """
        with self._write_guard:
            try:
                before = self.message(message_id)
                chat = self.chat(before.chat_id)
            except StoreError as error:
                return _failed(error)
            hash_now = before.tokenizer_hash if tokenizer_hash is None else tokenizer_hash
            message = _storable(
                replace(
                    before,
                    state=state,
                    text=rows.clean_text(text),
                    token_ids=tuple(token_ids),
                    stats=stats,
                    tokenizer_hash=hash_now,
                )
            )
            names = ("state", "text", "token_ids", "stats", "tokenizer_hash")
            changes = {name: getattr(message, name) for name in names}
            update = partial(rows.update_message, message_id=message_id, changes=changes)
            self._change_chat(chat.chat_id, updated_s=self._now_s())
            return self._writer.put(update, self._unwritten.put_message(message))

    def resume_message(self, message_id: int) -> Future[None]:
        """Open an answer that ended too early for append_text again."""
        with self._write_guard:
            try:
                message = replace(self.message(message_id), state=MessageState.STREAMING)
            except StoreError as error:
                return _failed(error)
            changes = {"state": message.state, "writer_id": self._writer.writer_id}
            update = partial(rows.update_message, message_id=message_id, changes=changes)
            return self._writer.put(update, self._unwritten.put_message(message))

    # ---------------------------------------------------------------------------------------------- helpers

    def _note_damage(self) -> None:
        self._writer.doubt()

    def _change_chat(self, chat_id: int, **changes: object) -> Future[None]:
        with self._write_guard:
            try:
                chat = replace(self.chat(chat_id), **changes)  # type: ignore[arg-type]  # fields named by this class
            except StoreError as error:
                return _failed(error)
            update = partial(rows.update_chat, chat_id=chat_id, changes=changes)
            return self._writer.put(update, self._unwritten.put_chat(chat))

    def _journal(self, connection: sqlite3.Connection, message_id: int) -> None:
        """Save what an answer in progress has said so far; nothing is left to do once it is finished or deleted."""
        message = self._unwritten.message(message_id)
        if message is not None:
            changes = {"text": message.text, "token_ids": message.token_ids}
            rows.update_message(connection, message_id, changes)

    def _vacuum(self, connection: sqlite3.Connection) -> None:
        # The index keeps the words of deleted messages until its pieces are merged.
        connection.execute("INSERT INTO message_search (message_search) VALUES ('optimize')")
        connection.execute("VACUUM")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        remove_backups(self._path)

    def _now_s(self) -> float:
        with self._write_guard:
            self._last_time_s = max(time.time(), self._last_time_s + _CLOCK_STEP_S)
            return self._last_time_s


def _new_id() -> int:
    """Return a new positive id below 2**53: random, so that two processes never give out the same one."""
    return secrets.randbits(53) or 1


def _failed(error: StoreError) -> Future[None]:
    future: Future[None] = Future()
    future.set_exception(error)
    return future


def _storable(message: Message) -> Message:
    """Return the message as it will be read back.

    Raises:
        TypeError, ValueError: if JSON cannot hold the params or stats, or a token id is out of range.
    """
    rows.pack_token_ids(message.token_ids)
    return replace(
        message,
        model=rows.clean_text(message.model),
        tokenizer_hash=rows.clean_text(message.tokenizer_hash),
        params=rows.plain_json(message.params),
        stats=rows.plain_json(message.stats),
        token_ids=tuple(message.token_ids),
    )
