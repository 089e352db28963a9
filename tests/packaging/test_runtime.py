"""The copied Python: what it takes along, and the path it gives to every process of the program."""

from __future__ import annotations

import _ctypes
import shutil
import sys
from pathlib import Path

import bootstrap
import pytest
import runtime


@pytest.mark.skipif(shutil.which("ldd") is None, reason="there is no ldd")
def test_the_libraries_that_python_brings_are_taken_along_and_the_c_library_is_not():
    found = runtime.libraries_of([Path(_ctypes.__file__)])
    assert any(name.startswith("libffi.so") for name in found)
    assert not any(name.startswith(("libc.so", "libm.so", "ld-linux", "linux-vdso")) for name in found)
    assert all(path.is_absolute() and path.is_file() for path in found.values())


def test_line_editing_stays_the_system_s(tmp_path):
    assert runtime.libraries_of([tmp_path / "readline.cpython-311-x86_64-linux-gnu.so"]) == {}


@pytest.mark.parametrize(
    "name", ["_tkinter.x.so", "_testcapi.x.so", "_curses_panel.x.so", "nis.x.so", "xxlimited_35.x.so"]
)
def test_modules_that_the_program_has_no_use_for_are_left_out(name):
    assert runtime._MODULES_LEFT_OUT.match(name)


@pytest.mark.parametrize(
    "name", ["_ssl.x.so", "_sqlite3.x.so", "_ctypes.x.so", "readline.x.so", "_posixsubprocess.x.so"]
)
def test_modules_that_engines_may_need_are_kept(name):
    assert not runtime._MODULES_LEFT_OUT.match(name)


def test_every_process_finds_the_packages_and_the_program_after_python_s_own(monkeypatch):
    monkeypatch.setattr(sys, "prefix", "/usr/lib/ą b/runtime")
    monkeypatch.setattr(sys, "path", ["/own"])
    exec(compile(runtime._SITE, "sitecustomize.py", "exec"), {})
    assert sys.path == ["/own", "/usr/lib/ą b/app_packages", "/usr/lib/ą b"]


def test_another_python_is_refused_in_words(monkeypatch, tmp_path):
    monkeypatch.setattr(runtime, "VERSION", (3, 1))
    with pytest.raises(bootstrap.SetupError, match=r"made with Python 3\.1, and \.venv holds another"):
        runtime.copy_runtime(tmp_path)
    assert list(tmp_path.iterdir()) == []
