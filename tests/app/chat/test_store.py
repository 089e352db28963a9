"""The chat store as its users see it: records, streamed answers, deleting, several users, closing."""

from __future__ import annotations

import dataclasses
import sqlite3
import threading
import time

import pytest

from app.chat.messages import MessageState, Role
from app.chat.store import StoreCode, StoreError, StoreMode, open_store
from tests.helpers.chat_stores import PATIENCE_S, dialogue, sql, streaming


def reopened(store, path):
    """Close the store and open it again."""
    store.close()
    opened = open_store(path)
    assert opened.notices == ()
    return opened.store


# ------------------------------------------------------------------------------------------- full disks and crashes


def test_a_record_reads_back_as_it_was_written(store, path):
    chat = store.add_chat("Täst 🦭")
    message = store.add_message(
        chat.chat_id,
        None,
        Role.ASSISTANT,
        "a\0b\n🦭 ﷽",
        model="SmolLM2 · Q4_1",
        params={"seed": 7, "stop": ["</s>"]},
        stats={"ttft_s": 0.25},
        token_ids=(0, 1, 2**32 - 1),
        tokenizer_hash="ab" * 32,
    )
    store.set_system_prompt(chat.chat_id, "Be calm.")
    store.set_params(chat.chat_id, {"temperature": 0.0})
    chat = store.chat(chat.chat_id)
    assert (chat.title, chat.system_prompt, chat.params) == ("Täst 🦭", "Be calm.", {"temperature": 0.0})
    assert (chat.active_leaf_id, chat.updated_s) == (message.message_id, message.created_s)
    assert message.text == "a\0b\n🦭 ﷽"
    store = reopened(store, path)
    try:
        assert store.message(message.message_id) == message
        assert store.chat(chat.chat_id) == chat
    finally:
        store.close()


def test_no_commit_happens_on_the_callers_thread(store):
    threads = set()
    put = store._writer.put
    store._writer.put = lambda apply, written: put(
        lambda connection: (threads.add(threading.current_thread()), apply(connection))[1], written
    )
    dialogue(store, "Why?", "Because.")
    store.flush(PATIENCE_S)
    assert threads == {store._writer._thread}


def test_ids_are_positive_and_below_2_to_the_53(store):
    chats = [store.add_chat() for _ in range(50)]
    assert len({chat.chat_id for chat in chats}) == 50
    assert all(0 < chat.chat_id < 2**53 for chat in chats)


def test_what_json_or_the_file_cannot_hold_is_refused_at_once(store):
    chat = store.add_chat()
    with pytest.raises(TypeError):
        store.set_params(chat.chat_id, {"x": object()})
    with pytest.raises(ValueError, match="token ids"):
        store.add_message(chat.chat_id, None, Role.USER, "x", token_ids=(-1,))
    answer = streaming(store)
    with pytest.raises(ValueError, match="token ids"):
        store.append_text(answer.message_id, "x", (2**32,))
    assert store.message(answer.message_id) == answer


def test_lone_surrogates_are_replaced_and_never_stop_the_writer(store):
    chat = store.add_chat("\ud800")
    message = store.add_message(chat.chat_id, None, Role.USER, "a\udfffb", model="\ud83d")
    store.flush(PATIENCE_S)
    assert store.chat(chat.chat_id).title == "�"
    assert (store.message(message.message_id).text, message.model) == ("a�b", "�")


def test_records_are_frozen(store):
    chat = store.add_chat()
    with pytest.raises(dataclasses.FrozenInstanceError):
        chat.title = "x"
    assert not hasattr(chat, "__dict__")


def test_an_answer_grows_piece_by_piece_and_is_finished_with_its_figures(store, path):
    answer = streaming(store)
    first = store.append_text(answer.message_id, "Hel", (1,))
    store.append_text(answer.message_id, "lo", (2, 3))
    said = store.message(answer.message_id)
    assert (said.text, said.token_ids, said.state) == ("Hello", (1, 2, 3), MessageState.STREAMING)
    first.result(PATIENCE_S)
    assert sql(path, "SELECT text, state FROM messages") == [("Hello", "streaming")]
    done = store.finish_message(
        answer.message_id, MessageState.COMPLETE, "Hello.", (1, 2, 3, 4), {"new_tokens": 4}, tokenizer_hash="h"
    )
    done.result(PATIENCE_S)
    said = store.message(answer.message_id)
    assert (said.text, said.token_ids, said.stats) == ("Hello.", (1, 2, 3, 4), {"new_tokens": 4})
    assert (said.state, said.tokenizer_hash) == (MessageState.COMPLETE, "h")
    assert store.chats()[0].updated_s > said.created_s


def test_pieces_that_wait_together_share_one_write(store):
    answer = streaming(store)
    store.flush(PATIENCE_S)
    with store._writer._guard:
        futures = {store.append_text(answer.message_id, "x", (1,)) for _ in range(100)}
    assert len(futures) <= 2  # one may have been taken before the other pieces came
    store.flush(PATIENCE_S)
    assert store.message(answer.message_id).text == "x" * 100


def test_text_for_a_finished_answer_is_refused(store):
    answer = streaming(store)
    store.finish_message(answer.message_id, MessageState.STOPPED, "Hel", (1,), {})
    late = store.append_text(answer.message_id, "lo", (2,))
    assert late.exception(PATIENCE_S).code is StoreCode.FINISHED
    store.flush(PATIENCE_S)
    assert store.message(answer.message_id).text == "Hel"


def test_a_stopped_answer_can_be_resumed(store):
    answer = streaming(store)
    store.finish_message(answer.message_id, MessageState.STOPPED, "Hel", (1,), {})
    store.resume_message(answer.message_id)
    store.append_text(answer.message_id, "lo", (2,)).result(PATIENCE_S)
    said = store.message(answer.message_id)
    assert (said.text, said.token_ids, said.state) == ("Hello", (1, 2), MessageState.STREAMING)


def test_pieces_of_a_chat_that_is_deleted_meanwhile_do_no_harm(store):
    answer = streaming(store)
    journal = store.append_text(answer.message_id, "Hel", (1,))
    deleted = store.delete_chat(answer.chat_id)
    assert deleted.messages[0].text == "Hel"
    assert store.append_text(answer.message_id, "lo").exception(PATIENCE_S).code is StoreCode.MISSING
    journal.result(PATIENCE_S)
    assert store.chats() == []


def test_closing_marks_an_unfinished_answer_as_interrupted(store, path):
    answer = streaming(store)
    store.append_text(answer.message_id, "Hel", (1,))
    store = reopened(store, path)
    try:
        said = store.message(answer.message_id)
        assert (said.text, said.state) == ("Hel", MessageState.INTERRUPTED)
    finally:
        store.close()


def test_an_answer_of_a_dead_process_is_interrupted_and_that_of_a_living_one_is_not(store, path):
    answer = streaming(store)
    store.flush(PATIENCE_S)
    second = open_store(path).store
    assert second.message(answer.message_id).state is MessageState.STREAMING
    second.add_chat()
    second.close()
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("UPDATE writers SET process_started_s = 1.0")  # the id was given to another process since
    connection.close()
    third = open_store(path).store
    assert third.message(answer.message_id).state is MessageState.INTERRUPTED
    third.close()
    store.finish_message(answer.message_id, MessageState.COMPLETE, "Hello", (1,), {}).result(PATIENCE_S)
    assert store.message(answer.message_id).state is MessageState.COMPLETE


def test_deleting_can_be_undone_with_all_ids(store):
    chat, _messages = dialogue(store, "Why?", "Because of platypuses.")
    store.set_system_prompt(chat.chat_id, "Be calm.")
    before = (store.chat(chat.chat_id), store.messages(chat.chat_id))
    deleted = store.delete_chat(chat.chat_id)
    store.flush(PATIENCE_S)
    assert (store.chats(), store.search("platypuses")) == ([], [])
    store.restore_chat(deleted).result(PATIENCE_S)
    assert (store.chat(chat.chat_id), store.messages(chat.chat_id)) == before
    assert len(store.search("platypuses")) == 1


def test_after_vacuum_no_byte_of_a_deleted_chat_is_left(store, path):
    dialogue(store, "keep this")
    chat, _messages = dialogue(store, "CANARY7f3 " * 500, "canaryanswer")
    store.flush(PATIENCE_S)
    backup = path.with_name("chats.db.v1-backup")
    backup.write_bytes(b"CANARY7f3")
    assert any(b"canary7f3" in file.read_bytes().lower() for file in path.parent.iterdir())
    store.delete_chat(chat.chat_id)
    store.vacuum().result(PATIENCE_S)
    left = b"".join(file.read_bytes() for file in path.parent.iterdir()).lower()
    assert b"canary" not in left
    assert not backup.exists()
    assert b"keep this" in left
    assert [hit.snippet for hit in store.search("keep")] == ["keep this"]


def test_two_stores_on_one_file_see_each_others_chats(store, path):
    second = open_store(path)
    assert second.notices == ()
    chat = store.add_chat("from the first")
    store.flush(PATIENCE_S)
    assert [c.title for c in second.store.chats()] == ["from the first"]
    second.store.add_message(chat.chat_id, None, Role.USER, "from the second")
    second.store.flush(PATIENCE_S)
    second.store.close()
    assert [message.text for message in store.branch(chat.chat_id)] == ["from the second"]


def test_a_message_for_a_chat_that_another_process_deleted_is_refused_alone(store, path, allow_log):
    allow_log("a write was refused: FOREIGN KEY")
    chat, (asked,) = dialogue(store, "Why?")
    store.flush(PATIENCE_S)
    with store._writer._guard:
        late = store.add_message(chat.chat_id, asked.message_id, Role.ASSISTANT, "Because.")
        other = store.add_chat("other")
        second = open_store(path).store
        second.delete_chat(chat.chat_id)
        second.close()
    store.flush(PATIENCE_S)
    assert store.chats() == [other]
    with pytest.raises(StoreError):
        store.message(late.message_id)


def test_many_threads_may_read_and_write_at_once(store):
    def talk():
        chat, messages = dialogue(store, "a", "b", "c")
        for _ in range(10):
            assert store.branch(chat.chat_id) == messages
            store.chats()

    threads = [threading.Thread(target=talk) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.flush(PATIENCE_S)
    assert len(store.chats()) == 6


def test_closing_leaves_one_file_and_no_writer(store, path):
    dialogue(store, "Why?")
    store.close()
    store.close()
    assert [file.name for file in path.parent.iterdir()] == ["chats.db"]
    assert sql(path, "SELECT * FROM writers") == []
    assert path.stat().st_mode & 0o777 == 0o600
    assert not store._writer._thread.is_alive()


def test_a_store_that_was_only_read_is_not_written(store, path):
    dialogue(store, "Why?")
    store.close()
    before = path.read_bytes()
    second = open_store(path).store
    assert len(second.chats()) == 1
    second.close()
    assert path.read_bytes() == before


def test_after_closing_reads_and_writes_say_so(store):
    chat = store.add_chat()
    store.close()
    assert store.rename_chat(chat.chat_id, "x").exception(PATIENCE_S).code is StoreCode.CLOSED
    assert store.settled().exception(PATIENCE_S).code is StoreCode.CLOSED
    with pytest.raises(StoreError) as caught:
        store.chats()
    assert caught.value.code is StoreCode.CLOSED


def test_in_memory_all_works_and_nothing_is_kept(tmp_path):
    (tmp_path / "file").write_text("in the way")
    opened = open_store(tmp_path / "file" / "chats.db")
    store = opened.store
    try:
        assert [notice.code for notice in opened.notices] == [StoreCode.NOT_KEPT]
        assert store.mode is StoreMode.IN_MEMORY
        chat, messages = dialogue(store, "Why?", "Because.")
        store.flush(PATIENCE_S)
        assert store.branch(chat.chat_id) == messages
        assert [hit.message_id for hit in store.search("because")] == [messages[1].message_id]
        store.delete_chat(chat.chat_id)
        store.vacuum().result(PATIENCE_S)
        assert store.chats() == []
    finally:
        store.close()
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_in_a_read_only_store_what_is_new_is_shown_until_the_end(store, path):
    chat, (asked,) = dialogue(store, "Why?")
    store.close()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()
    opened = open_store(path)
    second = opened.store
    problems = []
    second.on_problem(problems.append)
    try:
        assert [notice.code for notice in opened.notices] == [StoreCode.NEWER]
        assert second.mode is StoreMode.READ_ONLY
        assert second.branch(chat.chat_id) == [asked]
        answered = second.add_message(chat.chat_id, asked.message_id, Role.ASSISTANT, "Because.")
        assert second.rename_chat(chat.chat_id, "x").exception(PATIENCE_S).code is StoreCode.READ_ONLY
        with pytest.raises(StoreError):
            second.flush(PATIENCE_S)
        assert second.branch(chat.chat_id) == [asked, answered]
        assert [hit.message_id for hit in second.search("why")] == [asked.message_id]
        assert [problem.code for problem in problems] == [StoreCode.READ_ONLY]
    finally:
        second.close()
    assert path.read_bytes() == before


def test_the_clock_of_records_never_goes_back(store, monkeypatch):
    chat = store.add_chat()
    monkeypatch.setattr(time, "time", lambda: 1.0)
    message = store.add_message(chat.chat_id, None, Role.USER, "x")
    assert message.created_s > chat.created_s
