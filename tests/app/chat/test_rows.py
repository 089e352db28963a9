"""Chats and messages as rows."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace

import pytest

from app.chat import rows
from app.chat.messages import Chat, DeletedChat, Message, MessageState, Role
from app.chat.schema import migrate
from app.chat.store_words import StoreCode, StoreError

CHAT = Chat(7, "Täst", 1.5, 2.5, 70, "Be calm.", {"seed": 1})
MESSAGE = Message(70, 7, None, Role.USER, "Why?", params={"a": [1]}, stats={"b": None}, token_ids=(1, 2), created_s=3.0)


@pytest.fixture
def connection():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        opened.execute("PRAGMA foreign_keys = ON")
        migrate(opened)
        rows.restore_chat(opened, DeletedChat(CHAT, (MESSAGE,)), writer_id=1)
        yield opened


def test_rows_read_back_as_they_were_written(connection):
    assert rows.read_chats(connection) == [CHAT]
    assert rows.read_chat(connection, 7) == CHAT
    assert rows.read_message(connection, 70) == MESSAGE
    assert rows.read_messages(connection, 7) == [MESSAGE]
    assert rows.read_messages(connection, 7, with_token_ids=False) == [replace(MESSAGE, token_ids=())]
    assert rows.read_chat(connection, 8) is None
    assert rows.read_message(connection, 8) is None


def test_adding_a_row_twice_leaves_the_first(connection):
    rows.insert_chat(connection, replace(CHAT, title="again"))
    rows.insert_messages(connection, (replace(MESSAGE, text="again"),), writer_id=2)
    assert (rows.read_chats(connection), rows.read_messages(connection, 7)) == ([CHAT], [MESSAGE])


def test_named_fields_are_changed_and_no_others(connection):
    rows.update_chat(connection, 7, {"title": "new", "params": {}})
    changes = {"token_ids": (9,), "state": MessageState.FAILED, "stats": {"c": 1}}
    rows.update_message(connection, 70, changes)
    assert rows.read_chat(connection, 7) == replace(CHAT, title="new", params={})
    expected = replace(MESSAGE, token_ids=(9,), state=MessageState.FAILED, stats={"c": 1})
    assert rows.read_message(connection, 70) == expected


def test_a_row_that_is_gone_is_passed_over(connection):
    rows.delete_chat(connection, 7)
    rows.update_chat(connection, 7, {"title": "x"})
    rows.update_message(connection, 70, {"text": "x"})
    assert (rows.read_chats(connection), rows.read_message(connection, 70)) == ([], None)


def test_children_are_the_messages_that_name_their_parent(connection):
    child = replace(MESSAGE, message_id=71, parent_id=70)
    rows.insert_messages(connection, (child,), writer_id=1)
    assert rows.read_children(connection, 70) == [child]


def test_a_restored_message_whose_parent_is_missing_is_left_out_and_the_next_write_is_checked_again(connection):
    rows.delete_chat(connection, 7)
    child, orphan = replace(MESSAGE, message_id=2, parent_id=70), replace(MESSAGE, message_id=3, parent_id=999)
    connection.execute("BEGIN")
    rows.restore_chat(connection, DeletedChat(CHAT, (MESSAGE, child, orphan)), writer_id=1)
    with pytest.raises(sqlite3.IntegrityError):
        rows.insert_messages(connection, (orphan,), writer_id=1)
    connection.execute("COMMIT")
    assert {message.message_id for message in rows.read_messages(connection, 7)} == {2, 70}


def test_token_ids_are_packed_in_four_little_endian_bytes_each():
    assert rows.pack_token_ids((1, 256, 2**32 - 1)) == b"\x01\0\0\0\0\x01\0\0\xff\xff\xff\xff"
    assert rows.unpack_token_ids(b"\x01\0\0\0\0\x01\0\0") == (1, 256)
    assert rows.pack_token_ids(()) == b""
    for wrong in ((-1,), (2**32,)):
        with pytest.raises(ValueError, match="between 0 and 4294967295"):
            rows.pack_token_ids(wrong)


@pytest.mark.parametrize(
    ("text", "expected"), [("plain", "plain"), ("🦭é", "🦭é"), ("a\ud800b", "a�b"), ("\ud83e\uddad", "🦭"), ("", "")]
)
def test_lone_surrogates_are_replaced_and_pairs_are_joined(text, expected):
    assert rows.clean_text(text) == expected


def test_a_value_is_copied_as_json_reads_it_back():
    value = {"stop": ("a", "b"), "inner": {}}
    copy = rows.plain_json(value)
    value["inner"]["x"] = 1
    assert copy == {"stop": ["a", "b"], "inner": {}}
    with pytest.raises(TypeError):
        rows.plain_json({"x": object()})


@pytest.mark.parametrize(
    "damage",
    ["role = 'nobody'", "state = 'lost'", "params = '{'", "stats = 'x'", "token_ids = x'0102030405'"],
)
def test_a_row_that_cannot_be_true_is_damage(connection, damage):
    connection.execute(f"UPDATE messages SET {damage}")
    with pytest.raises(StoreError) as caught:
        rows.read_message(connection, 70)
    assert caught.value.code is StoreCode.DAMAGED


def test_missing_tables_are_noticed(connection):
    rows.check_tables(connection)
    connection.execute("ALTER TABLE chats RENAME COLUMN title TO name")
    with pytest.raises(sqlite3.OperationalError, match="no such column"):
        rows.check_tables(connection)
