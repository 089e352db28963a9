"""A second start hands its files to the first; nobody else may speak to it, and nonsense is passed over."""

from __future__ import annotations

import json
import socket
import stat
import sys
from pathlib import Path

import pytest
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from ui.single_instance import SingleInstance, hand_over, server_name


@pytest.fixture
def name(tmp_path):
    return server_name(tmp_path)


@pytest.fixture
def first(qapp, name):
    made = SingleInstance(name)
    yield made
    made.close()


def send(name: str, data: bytes) -> None:
    client = QLocalSocket()
    client.connectToServer(name)
    assert client.waitForConnected(1000)
    client.write(data)
    client.waitForBytesWritten(1000)
    client.disconnectFromServer()


def test_the_name_follows_from_the_data_folder_and_does_not_tell_it(tmp_path):
    assert server_name(tmp_path) == server_name(Path(str(tmp_path)))
    assert server_name(tmp_path) != server_name(tmp_path / "other")
    assert tmp_path.name not in server_name(tmp_path)
    assert server_name(Path("/home/\udcff"))  # a name that is no text


def test_without_a_first_window_there_is_nobody_to_hand_over_to(qapp, name):
    assert not hand_over(name, ["/models/a.gguf"])


def test_files_reach_the_first_window_as_they_were_given(first, name, qtbot):
    files = ["/models/a.gguf", "/models/ü <b> 'quoted'.gguf"]
    with qtbot.waitSignal(first.files_handed_over) as caught:
        assert hand_over(name, files)
    assert caught.args == [files]


def test_a_start_without_files_only_asks_for_the_window(first, name, qtbot):
    with qtbot.waitSignal(first.files_handed_over) as caught:
        assert hand_over(name, [])
    assert caught.args == [[]]


def test_two_starts_at_once_are_both_heard(first, name, qtbot):
    heard = []
    first.files_handed_over.connect(heard.append)
    assert hand_over(name, ["a"])
    assert hand_over(name, ["b"])
    qtbot.waitUntil(lambda: len(heard) == 2)
    assert sorted(heard) == [["a"], ["b"]]


def test_nonsense_is_passed_over(first, name, qtbot):
    heard = []
    first.files_handed_over.connect(heard.append)
    for data in (b"not json", b"\xff\xfe", b'{"a": 1}', b"", b"[" * 50_000):
        send(name, data)
    send(name, json.dumps(["kept", 5, None, ["not"]]).encode())
    qtbot.waitUntil(lambda: bool(heard))
    assert heard == [["kept"]]


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe there is no file")
def test_what_a_killed_program_left_behind_is_taken_over(qapp, name, qtbot):
    server = QLocalServer()
    assert server.listen(name)
    path = server.fullServerName()
    server.close()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(path)  # and never removed
    first = SingleInstance(name)
    with qtbot.waitSignal(first.files_handed_over):
        assert hand_over(name, ["a"])
    assert stat.S_IMODE(Path(path).stat().st_mode) & 0o077 == 0
    first.close()
