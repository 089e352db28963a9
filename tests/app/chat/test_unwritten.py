"""What was asked of the store and is not on disk yet."""

from __future__ import annotations

from dataclasses import replace

from app.chat.messages import Chat, DeletedChat, Message, MessageState, Role
from app.chat.unwritten import Unwritten

CHAT = Chat(1, "Talk", 1.0, 1.0)
MESSAGE = Message(10, 1, None, Role.ASSISTANT, "Hel", state=MessageState.STREAMING, token_ids=(1,))


def test_an_entry_stays_until_its_own_write_is_done():
    unwritten = Unwritten()
    forget_first = unwritten.put_chat(CHAT)
    renamed = replace(CHAT, title="New")
    forget_second = unwritten.put_chat(renamed)
    forget_first()  # the first write is done; the second still waits
    assert unwritten.chats() == {1: renamed}
    forget_second()
    forget_second()
    assert unwritten.chats() == {}


def test_a_chat_that_is_being_deleted_is_remembered_as_gone_and_its_messages_are_dropped():
    unwritten = Unwritten()
    unwritten.put_chat(CHAT)
    unwritten.put_message(MESSAGE)
    unwritten.begin(MESSAGE)
    forget = unwritten.put_deleted(1)
    assert unwritten.chats() == {1: None}
    assert (unwritten.messages(1), unwritten.is_being_written(10)) == ({}, False)
    forget()
    assert unwritten.chats() == {}


def test_a_restored_chat_comes_back_with_its_messages():
    unwritten = Unwritten()
    unwritten.put_deleted(1)
    forget = unwritten.put_restored(DeletedChat(CHAT, (MESSAGE,)))
    assert (unwritten.chats(), unwritten.messages(1)) == ({1: CHAT}, {10: MESSAGE})
    forget()
    assert (unwritten.chats(), unwritten.messages(1)) == ({}, {})


def test_pieces_are_joined_when_somebody_looks():
    unwritten = Unwritten()
    unwritten.begin(MESSAGE)
    unwritten.append(10, "l", (2,))
    unwritten.append(10, "o", (3, 4))
    whole = replace(MESSAGE, text="Hello", token_ids=(1, 2, 3, 4))
    assert unwritten.message(10) == whole
    assert unwritten.messages(1) == {10: whole}
    unwritten.begin(MESSAGE)  # a second time changes nothing
    assert unwritten.message(10) == whole
    unwritten.append(10, "!", (5,))
    assert unwritten.message(10) == replace(MESSAGE, text="Hello!", token_ids=(1, 2, 3, 4, 5))


def test_a_finished_answer_replaces_its_pieces_and_later_ones_are_passed_over():
    unwritten = Unwritten()
    unwritten.begin(MESSAGE)
    unwritten.append(10, "lo", (2,))
    finished = replace(MESSAGE, text="Hello.", state=MessageState.COMPLETE)
    forget = unwritten.put_message(finished)
    unwritten.append(10, "late", (9,))
    assert unwritten.message(10) == finished
    forget()
    assert unwritten.message(10) is None
