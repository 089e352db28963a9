"""The tables and their migrations."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from app.chat import rows, schema
from app.chat.messages import Chat, DeletedChat, Message, MessageState, Role
from app.sqlite_file import version_of

CHAT = Chat(1, "Talk", 1.0, 2.0, 11)
MESSAGES = (
    Message(10, 1, None, Role.USER, "Tell me of the platypus.", created_s=1.0),
    Message(11, 1, 10, Role.ASSISTANT, "It lays eggs", state=MessageState.STREAMING, created_s=2.0),
)


@pytest.fixture
def connection():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        opened.execute("PRAGMA foreign_keys = ON")
        yield opened


def found(connection, word):
    query = "SELECT rowid FROM message_search WHERE message_search MATCH ?"
    return [row[0] for row in connection.execute(query, (word,))]


def tables(connection):
    return {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}


def test_a_new_store_has_the_newest_version(connection):
    assert version_of(connection) == 0
    schema.migrate(connection)
    assert version_of(connection) == schema.SCHEMA_VERSION == len(schema.MIGRATIONS)
    assert {"chats", "messages", "writers", "message_search"} <= tables(connection)


def test_an_old_store_keeps_its_messages_and_they_become_searchable(connection):
    schema.migrate(connection, up_to=1)
    assert version_of(connection) == 1
    rows.restore_chat(connection, DeletedChat(CHAT, MESSAGES), writer_id=1)
    schema.migrate(connection)
    assert version_of(connection) == 2
    assert rows.read_chats(connection) == [CHAT]
    assert sorted(rows.read_messages(connection, 1), key=lambda message: message.message_id) == list(MESSAGES)
    assert found(connection, "platypus") == [10]
    assert found(connection, "eggs") == []  # not finished


def test_migrating_again_changes_nothing(connection):
    schema.migrate(connection)
    schema.migrate(connection)
    schema.migrate(connection, up_to=1)  # never goes back
    assert version_of(connection) == schema.SCHEMA_VERSION


def test_a_migration_that_fails_leaves_the_store_as_it_was(connection, monkeypatch):
    schema.migrate(connection, up_to=1)
    before = tables(connection)
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, ("CREATE TABLE extra (x)", "no such statement")))
    with pytest.raises(sqlite3.OperationalError):
        schema.migrate(connection, up_to=3)
    assert (version_of(connection), tables(connection)) == (1, before)
    assert not connection.in_transaction


def test_the_index_follows_every_change_of_a_message(connection):
    schema.migrate(connection)
    rows.restore_chat(connection, DeletedChat(CHAT, MESSAGES), writer_id=1)
    assert found(connection, "platypus") == [10]
    rows.update_message(connection, 10, {"text": "Tell me of the seal."})
    assert (found(connection, "platypus"), found(connection, "seal")) == ([], [10])
    rows.update_message(connection, 11, {"text": "It lays eggs."})
    assert found(connection, "eggs") == []
    rows.update_message(connection, 11, {"state": MessageState.COMPLETE, "text": "It lays eggs, mostly."})
    assert found(connection, "mostly") == [11]
    rows.update_message(connection, 11, {"state": MessageState.STREAMING})
    assert found(connection, "mostly") == []
    rows.update_message(connection, 11, {"state": MessageState.STOPPED})
    connection.execute("INSERT INTO message_search (message_search) VALUES ('integrity-check')")
    rows.delete_chat(connection, 1)
    assert (found(connection, "seal"), found(connection, "mostly")) == ([], [])
    connection.execute("INSERT INTO message_search (message_search) VALUES ('integrity-check')")
