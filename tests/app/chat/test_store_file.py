"""Opening the store: every way it can go wrong ends in something usable and a notice in words."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import closing
from pathlib import Path

import pytest

from app.chat import rows, store_file
from app.chat.messages import Chat, DeletedChat, Message, MessageState, Role
from app.chat.schema import SCHEMA_VERSION, migrate
from app.chat.store import open_store
from app.chat.store_file import StoreMode, open_file
from app.chat.store_words import StoreCode
from app.sqlite_file import version_of
from tests.helpers.chat_stores import PATIENCE_S, dialogue, sql

ROOT = Path(__file__).resolve().parents[3]
ASIDE = re.compile(r"chats\.damaged-\d{4}-\d\d-\d\d-\d{6}(-[0-9a-f]{4})?\.db(-wal|-shm)?")


def opened(path):
    """Open the file, close it again, and return its mode, the codes of its notices and the titles in it."""
    file = open_file(path)
    titles = [chat.title for chat in rows.read_chats(file.reader)]
    file.reader.close()
    return file.mode, [notice.code for notice in file.notices], titles


FRESH = (StoreMode.WRITABLE, [], [])
AS_IT_WAS = (StoreMode.WRITABLE, [], ["Talk"])
MOVED_ASIDE = (StoreMode.WRITABLE, [StoreCode.MOVED_ASIDE], [])
NOT_KEPT = (StoreMode.IN_MEMORY, [StoreCode.NOT_KEPT], [])


@pytest.fixture
def filled(path):
    """The path of a closed store that holds one chat."""
    store = open_store(path).store
    dialogue(store, "Why? " * 5000, "Because. " * 5000)
    store.close()
    return path


# ------------------------------------------------------------------------------------------------ making


def test_a_missing_store_is_made_with_its_folders_and_for_this_person_only(tmp_path):
    path = tmp_path / "a" / "b" / "chats.db"
    assert opened(path) == FRESH
    assert opened(path) == FRESH
    assert [file.name for file in path.parent.iterdir()] == ["chats.db"]
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("name", ["a b", "ü🦭", "what?mode=ro#x", "100%41", "a'\"b", "x" * 200])
def test_a_folder_may_have_any_name(tmp_path, name):
    path = tmp_path / name / "chats.db"
    store = open_store(path).store
    store.add_chat("Talk")
    store.close()
    assert opened(path) == AS_IT_WAS
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_a_link_leads_to_the_store(filled, tmp_path):
    link = tmp_path / "link.db"
    link.symlink_to(filled)
    assert opened(link) == AS_IT_WAS


def test_many_that_make_the_store_at_once_share_one(path):
    files, barrier = [], threading.Barrier(6)

    def make():
        barrier.wait()
        files.append(open_file(path))

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with closing(files[0].connect_writer()) as writer:
        rows.insert_chat(writer, Chat(1, "Talk", 1.0, 1.0))
    assert [(file.mode, file.notices) for file in files] == [(StoreMode.WRITABLE, ())] * 6
    assert [len(rows.read_chats(file.reader)) for file in files] == [1] * 6
    for file in files:
        file.reader.close()
    assert [file.name for file in path.parent.iterdir()] == ["chats.db"]


def test_the_safe_ways_of_sqlite_are_in_use(path):
    file = open_file(path)
    with closing(file.reader) as reader, closing(file.connect_writer()) as writer:
        for connection in (reader, writer):
            found = [
                connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("journal_mode", "synchronous", "foreign_keys", "secure_delete", "busy_timeout")
            ]
            assert found == ["wal", 2, 1, 1, 5000]
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            reader.execute("DELETE FROM chats")


# ------------------------------------------------------------------------------------------------ damage


def damage_empty(content):
    return b""


def damage_garbage(content):
    return bytes(range(256)) * 100


def damage_short(content):
    return content[:50]


def damage_one_page(content):
    return content[:4096]


def damage_end_missing(content):
    return content[:-1]


def damage_half(content):
    return content[: len(content) // 2]


def damage_roots(content):
    return content[:4096] + b"\xa5" * (len(content) - 4096)


def damage_first_page(content):
    return content[:100] + b"\xa5" * 3996 + content[4096:]


DAMAGES = [value for name, value in sorted(globals().items()) if name.startswith("damage_")]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_store_is_moved_aside_whole_and_a_fresh_one_is_made(filled, damage):
    content = damage(filled.read_bytes())
    filled.write_bytes(content)
    assert opened(filled) == MOVED_ASIDE
    (aside,) = (file for file in filled.parent.iterdir() if file != filled)
    assert ASIDE.fullmatch(aside.name)
    assert aside.read_bytes() == content
    assert opened(filled) == FRESH


def test_the_notice_says_what_was_found_and_where_the_old_file_is(path):
    path.write_bytes(b"")
    file = open_file(path)
    file.reader.close()
    (aside,) = (other for other in path.parent.iterdir() if ASIDE.fullmatch(other.name))
    (notice,) = file.notices
    assert notice.message == "The file of your chats is damaged (it is empty), so a new, empty one was begun."
    assert str(aside) in notice.hint


def test_a_second_damage_in_the_same_second_does_not_replace_the_first(path):
    for content in (b"first", b"second", b"third"):
        path.write_bytes(content)
        assert opened(path) == MOVED_ASIDE
    asides = [file for file in path.parent.iterdir() if file != path]
    assert {file.read_bytes() for file in asides} == {b"first", b"second", b"third"}
    assert all(ASIDE.fullmatch(file.name) for file in asides)


def test_a_foreign_database_is_moved_aside(path):
    sql(path, "CREATE TABLE recipes (name TEXT)")
    assert opened(path) == MOVED_ASIDE


def test_a_wal_without_its_store_is_kept_under_another_name(path):
    path.with_name("chats.db-wal").write_bytes(b"what is left")
    assert opened(path) == MOVED_ASIDE
    (aside,) = (file for file in path.parent.iterdir() if file != path)
    assert aside.name.endswith("-wal")
    assert aside.read_bytes() == b"what is left"


def test_after_a_crash_the_content_is_checked_and_after_a_clean_end_it_is_not(filled):
    content = bytearray(filled.read_bytes())
    content[4096 * 20 :] = b"\xa5" * (len(content) - 4096 * 20)  # the roots of the tables stay whole
    filled.write_bytes(content)
    assert opened(filled) == AS_IT_WAS
    sql(filled, "INSERT INTO writers VALUES (1, 4194305, 1.0)")  # a process that is gone
    assert opened(filled) == MOVED_ASIDE


def test_after_a_crash_a_whole_store_is_kept_and_its_unfinished_answers_are_interrupted(filled):
    sql(filled, "INSERT INTO writers VALUES (1, 4194305, 1.0), (2, ?, ?)", store_file.this_process())
    sql(filled, "UPDATE messages SET state = 'streaming', writer_id = 1 WHERE role = 'assistant'")
    sql(filled, "UPDATE messages SET state = 'streaming', writer_id = 2 WHERE role = 'user'")
    assert opened(filled) == AS_IT_WAS
    states = sql(filled, "SELECT role, state FROM messages ORDER BY role")
    assert states == [("assistant", "interrupted"), ("user", "streaming")]
    assert sql(filled, "SELECT writer_id FROM writers") == [(2,)]


def test_a_process_is_known_by_its_id_and_its_start():
    pid, started_s = store_file.this_process()
    assert store_file._is_alive(pid, started_s)
    assert not store_file._is_alive(pid, started_s - 3600)
    assert not store_file._is_alive(2**22 + 1, started_s)


def test_a_process_that_ended_and_was_not_collected_counts_as_gone():
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    try:
        started_s = store_file.psutil.Process(child.pid).create_time()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert not store_file._is_alive(child.pid, started_s)
    finally:
        child.wait()


# ------------------------------------------------------------------------------------------------ versions


def make_version_1(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        migrate(connection, up_to=1)
        message = Message(10, 1, None, Role.USER, "Tell me of the platypus.", created_s=1.0)
        rows.restore_chat(connection, DeletedChat(Chat(1, "Talk", 1.0, 1.0, 10), (message,)), writer_id=1)


def test_an_older_store_is_copied_and_then_migrated(path):
    make_version_1(path)
    store = open_store(path)
    assert store.notices == ()
    assert [hit.message_id for hit in store.store.search("platypus")] == [10]
    assert [message.text for message in store.store.branch(1)] == ["Tell me of the platypus."]
    store.store.close()
    assert sql(path, "PRAGMA user_version") == [(SCHEMA_VERSION,)]
    backup = path.with_name("chats.db.v1-backup")
    assert backup.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(backup)) as connection:
        assert version_of(connection) == 1
        assert [chat.title for chat in rows.read_chats(connection)] == ["Talk"]


def test_a_migration_that_fails_leaves_the_old_store_to_be_read(path, monkeypatch):
    make_version_1(path)

    def fail(connection):
        raise sqlite3.OperationalError("no such module: fts5")

    monkeypatch.setattr(store_file, "migrate", fail)
    assert opened(path) == (StoreMode.READ_ONLY, [StoreCode.READ_ONLY], ["Talk"])
    assert sql(path, "PRAGMA user_version") == [(1,)]


def test_a_newer_store_is_shown_and_not_one_byte_of_it_changes(filled):
    sql(filled, "PRAGMA user_version = 99")
    sql(filled, "ALTER TABLE chats ADD COLUMN colour TEXT")
    before = filled.read_bytes()
    assert opened(filled) == (StoreMode.READ_ONLY, [StoreCode.NEWER], ["Talk"])
    assert filled.read_bytes() == before


def test_a_newer_store_that_cannot_be_understood_is_left_alone(filled):
    sql(filled, "ALTER TABLE chats RENAME COLUMN title TO name")
    sql(filled, "PRAGMA user_version = 99")
    before = filled.read_bytes()
    assert opened(filled) == NOT_KEPT
    assert filled.read_bytes() == before
    assert [file.name for file in filled.parent.iterdir() if "damaged" in file.name] == []


# ------------------------------------------------------------------------------------------------ no access


def test_a_folder_or_a_pipe_in_the_place_of_the_store_is_left_alone(tmp_path):
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    assert opened(tmp_path / "folder") == NOT_KEPT
    assert opened(tmp_path / "pipe") == NOT_KEPT
    assert sorted(file.name for file in tmp_path.iterdir()) == ["folder", "pipe"]


@pytest.mark.parametrize("path", ["/proc/nothing/chats.db", "/dev/null/chats.db", "x" * 300 + "/chats.db"])
def test_where_no_file_can_be_the_store_lives_in_memory(path):
    assert opened(Path(path)) == NOT_KEPT


def test_a_file_system_without_hard_links_will_do(path, monkeypatch):
    def refuse(source, target):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    assert opened(path) == FRESH
    assert [file.name for file in path.parent.iterdir()] == ["chats.db"]


# Root may write everywhere, so the store is opened by nobody.
BY_NOBODY = """
import json, os, sys
from pathlib import Path
from app.chat.messages import Role
from app.chat.store import open_store
if os.getuid() == 0:
    os.setegid(65534)
    os.seteuid(65534)
opened = open_store(Path(sys.argv[1]))
store = opened.store
titles = [chat.title for chat in store.chats()]
added = store.add_chat("new")
shown = len(store.chats())
store.close()
print(json.dumps([store.mode.value, [notice.code for notice in opened.notices], titles, shown]))
"""


def opened_by_nobody(path):
    done = subprocess.run(
        [sys.executable, "-c", BY_NOBODY, str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    return json.loads(done.stdout)


@pytest.fixture
def shared_folder():
    """A folder that nobody may enter and list; pytest's own are closed to others."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


def test_a_store_in_a_folder_that_cannot_be_written_is_shown(shared_folder):
    path = shared_folder / "chats.db"
    make_version_1(path)
    path.chmod(0o666)
    shared_folder.chmod(0o555)
    assert opened_by_nobody(path) == ["read_only", ["read_only"], ["Talk"], 2]
    assert sql(path, "SELECT title FROM chats") == [("Talk",)]


def test_a_store_that_cannot_be_written_is_shown(shared_folder):
    path = shared_folder / "chats.db"
    store = open_store(path).store
    store.add_chat("Talk")
    store.close()
    path.chmod(0o444)
    assert opened_by_nobody(path) == ["read_only", ["read_only"], ["Talk"], 2]
    shared_folder.chmod(0o777)
    assert opened_by_nobody(path) == ["read_only", ["read_only"], ["Talk"], 2]
    assert sql(path, "SELECT title FROM chats") == [("Talk",)]


def test_a_store_that_cannot_be_read_or_made_is_replaced_by_one_in_memory(shared_folder):
    path = shared_folder / "chats.db"
    shared_folder.chmod(0o555)
    assert opened_by_nobody(path) == ["in_memory", ["not_kept"], [], 1]
    shared_folder.chmod(0o755)
    path.write_bytes(b"")
    path.chmod(0o000)
    shared_folder.chmod(0o555)
    assert opened_by_nobody(path) == ["in_memory", ["not_kept"], [], 1]


def test_a_damaged_store_that_cannot_be_moved_is_left_alone(shared_folder):
    path = shared_folder / "chats.db"
    path.write_bytes(b"garbage")
    path.chmod(0o444)
    shared_folder.chmod(0o555)
    assert opened_by_nobody(path) == ["in_memory", ["not_kept"], [], 1]
    assert path.read_bytes() == b"garbage"


def test_unfinished_means_streaming():
    """The opening's statements name the states in SQL; they must be those of the program."""
    assert (MessageState.STREAMING, MessageState.INTERRUPTED) == ("streaming", "interrupted")
