"""Where the program starts."""

from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

from app import __main__, cli
from app.errors import Words
from tests.helpers.command_line import ROOT


@pytest.fixture
def window(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Stand in for ui.main; return what it was asked."""
    asked: list[object] = []
    module = ModuleType("ui.main")
    module.main = lambda files: asked.append(files) or 7
    module.selftest_window = lambda picture: asked.append(picture) or 0
    monkeypatch.setitem(sys.modules, "ui.main", module)
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
    return asked


@pytest.mark.parametrize("files", [[], ["a.gguf"], ["a b.GGUF", "/c/d.gguf"]])
def test_nothing_or_model_files_open_the_window(files, window):
    assert __main__.main(files) == 7
    assert window == [files]


@pytest.mark.parametrize("arguments", [["chat"], ["--help"], ["x.txt"], ["models", "import", "a.gguf"], ["-a.gguf"]])
def test_anything_else_is_the_command_lines(arguments, window, monkeypatch):
    monkeypatch.setattr(cli, "run", lambda given: ("run", given))
    assert __main__.main(arguments) == ("run", arguments)
    assert window == []


def test_the_arguments_of_the_process_are_taken_by_default(window, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["cutaway", "a.gguf"])
    assert __main__.main() == 7
    assert window == [["a.gguf"]]


def test_the_window_of_the_selftest_is_drawn_by_name(window):
    assert __main__.main(["selftest-window", "picture.png"]) == 0
    assert window == ["picture.png"]


@pytest.fixture
def no_qt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")

    def fail(_name: str) -> ModuleType:
        raise ImportError("libEGL.so.1: cannot open shared object file: No such file or directory")

    monkeypatch.setattr(__main__.importlib, "import_module", fail)


def test_a_qt_that_cannot_be_loaded_is_told_and_the_chat_opens_in_the_terminal(no_qt, monkeypatch):
    told: list[tuple[Words, list[str]]] = []
    monkeypatch.setattr(cli, "chat_in_terminal", lambda words, files: told.append((words, files)) or 3)
    assert __main__.main(["a.gguf"]) == 3
    [(words, files)] = told
    assert (words.hint, files) == ("Install it with: sudo apt-get install libegl1", ["a.gguf"])


def test_the_window_of_the_selftest_says_which_library_is_missing(no_qt, capsys):
    assert __main__.main(["selftest-window", "picture.png"]) == 1
    assert capsys.readouterr().err == "The window cannot open: the system library libEGL.so.1 is missing.\n"


def test_starting_loads_nothing_heavy():
    code = "import sys, importlib; old = set(sys.modules); import app.__main__; print(sorted(set(sys.modules) - old))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['__future__', 'app', 'app.__main__']"


def test_the_command_line_loads_no_window_and_no_engine():
    code = (
        "import sys, app.cli; print([m for m in ('PySide6', 'llama_cpp', 'torch', 'ui', 'jinja2') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
