"""Chats and messages as rows of the store: how each is written and read back.

The one place that knows which column holds what. Knows no file, no thread and no transaction: it is called inside one.
"""

from __future__ import annotations

import json
import sqlite3
import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from app.chat.messages import Chat, DeletedChat, JsonObject, Message, MessageState, Role
from app.chat.store_words import damaged

# In the order of the data classes' fields.
_CHAT_COLUMNS = "chat_id, title, created_s, updated_s, active_leaf_id, system_prompt, params"
_MESSAGE_COLUMNS = (
    "message_id, chat_id, parent_id, role, text, state, model, params, stats, token_ids, tokenizer_hash, created_s"
)
_MESSAGE_COLUMNS_WITHOUT_IDS = _MESSAGE_COLUMNS.replace("token_ids", "x''")

_MAX_TOKEN_ID = 2**32 - 1

Row = Sequence[Any]


def check_tables(connection: sqlite3.Connection) -> None:
    """Check that the tables can be read by this version of the program.

    Raises:
        sqlite3.OperationalError: if a table or column is missing.
    """
    connection.execute(f"SELECT {_CHAT_COLUMNS} FROM chats LIMIT 0").fetchall()
    connection.execute(f"SELECT {_MESSAGE_COLUMNS}, writer_id FROM messages LIMIT 0").fetchall()
    connection.execute("SELECT writer_id, pid, process_started_s FROM writers LIMIT 0").fetchall()


def clean_text(text: str) -> str:
    """Return the text without lone surrogates, which no file can hold; each becomes a replacement character."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def plain_json(value: JsonObject) -> JsonObject:
    """Return a copy of the value as it will be read back.

    Raises:
        TypeError, ValueError: if it holds something that JSON cannot.
    """
    copy: JsonObject = json.loads(json.dumps(value))
    return copy


def pack_token_ids(token_ids: Sequence[int]) -> bytes:
    """Return token ids as little-endian uint32.

    Raises:
        ValueError: if an id is negative or too large.
    """
    try:
        return struct.pack(f"<{len(token_ids)}I", *token_ids)
    except struct.error as error:
        raise ValueError(f"token ids must lie between 0 and {_MAX_TOKEN_ID}") from error


def unpack_token_ids(blob: bytes) -> tuple[int, ...]:
    """Return the token ids of a blob of little-endian uint32."""
    return struct.unpack(f"<{len(blob) // 4}I", blob)


# ------------------------------------------------------------------------------------------------ reading


def read_chats(connection: sqlite3.Connection) -> list[Chat]:
    """Return all chats, in no particular order."""
    return [_chat(row) for row in connection.execute(f"SELECT {_CHAT_COLUMNS} FROM chats").fetchall()]


def read_chat(connection: sqlite3.Connection, chat_id: int) -> Chat | None:
    """Return one chat, or None when it is not there."""
    row = connection.execute(f"SELECT {_CHAT_COLUMNS} FROM chats WHERE chat_id = ?", (chat_id,)).fetchone()
    return _chat(row) if row else None


def read_message(connection: sqlite3.Connection, message_id: int) -> Message | None:
    """Return one message, or None when it is not there."""
    query = f"SELECT {_MESSAGE_COLUMNS} FROM messages WHERE message_id = ?"
    row = connection.execute(query, (message_id,)).fetchone()
    return _message(row) if row else None


def read_messages(connection: sqlite3.Connection, chat_id: int, with_token_ids: bool = True) -> list[Message]:
    """Return all messages of a chat, in no particular order."""
    columns = _MESSAGE_COLUMNS if with_token_ids else _MESSAGE_COLUMNS_WITHOUT_IDS
    rows = connection.execute(f"SELECT {columns} FROM messages WHERE chat_id = ?", (chat_id,)).fetchall()
    return [_message(row) for row in rows]


def read_children(connection: sqlite3.Connection, message_id: int) -> list[Message]:
    """Return the messages that follow a message, in no particular order."""
    query = f"SELECT {_MESSAGE_COLUMNS} FROM messages WHERE parent_id = ?"
    return [_message(row) for row in connection.execute(query, (message_id,)).fetchall()]


def _chat(row: Row) -> Chat:
    chat_id, title, created_s, updated_s, active_leaf_id, system_prompt, params = row
    return Chat(chat_id, title, created_s, updated_s, active_leaf_id, system_prompt, _unpack_json(params))


def _message(row: Row) -> Message:
    message_id, chat_id, parent_id, role, text, state, model, params, stats, token_ids, tokenizer_hash, created_s = row
    try:
        return Message(
            message_id=message_id,
            chat_id=chat_id,
            parent_id=parent_id,
            role=Role(role),
            text=text,
            state=MessageState(state),
            model=model,
            params=_unpack_json(params),
            stats=_unpack_json(stats),
            token_ids=unpack_token_ids(token_ids) if token_ids else (),
            tokenizer_hash=tokenizer_hash,
            created_s=created_s,
        )
    except (ValueError, struct.error) as error:
        raise damaged() from error


def _unpack_json(text: str) -> JsonObject:
    if text == "{}":
        return {}
    try:
        value = json.loads(text)
    except ValueError as error:
        raise damaged() from error
    return value if isinstance(value, dict) else {}


# ------------------------------------------------------------------------------------------------ writing


def insert_chat(connection: sqlite3.Connection, chat: Chat) -> None:
    """Add a chat; one that is already there stays as it is, so that a write can be tried again."""
    values = (
        chat.chat_id,
        chat.title,
        chat.created_s,
        chat.updated_s,
        chat.active_leaf_id,
        chat.system_prompt,
        json.dumps(chat.params),
    )
    connection.execute(
        f"INSERT INTO chats ({_CHAT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING", values
    )


def insert_messages(connection: sqlite3.Connection, messages: Iterable[Message], writer_id: int) -> None:
    """Add messages, parents first; those that are already there stay as they are."""
    places = ", ".join("?" * 13)
    connection.executemany(
        f"INSERT INTO messages ({_MESSAGE_COLUMNS}, writer_id) VALUES ({places}) ON CONFLICT DO NOTHING",
        ((*_message_values(message), writer_id) for message in messages),
    )


def update_chat(connection: sqlite3.Connection, chat_id: int, changes: Mapping[str, object]) -> None:
    """Change fields of a chat; one that is not there any more is passed over."""
    _update(connection, "chats", "chat_id", chat_id, changes)


def update_message(connection: sqlite3.Connection, message_id: int, changes: Mapping[str, object]) -> None:
    """Change fields of a message; one that is not there any more is passed over."""
    _update(connection, "messages", "message_id", message_id, changes)


def delete_chat(connection: sqlite3.Connection, chat_id: int) -> None:
    """Delete a chat and all its messages."""
    connection.execute("DELETE FROM messages WHERE chat_id = ?", (chat_id,))
    connection.execute("DELETE FROM chats WHERE chat_id = ?", (chat_id,))


def restore_chat(connection: sqlite3.Connection, deleted: DeletedChat, writer_id: int) -> None:
    """Bring a deleted chat back with all its messages; one whose parent is not among them is left out."""
    insert_chat(connection, deleted.chat)
    ids = {message.message_id for message in deleted.messages}
    whole = (message for message in deleted.messages if message.parent_id is None or message.parent_id in ids)
    # In the order of ids, not parents first: the search index takes rows in half the time when their ids rise.
    connection.execute("PRAGMA defer_foreign_keys = ON")
    try:
        insert_messages(connection, sorted(whole, key=lambda message: message.message_id), writer_id)
    finally:
        connection.execute("PRAGMA defer_foreign_keys = OFF")


def _update(connection: sqlite3.Connection, table: str, key: str, row_id: int, changes: Mapping[str, object]) -> None:
    assignments = ", ".join(f"{name} = ?" for name in changes)
    values = [_pack(name, value) for name, value in changes.items()]
    connection.execute(f"UPDATE {table} SET {assignments} WHERE {key} = ?", (*values, row_id))


def _pack(name: str, value: Any) -> object:
    if name == "token_ids":
        return pack_token_ids(value)
    return json.dumps(value) if isinstance(value, dict) else value


def _message_values(message: Message) -> tuple[object, ...]:
    return (
        message.message_id,
        message.chat_id,
        message.parent_id,
        message.role,
        message.text,
        message.state,
        message.model,
        json.dumps(message.params),
        json.dumps(message.stats),
        pack_token_ids(message.token_ids),
        message.tokenizer_hash,
        message.created_s,
    )
