"""Reading chats: the order, the tree, and writes that are not on disk yet."""

from __future__ import annotations

import sqlite3

import pytest

from app.chat.messages import MessageState, Role
from app.chat.store import StoreCode, StoreError, open_store
from tests.helpers.chat_stores import PATIENCE_S, dialogue


def test_every_read_sees_the_writes_before_it_though_nothing_is_on_disk_yet(store):
    with store._writer._guard:  # the writer cannot commit
        chat, (asked, answered) = dialogue(store, "Why?", "Because.")
        assert store.chats() == [chat]
        assert store.branch(chat.chat_id) == [asked, answered]
        assert store.children(asked.message_id) == [answered]
        store.rename_chat(chat.chat_id, "Renamed")
        assert store.chat(chat.chat_id).title == "Renamed"
        deleted = store.delete_chat(chat.chat_id)
        assert store.chats() == []
        with pytest.raises(StoreError):
            store.message(asked.message_id)
        store.restore_chat(deleted)
        assert store.messages(chat.chat_id) == (asked, answered)
    store.flush(PATIENCE_S)
    assert store._unwritten.chats() == {}
    assert store._unwritten.messages(chat.chat_id) == {}
    assert store.branch(chat.chat_id) == [asked, answered]


def test_chats_are_listed_by_their_last_message(store):
    first, second = store.add_chat("first"), store.add_chat("second")
    assert [chat.title for chat in store.chats()] == ["second", "first"]
    store.add_message(first.chat_id, None, Role.USER, "again")
    assert [chat.title for chat in store.chats()] == ["first", "second"]
    store.rename_chat(second.chat_id, "renamed")
    assert [chat.title for chat in store.chats()] == ["first", "renamed"]


def test_messages_form_a_tree_and_the_active_leaf_chooses_the_branch(store):
    chat, (asked, first) = dialogue(store, "Why?", "Because.")
    second = store.add_message(chat.chat_id, asked.message_id, Role.ASSISTANT, "It depends.")
    assert store.children(asked.message_id) == [first, second]
    assert store.branch(chat.chat_id) == [asked, second]
    store.set_active_leaf(chat.chat_id, first.message_id)
    assert store.branch(chat.chat_id) == [asked, first]
    store.flush(PATIENCE_S)
    assert store.branch(chat.chat_id) == [asked, first]
    assert store.messages(chat.chat_id) == (asked, first, second)
    store.set_active_leaf(chat.chat_id, None)
    assert store.branch(chat.chat_id) == []


def test_a_long_branch_is_read_deleted_and_restored_whole(store):
    """SQLite's own cascades give up at a depth of 1,000."""
    chat = store.add_chat()
    parent_id = None
    for number in range(1500):
        parent_id = store.add_message(chat.chat_id, parent_id, Role.USER, f"message {number}").message_id
    store.flush(PATIENCE_S)
    before = store.branch(chat.chat_id)
    assert [message.text for message in before] == [f"message {number}" for number in range(1500)]
    deleted = store.delete_chat(chat.chat_id)
    store.flush(PATIENCE_S)
    assert store.messages(chat.chat_id) == ()
    store.restore_chat(deleted).result(PATIENCE_S)
    assert store.branch(chat.chat_id) == before


def test_a_ring_in_a_damaged_store_does_not_hang_a_read(store, path):
    chat, (asked, answered) = dialogue(store, "Why?", "Because.")
    store.flush(PATIENCE_S)
    connection = sqlite3.connect(path, isolation_level=None)
    ring = (answered.message_id, asked.message_id)
    connection.execute("UPDATE messages SET parent_id = ? WHERE message_id = ?", ring)
    connection.close()
    assert [message.text for message in store.branch(chat.chat_id)] == ["Why?", "Because."]
    assert store.messages(chat.chat_id) == ()


def test_token_ids_can_be_left_out_of_a_branch(store):
    chat = store.add_chat()
    store.add_message(chat.chat_id, None, Role.USER, "x", token_ids=(1, 2))
    store.flush(PATIENCE_S)
    assert store.branch(chat.chat_id)[0].token_ids == (1, 2)
    assert store.branch(chat.chat_id, with_token_ids=False)[0].token_ids == ()


def test_what_is_not_there_is_said_in_words(store):
    for read in (store.chat, store.message, store.branch, store.children, store.delete_chat):
        with pytest.raises(StoreError) as caught:
            read(5)
        assert caught.value.code is StoreCode.MISSING
        assert caught.value.message == "This chat or message is not there any more."
    with pytest.raises(StoreError):
        store.add_message(5, None, Role.USER, "x")
    for future in (store.rename_chat(5, "x"), store.append_text(5, "x"), store.resume_message(5)):
        assert future.exception(PATIENCE_S).code is StoreCode.MISSING
    assert store.finish_message(5, MessageState.COMPLETE, "", (), {}).exception(PATIENCE_S).code is StoreCode.MISSING


def test_damage_met_while_reading_is_told_and_the_file_is_moved_aside_at_the_next_start(store, path):
    for _ in range(40):
        dialogue(store, "some text " * 200)
    store.close()
    content = bytearray(path.read_bytes())
    content[4096 * 20 :] = b"\xff" * (len(content) - 4096 * 20)  # the roots of the tables stay whole
    path.write_bytes(content)
    damaged = open_store(path).store
    with pytest.raises(StoreError) as caught:
        [damaged.branch(chat.chat_id) for chat in damaged.chats()]
    assert caught.value.code is StoreCode.DAMAGED
    damaged.close()
    opened = open_store(path)
    opened.store.close()
    assert [notice.code for notice in opened.notices] == [StoreCode.MOVED_ASIDE]
