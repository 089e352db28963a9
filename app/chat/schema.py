"""The tables of the chat store, as an ordered list of changes.

A store's version is SQLite's user_version: the number of migrations that were applied. A migration that was once
released is never edited; a change of the tables is a new one at the end. Knows no file and no data class.
"""

from __future__ import annotations

import sqlite3

from app.sqlite_file import apply_migrations

_TABLES = (
    """CREATE TABLE chats (
        chat_id INTEGER PRIMARY KEY,
        title TEXT NOT NULL,
        created_s REAL NOT NULL,
        updated_s REAL NOT NULL,
        active_leaf_id INTEGER,
        system_prompt TEXT NOT NULL,
        params TEXT NOT NULL)""",
    # No cascade on parent_id: SQLite follows cascades recursively and gives up after 1,000 messages.
    """CREATE TABLE messages (
        message_id INTEGER PRIMARY KEY,
        chat_id INTEGER NOT NULL REFERENCES chats (chat_id),
        parent_id INTEGER REFERENCES messages (message_id),
        role TEXT NOT NULL,
        state TEXT NOT NULL,
        model TEXT NOT NULL,
        params TEXT NOT NULL,
        stats TEXT NOT NULL,
        tokenizer_hash TEXT NOT NULL,
        created_s REAL NOT NULL,
        writer_id INTEGER NOT NULL,
        text TEXT NOT NULL,
        token_ids BLOB NOT NULL)""",
    "CREATE INDEX messages_by_chat ON messages (chat_id)",
    "CREATE INDEX messages_by_parent ON messages (parent_id)",
    "CREATE INDEX messages_unfinished ON messages (writer_id) WHERE state = 'streaming'",
    # Who writes now. A row whose process is gone means that the store was not closed.
    """CREATE TABLE writers (
        writer_id INTEGER PRIMARY KEY,
        pid INTEGER NOT NULL,
        process_started_s REAL NOT NULL)""",
)

# An answer is indexed when it is finished, not each time a piece of it is journalled.
_SEARCH = (
    """CREATE VIRTUAL TABLE message_search USING fts5 (
        text, content='messages', content_rowid='message_id', tokenize='unicode61 remove_diacritics 2')""",
    """CREATE TRIGGER message_added AFTER INSERT ON messages WHEN new.state <> 'streaming' BEGIN
        INSERT INTO message_search (rowid, text) VALUES (new.message_id, new.text);
    END""",
    """CREATE TRIGGER message_deleted AFTER DELETE ON messages WHEN old.state <> 'streaming' BEGIN
        INSERT INTO message_search (message_search, rowid, text) VALUES ('delete', old.message_id, old.text);
    END""",
    """CREATE TRIGGER message_changed AFTER UPDATE OF text, state ON messages BEGIN
        INSERT INTO message_search (message_search, rowid, text)
            SELECT 'delete', old.message_id, old.text WHERE old.state <> 'streaming';
        INSERT INTO message_search (rowid, text)
            SELECT new.message_id, new.text WHERE new.state <> 'streaming';
    END""",
    "INSERT INTO message_search (rowid, text) SELECT message_id, text FROM messages WHERE state <> 'streaming'",
)

MIGRATIONS: tuple[tuple[str, ...], ...] = (_TABLES, _SEARCH)

SCHEMA_VERSION = len(MIGRATIONS)


def migrate(connection: sqlite3.Connection, up_to: int = SCHEMA_VERSION) -> None:
    """Apply the migrations that are missing, all of them or none.

    Args:
        connection: a writable connection outside a transaction.
        up_to: the version to reach; less than the newest only to make an old store for a test.

    Raises:
        sqlite3.Error: if a migration failed; the store is as it was.
    """
    apply_migrations(connection, MIGRATIONS, up_to)
