"""The data folder cannot be written, or its disk is full: the window opens, says so, and answers (S-45, S-47)."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.helpers.program import (
    SHORT_ANSWER,
    ChatFile,
    DrivenProgram,
    can_mount,
    small_disk,
    stretched,
    wait_for,
    write_settings,
)

pytestmark = pytest.mark.drill

# Root may write anywhere; without this capability its rights are those of any owner of a file.
AS_AN_OWNER = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")


@pytest.fixture
def prefix() -> tuple[str, ...]:
    """What stands before the program's command line so that a folder without write permission is one."""
    if os.geteuid() != 0:
        return ()
    if shutil.which("setpriv") is None:
        pytest.skip("root without setpriv: no folder can be made read-only for the program")
    return AS_AN_OWNER


@pytest.fixture
def locked(own_home: Path) -> Iterator[Callable[[], None]]:
    """Takes every right to write away from the home when called; gives them back at the end."""

    def set_modes(file_mode: int, folder_mode: int) -> None:
        for path in [*own_home.rglob("*"), own_home]:
            path.chmod(folder_mode if path.is_dir() else file_mode)

    yield lambda: set_modes(0o400, 0o500)
    own_home.chmod(0o700)
    set_modes(0o600, 0o700)


def see_it_answer(program: DrivenProgram) -> None:
    """Send a prompt and see the answer begin; without settings it may go on for thousands of tokens: it is stopped."""
    program.wait_ready()
    program.ask("send", SHORT_ANSWER)
    program.wait(
        lambda s: s["messages"] and s["messages"][-1]["role"] == "assistant" and s["messages"][-1]["text"], "text"
    )
    program.ask("stop")
    program.wait_answered()


def ask_and_see(program: DrivenProgram, limit_s: float = 120.0) -> str:
    """Send a prompt and return the answer, which must not be empty."""
    program.wait_ready()
    program.ask("send", SHORT_ANSWER)
    shown = program.wait_answered(stretched(limit_s))["messages"][-1]
    assert shown["text"]
    assert shown["state_text"] == ""
    return shown["text"]


def test_a_folder_that_was_never_writable_is_told_and_an_answer_comes(own_home, locked, prefix):
    locked()
    with DrivenProgram(own_home, prefix=prefix) as program:
        program.wait(
            lambda s: any(f"The folder {own_home}/" in text and "cannot be used" in text for text in s["notices"]),
            "the folder is told of",
        )
        see_it_answer(program)
        assert program.quit() == 0
    assert list(own_home.iterdir()) == []


def test_chats_in_a_folder_that_became_read_only_are_shown_and_an_answer_comes(own_home, locked, prefix):
    write_settings(own_home, max_tokens=40)
    with DrivenProgram(own_home, prefix=prefix) as program:
        earlier = ask_and_see(program)
        assert program.quit() == 0
    locked()
    before = sorted((path, path.stat().st_mtime_ns) for path in own_home.rglob("*"))
    with DrivenProgram(own_home, prefix=prefix) as program:
        program.wait_notice("can be read but not")
        program.ask("open")
        assert program.state()["messages"][-1]["text"] == earlier
        see_it_answer(program)
        assert program.quit() == 0
    assert sorted((path, path.stat().st_mtime_ns) for path in own_home.rglob("*")) == before


def fill(folder: Path) -> Path:
    """Take all the room that is left on a folder's disk."""
    filler = folder / "filler"
    with filler.open("ab", buffering=0) as file:
        for size in (65_536, 4_096, 512, 1):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                continue
    return filler


@pytest.mark.skipif(not can_mount(), reason="only root can mount a small disk")
def test_what_a_full_disk_does_not_take_is_told_and_stored_once_there_is_room(own_home):
    with small_disk(own_home, 4_096):
        write_settings(own_home, max_tokens=40)
        with DrivenProgram(own_home) as program:
            first = ask_and_see(program)
            filler = fill(own_home)
            program.ask("new")
            second = ask_and_see(program)
            program.wait_notice("The disk is full, so new messages are not saved yet.", stretched(10.0))
            filler.unlink()
            wait_for(
                lambda: (
                    [m["text"] for m in ChatFile(own_home).messages() if m["role"] == "assistant"] == [first, second]
                ),
                "the new answer is stored",
                stretched(15.0),
            )
            assert program.quit() == 0
        assert ChatFile(own_home).integrity() == "ok"


@pytest.mark.skipif(not can_mount(), reason="only root can mount a small disk")
def test_a_disk_that_is_full_at_the_start_is_told_and_an_answer_comes(own_home):
    with small_disk(own_home, 1_024):
        fill(own_home)
        with DrivenProgram(own_home) as program:
            program.wait_notice("cannot be used: No space left on device")
            see_it_answer(program)
            assert program.quit() == 0
