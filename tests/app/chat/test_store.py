"""The chat store as its users see it: reads after writes, the tree, deleting, journalling, and failing disks."""

from __future__ import annotations

import dataclasses
import os
import resource
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from app.chat import store_file
from app.chat.messages import Chat, MessageState, Role
from app.chat.store import StoreCode, StoreError, StoreMode, open_store

PATIENCE_S = 30.0
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "chats.db"


@pytest.fixture
def store(path):
    opened = open_store(path)
    assert opened.notices == ()
    yield opened.store
    opened.store.close()


def reopened(store, path):
    """Close the store and open it again."""
    store.close()
    opened = open_store(path)
    assert opened.notices == ()
    return opened.store


def sql(path, query):
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def dialogue(store, *texts):
    """Add a chat with these messages in turn, person first; return the chat and the messages."""
    chat = store.add_chat("Talk")
    messages = []
    for place, text in enumerate(texts):
        parent_id = messages[-1].message_id if messages else None
        role = Role.ASSISTANT if place % 2 else Role.USER
        messages.append(store.add_message(chat.chat_id, parent_id, role, text))
    return store.chat(chat.chat_id), messages


def streaming(store, text=""):
    chat = store.add_chat()
    return store.add_message(chat.chat_id, None, Role.ASSISTANT, text, state=MessageState.STREAMING)


# ------------------------------------------------------------------------------------------- reads and writes


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


# ------------------------------------------------------------------------------------------- streamed answers


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


# ------------------------------------------------------------------------------------------- deleting


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


# ------------------------------------------------------------------------------------------- several users


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


# ------------------------------------------------------------------------------------------- closing


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


# ------------------------------------------------------------------------------------------- other kinds of store


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


def test_damage_met_while_reading_is_told_and_the_file_is_moved_aside_at_the_next_start(store, path):
    for _ in range(40):
        dialogue(store, "some text " * 200)
    chat = store.chats()[-1]
    store.close()
    content = bytearray(path.read_bytes())
    content[4096 * 20 :] = b"\xff" * (len(content) - 4096 * 20)  # the roots of the tables stay whole
    path.write_bytes(content)
    damaged = open_store(path).store
    with pytest.raises(StoreError) as caught:
        for chat in damaged.chats():
            damaged.branch(chat.chat_id)
    assert caught.value.code is StoreCode.DAMAGED
    damaged.close()
    opened = open_store(path)
    opened.store.close()
    assert [notice.code for notice in opened.notices] == [StoreCode.MOVED_ASIDE]
    assert isinstance(chat, Chat)


# ------------------------------------------------------------------------------------------- full disks and crashes


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MB, where one can be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("file systems can be mounted by root only")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_on_a_full_disk_nothing_is_lost_and_all_is_saved_once_there_is_space(small_disk):
    path = small_disk / "chats.db"
    store = open_store(path).store
    problems = []
    store.on_problem(problems.append)
    try:
        chat, (asked,) = dialogue(store, "Why?")
        answer = store.add_message(chat.chat_id, asked.message_id, Role.ASSISTANT, state=MessageState.STREAMING)
        store.append_text(answer.message_id, "Because", (1,)).result(PATIENCE_S)
        ballast = small_disk / "ballast"
        with pytest.raises(OSError, match="No space"), ballast.open("wb") as file:
            while True:
                file.write(b"\0" * 4096)
                file.flush()
        text = "Because " + "of the platypus. " * 4000
        failed = store.append_text(answer.message_id, text[len("Because") :], (2,)).exception(PATIENCE_S)
        assert failed.code is StoreCode.FULL
        assert failed.message == "The disk is full, so new messages are not saved yet."
        finished = store.finish_message(answer.message_id, MessageState.COMPLETE, text, (1, 2), {})
        assert finished.exception(PATIENCE_S).code is StoreCode.FULL
        assert [problem.code for problem in problems] == [StoreCode.FULL]  # told once
        assert store.message(answer.message_id).text == text
        assert sql(path, "SELECT text FROM messages ORDER BY created_s") == [("Why?",), ("Because",)]
        ballast.unlink()
        store.rename_chat(chat.chat_id, "Space again").result(PATIENCE_S)
        assert sql(path, "SELECT text, state FROM messages ORDER BY created_s")[1] == (text, "complete")
        assert store._writer._backlog == []
    finally:
        store.close()
    assert sql(path, "PRAGMA integrity_check") == [("ok",)]


def test_a_disk_that_is_full_from_the_start_gives_a_store_in_memory(small_disk):
    with pytest.raises(OSError, match="No space"), (small_disk / "ballast").open("wb", buffering=0) as file:
        while True:
            file.write(b"\0" * 4096)
    opened = open_store(small_disk / "chats.db")
    opened.store.close()
    assert opened.store.mode is StoreMode.IN_MEMORY
    assert [notice.code for notice in opened.notices] == [StoreCode.NOT_KEPT]
    assert "the disk is full" in opened.notices[0].message or "No space left" in opened.notices[0].message
    assert [file.name for file in small_disk.iterdir()] == ["ballast"]


def test_an_old_store_on_a_full_disk_is_still_shown(small_disk):
    path = small_disk / "chats.db"
    store = open_store(path).store
    chat, messages = dialogue(store, "Why?")
    store.close()
    with pytest.raises(OSError, match="No space"), (small_disk / "ballast").open("wb", buffering=0) as file:
        while True:
            file.write(b"\0" * 4096)
    opened = open_store(path)
    try:
        assert opened.store.branch(chat.chat_id) == messages
        assert {notice.code for notice in opened.notices} <= {StoreCode.READ_ONLY}
    finally:
        opened.store.close()


LIMITED = """
import resource, sys
from pathlib import Path
from app.chat.messages import Role
from app.chat.store import open_store
store = open_store(Path(sys.argv[1])).store
chat = store.add_chat("kept")
store.flush(30)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
message = store.add_message(chat.chat_id, None, Role.USER, "x" * 1_000_000)
print(store.settled().exception(30).code.value)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.flush(30)
store.close()
"""


def test_a_write_beyond_the_limit_of_file_sizes_fails_in_words_and_is_done_later(path):
    assert resource.RLIM_INFINITY == resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, str(path)], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["disk"]
    assert sql(path, "SELECT length(text) FROM messages") == [(1_000_000,)]


WRITING = """
import sys, time
from pathlib import Path
from app.chat.messages import MessageState, Role
from app.chat.store import open_store

def say(*words):
    sys.stdout.write(" ".join(str(word) for word in words) + "\\n")
    sys.stdout.flush()

opened = open_store(Path(sys.argv[1]))
assert opened.notices == (), opened.notices
store = opened.store
say("ready")
while True:
    chat = store.add_chat("kept")
    asked = store.add_message(chat.chat_id, None, Role.USER, "Why? " * 50)
    answer = store.add_message(chat.chat_id, asked.message_id, Role.ASSISTANT, state=MessageState.STREAMING)
    store.flush(30)
    say("kept", asked.message_id)
    text, ids = "", []
    for number in range(700):
        text += f"w{number} "
        ids.append(number)
        store.append_text(answer.message_id, f"w{number} ", (number,))
        say("said", answer.message_id, time.monotonic(), len(ids))
        time.sleep(0.002)
    store.finish_message(answer.message_id, MessageState.COMPLETE, text, ids, {}).result(30)
    say("finished", answer.message_id, len(ids))
"""


def kill_while_writing(path, after_s):
    """Run the writing child, kill it after a while, and return the lines it said."""
    child = subprocess.Popen([sys.executable, "-c", WRITING, str(path)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "ready\n"
        timer = threading.Timer(after_s, child.kill)
        timer.start()
        lines = child.stdout.read().splitlines()
        timer.join()
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    return [line.split() for line in lines if line]


def check_after_kill(path, lines):
    """Check the store against what the child said before it died."""
    opened = open_store(path)
    store = opened.store
    try:
        assert opened.notices == ()
        assert sql(path, "PRAGMA integrity_check") == [("ok",)]
        assert sql(path, "SELECT count(*) FROM messages WHERE state = 'streaming'") == [(0,)]
        last_s = max((float(line[2]) for line in lines if line[0] == "said" and len(line) == 4), default=0.0)
        for line in lines[:-1]:  # the last one may be torn
            message = store.message(int(line[1]))
            match line[0]:
                case "said" if last_s - float(line[2]) > 1.0:
                    assert len(message.token_ids) >= int(line[3])
                case "finished":
                    assert (message.state, len(message.token_ids)) == (MessageState.COMPLETE, int(line[2]))
            if message.role is Role.ASSISTANT:  # text and ids are never of different moments
                assert message.text == "".join(f"w{number} " for number in range(len(message.token_ids)))
    finally:
        store.close()
    return len(lines)


def kill_many_times(path, count):
    """Deaths fall at fixed but scattered moments between 0.02 and 1.7 s after the child began to write."""
    said = 0
    for number in range(count):
        lines = kill_while_writing(path, 0.02 + 1.68 * (number * 0.618 % 1.0))
        said += check_after_kill(path, lines)
    assert said > 100 * count


def test_twenty_kills_while_writing_lose_nothing_that_was_acknowledged(path):
    kill_many_times(path, 20)


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.skipif(os.environ.get("CUTAWAY_FULL") != "1", reason="set CUTAWAY_FULL=1 for the large counts")
def test_a_hundred_kills_while_writing_lose_nothing_that_was_acknowledged(path):
    kill_many_times(path, 100)


def test_the_clock_of_records_never_goes_back(store, monkeypatch):
    chat = store.add_chat()
    monkeypatch.setattr(time, "time", lambda: 1.0)
    message = store.add_message(chat.chat_id, None, Role.USER, "x")
    assert message.created_s > chat.created_s


def test_this_process_is_alive_and_a_number_that_no_process_has_is_not():
    assert store_file._is_alive(*store_file.this_process())
    assert not store_file._is_alive(2**22 + 1, 0.0)
