"""What a person writes is in the chat file and nowhere else, nothing listens, and each process holds only its own.

The canary of trust.md S-49: a word is typed, everything is done, and then every file and process is searched for it.
"""

from __future__ import annotations

import contextlib
import signal
import stat
from pathlib import Path

import psutil
import pytest

from tests.helpers.program import DrivenProgram, is_gone, maps_of, wait_for, write_settings

pytestmark = pytest.mark.drill

# In pieces, so that no file of the tree holds it.
CANARY = "CANARY-7f3" + "a91c5"
TOKEN = "hf_" + "CanaryToken7f3a91c5"
CHAT_FILE = "chats.sqlite3"


def files_that_hold(folder: Path, word: str) -> list[str]:
    """Return the files below a folder that hold the word, the chat file and its companions left out."""
    found = []
    for path in folder.rglob("*"):
        if stat.S_ISREG(path.lstat().st_mode) and not path.name.startswith(CHAT_FILE):
            data = path.read_bytes()
            if word.encode() in data or word.encode("utf-16-le") in data:
                found.append(str(path))
    return found


def processes_that_show(processes, word: str) -> list[str]:
    """Return the processes in whose command line or environment the word is."""
    found = []
    for process in processes:
        for name in ("cmdline", "environ"):
            with contextlib.suppress(OSError):
                if word.encode() in Path(f"/proc/{process.pid}/{name}").read_bytes():
                    found.append(f"{name} of {process.pid}")
    return found


def test_what_was_written_is_in_the_chat_file_and_nowhere_else(own_home, tmp_path):
    write_settings(own_home, max_tokens=40)
    changes = {"HF_TOKEN": TOKEN, "HUGGING_FACE_HUB_TOKEN": TOKEN}
    with DrivenProgram(own_home, changes=changes) as program:
        program.wait_ready()
        ours = [psutil.Process(program.process.pid)]
        program.ask("send", f"Remember {CANARY} and repeat it: {CANARY}")
        program.wait_answered()
        ours += program.children()
        assert processes_that_show(ours, CANARY) == []
        assert processes_that_show(ours[1:], TOKEN) == []
        for number in (signal.SIGABRT, signal.SIGSEGV):  # both leave a trace in the engine's log
            program.ask("new")
            program.ask("send", f"Write a long story about a lighthouse keeper called {CANARY}.")
            program.wait_writing(1)
            worker = program.worker()
            worker.send_signal(number)
            wait_for(lambda: is_gone(worker), "the engine is gone")  # noqa: B023 - called before the next round
            program.wait_answered()
        program.ask("new")
        program.ask("send", f"{CANARY} {'long ' * 20_000}")  # refused
        program.wait_answered()
        program.ask("load", str(tmp_path / "missing.gguf"))
        assert program.quit() == 0
    assert (own_home / "data" / CHAT_FILE).read_bytes().count(CANARY.encode()) > 0
    assert files_that_hold(own_home, CANARY) == []
    assert files_that_hold(program.temporary, CANARY) == []
    assert files_that_hold(own_home, TOKEN) == files_that_hold(program.temporary, TOKEN) == []
    errors = own_home.with_name(own_home.name + ".stderr").read_text(encoding="utf-8")
    assert CANARY not in errors


def test_no_process_has_a_connection_to_any_network_while_generating(own_home):
    write_settings(own_home)
    with DrivenProgram(own_home) as program:
        program.wait_ready()
        program.ask("send", "Write a very long story.")
        program.wait_writing()
        processes = [psutil.Process(program.process.pid), *program.children()]
        assert len(processes) == 3  # the window, the engine, the template renderer
        assert [process.net_connections(kind="inet") for process in processes] == [[], [], []]
        assert program.state()["is_busy"]
        assert program.quit() == 0


def test_the_token_of_a_hub_stays_in_the_window(own_home):
    write_settings(own_home)
    with DrivenProgram(own_home, changes={"HF_TOKEN": TOKEN}) as program:
        program.wait_ready()
        program.ask("send", "Write a very long story.")
        program.wait_writing()
        assert psutil.Process(program.process.pid).environ()["HF_TOKEN"] == TOKEN
        for child in program.children():
            assert TOKEN not in str(child.environ())
        assert program.quit() == 0


def test_the_window_holds_no_engine_and_the_engine_holds_no_window(own_home):
    write_settings(own_home)
    with DrivenProgram(own_home) as program:
        program.wait_ready()
        program.ask("send", "Write a very long story.")
        program.wait_writing()
        window = maps_of(psutil.Process(program.process.pid)).lower()
        worker, renderer = maps_of(program.worker()).lower(), maps_of(program.renderers()[0]).lower()
        modules = set(program.ask("modules")["modules"])
        assert program.quit() == 0
    assert "libqt6core" in window
    assert not any(word in window for word in ("libllama", "libggml", "libtorch", ".gguf"))
    assert not modules & {"torch", "transformers", "llama_cpp", "jinja2"}
    assert "libllama" in worker
    assert not any(word in worker for word in ("libqt6", "pyside6", "libtorch"))
    assert not any(word in renderer for word in ("libqt6", "pyside6", "libllama", "libtorch", ".gguf"))
