"""The store on full disks and under kills: what was acknowledged is never lost."""

from __future__ import annotations

import contextlib
import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from app.chat.messages import MessageState, Role
from app.chat.store import StoreCode, StoreMode, open_store
from tests.helpers.chat_stores import PATIENCE_S, dialogue, sql

ROOT = Path(__file__).resolve().parents[3]


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


def fill(folder):
    """Use up the last byte of a small disk; return the file that holds it."""
    ballast = folder / "ballast"
    with contextlib.suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(b"\0" * 4096)
    return ballast


def test_on_a_full_disk_nothing_is_lost_and_all_is_saved_once_there_is_space(small_disk):
    path = small_disk / "chats.db"
    store = open_store(path).store
    problems = []
    store.on_problem(problems.append)
    try:
        chat, (asked,) = dialogue(store, "Why?")
        answer = store.add_message(chat.chat_id, asked.message_id, Role.ASSISTANT, state=MessageState.STREAMING)
        store.append_text(answer.message_id, "Because", (1,)).result(PATIENCE_S)
        ballast = fill(small_disk)
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
    fill(small_disk)
    opened = open_store(small_disk / "chats.db")
    opened.store.close()
    assert opened.store.mode is StoreMode.IN_MEMORY
    assert [notice.code for notice in opened.notices] == [StoreCode.NOT_KEPT]
    assert opened.notices[0].message.startswith("Your chats cannot be opened: the disk is full")
    assert [file.name for file in small_disk.iterdir()] == ["ballast"]


def test_an_old_store_on_a_full_disk_is_still_shown(small_disk):
    path = small_disk / "chats.db"
    store = open_store(path).store
    chat, messages = dialogue(store, "Why?")
    store.close()
    fill(small_disk)
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
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY
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
