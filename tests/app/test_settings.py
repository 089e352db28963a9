"""The settings file survives everything that happens to files."""

from __future__ import annotations

import json
import os
import stat
import threading

import pytest

from app import atomic_file
from app import settings as module
from app.errors import AppError
from app.settings import Settings, SettingsStore


@pytest.fixture
def path(tmp_path):
    return tmp_path / "settings.json"


def others(path):
    return sorted(found.name for found in path.parent.iterdir() if found != path)


def test_without_a_file_the_defaults_are_used_and_nothing_is_written(path):
    store, notices = SettingsStore.load(path)
    assert store.get() == Settings()
    assert notices == ()
    assert not path.exists()


def test_a_change_is_there_after_the_next_load_and_leaves_no_temporary_file(path):
    store, _ = SettingsStore.load(path)
    store.change(temperature=0.2, system_prompt="Speak Kraków: 日本 🙂", seed=7)
    again, notices = SettingsStore.load(path)
    assert again.get() == Settings(temperature=0.2, system_prompt="Speak Kraków: 日本 🙂", seed=7)
    assert notices == ()
    assert others(path) == []
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_a_newer_version_wrote_is_kept(path):
    path.write_text('{"threads": 3, "hologram": {"on": [1, null]}}')
    store, notices = SettingsStore.load(path)
    store.change(threads=4)
    assert notices == ()
    assert json.loads(path.read_text())["hologram"] == {"on": [1, None]}


GARBAGE = {
    "empty": b"",
    "zeros": b"\0" * 100,
    "torn": b"{",
    "array": b"[1, 2]",
    "null": b"null",
    "not a number": b'{"threads": NaN}',
    "other encoding": b"\xff\xfe{}",
    "deep": b"[" * 100_000,
    "huge": b" " * 5_000_000,
}


@pytest.mark.parametrize("garbage", GARBAGE.values(), ids=GARBAGE)
def test_garbage_is_put_aside_whole_and_told(path, garbage, allow_log):
    path.write_bytes(garbage)
    store, notices = SettingsStore.load(path)
    assert store.get() == Settings()
    (aside,) = others(path)
    assert aside.startswith("settings.damaged-2")
    assert (path.parent / aside).read_bytes() == garbage
    assert aside in notices[0].hint
    store.change(threads=2)
    assert SettingsStore.load(path)[0].get().threads == 2


def test_wrong_types_are_reset_alone_and_the_file_with_them_is_put_aside(path, allow_log):
    path.write_text('{"threads": "many", "temperature": 99, "theme": "dark", "hologram": 1}')
    store, notices = SettingsStore.load(path)
    assert store.get() == Settings(theme="dark")
    assert len(notices) == 1
    assert "temperature, threads" in notices[0].message
    assert len(others(path)) == 1
    again, notices = SettingsStore.load(path)
    assert again.get() == Settings(theme="dark")
    assert notices == ()
    assert json.loads(path.read_text())["hologram"] == 1


def test_two_damaged_files_within_a_second_are_both_kept(path, allow_log):
    for _ in range(2):
        path.write_text("garbage")
        SettingsStore.load(path)
    assert len(others(path)) == 2


def test_a_byte_order_mark_does_no_harm(path):
    path.write_bytes(b'\xef\xbb\xbf{"threads": 3}')
    assert SettingsStore.load(path)[0].get().threads == 3


def test_a_folder_or_a_pipe_in_place_of_the_file_is_put_aside(path, allow_log):
    path.mkdir()
    assert len(SettingsStore.load(path)[1]) == 1
    os.mkfifo(path)
    assert len(SettingsStore.load(path)[1]) == 1
    assert len(others(path)) == 2


def test_an_unreadable_file_stays_where_it_is_and_is_told(path, monkeypatch):
    def refuse(_):
        raise PermissionError(13, "Permission denied")

    path.write_text("{}")
    monkeypatch.setattr(module, "_read", refuse)
    store, notices = SettingsStore.load(path)
    assert store.get() == Settings()
    assert "Permission denied" in notices[0].message
    assert others(path) == []


def test_a_bad_value_changes_nothing_at_all(path):
    store, _ = SettingsStore.load(path)
    with pytest.raises(AppError, match="must lie between 0 and 5"):
        store.change(threads=3, temperature=-1)
    assert store.get() == Settings()
    assert not path.exists()


def test_a_failed_write_is_told_and_leaves_the_old_file_and_no_other(path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    store, _ = SettingsStore.load(path)
    store.change(threads=3)
    monkeypatch.setattr(atomic_file.os, "fsync", full)
    with pytest.raises(AppError, match="in use but could not be saved: No space left on device"):
        store.change(threads=4)
    assert store.get().threads == 4
    assert json.loads(path.read_text())["threads"] == 3
    assert others(path) == []
    monkeypatch.undo()
    store.save()
    assert json.loads(path.read_text())["threads"] == 4


def test_a_link_to_the_file_stays_a_link(path, tmp_path):
    target = tmp_path / "elsewhere.json"
    target.write_text("{}")
    path.symlink_to(target)
    SettingsStore.load(path)[0].change(threads=5)
    assert path.is_symlink()
    assert json.loads(target.read_text())["threads"] == 5


def test_listeners_hear_of_real_changes_until_they_leave(path):
    heard = []
    store, _ = SettingsStore.load(path)
    end = store.listen(lambda settings, changed: heard.append((settings.threads, changed)))
    store.change(threads=2, theme="system")
    store.change(threads=2)
    end()
    end()
    store.change(threads=3)
    assert heard == [(2, frozenset({"threads"}))]


def test_writing_can_be_left_to_another_thread_and_later_writes_cover_earlier_ones(path):
    later = []
    store, _ = SettingsStore.load(path)
    store.save_with(later.append)
    store.change(threads=2)
    store.change(threads=3)
    assert not path.exists()
    first, second = later
    first()
    written = path.stat().st_mtime_ns, path.stat().st_ino
    second()
    assert (path.stat().st_mtime_ns, path.stat().st_ino) == written
    assert json.loads(path.read_text())["threads"] == 3


def test_changes_from_many_threads_are_all_kept(path):
    store, _ = SettingsStore.load(path)
    fields = [("threads", 3), ("top_k", 9), ("theme", "dark"), ("last_model", "m"), ("first_run_done", True)]
    threads = [threading.Thread(target=store.change, kwargs={name: value}) for name, value in fields]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert SettingsStore.load(path)[0].get() == Settings(**dict(fields))
