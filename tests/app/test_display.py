"""Whether a window can open, and the words where it cannot."""

from __future__ import annotations

import pytest

from app.display import can_load, display_problem, import_problem

NO_DISPLAY = "There is no display, so the chat opens in the terminal."


def problem_of(environment: dict[str, str], platform: str = "linux", missing: tuple[str, ...] = ()) -> str:
    words = display_problem(environment, platform, lambda library: library not in missing)
    return words.message if words else ""


@pytest.mark.parametrize(
    ("environment", "platform", "message"),
    [
        ({}, "linux", NO_DISPLAY),
        ({"DISPLAY": "", "WAYLAND_DISPLAY": ""}, "linux", NO_DISPLAY),
        ({"QT_QPA_PLATFORM": "xcb"}, "linux", NO_DISPLAY),
        ({"QT_QPA_PLATFORM": "offscreen"}, "linux", ""),
        ({"QT_QPA_PLATFORM": "vnc:size=800x600"}, "linux", ""),
        ({"DISPLAY": ":0"}, "linux", ""),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", ""),
        ({}, "freebsd14", NO_DISPLAY),
        ({}, "darwin", ""),
        ({}, "win32", ""),
    ],
)
def test_only_a_system_without_any_display_has_none(environment, platform, message):
    assert problem_of(environment, platform) == message


def test_a_library_that_would_end_the_process_is_named_with_its_package():
    missing = ("libxcb-cursor.so.0", "libxcb-icccm.so.4")
    words = display_problem({"DISPLAY": ":0"}, "linux", lambda library: library not in missing)
    assert words is not None
    assert words.message == (
        "The window cannot open: the system library libxcb-cursor.so.0, libxcb-icccm.so.4 is missing."
    )
    assert words.hint == "Install it with: sudo apt-get install libxcb-cursor0 libxcb-icccm4"
    assert problem_of({"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"}, missing=missing) == ""


def test_an_import_error_names_the_library_and_the_apt_line():
    error = ImportError("libEGL.so.1: cannot open shared object file: No such file or directory")
    words = import_problem(error)
    assert words.message == "The window cannot open: the system library libEGL.so.1 is missing."
    assert words.hint == "Install it with: sudo apt-get install libegl1"
    unknown = import_problem(ImportError("libodd.so.7: cannot open shared object file: No such file"))
    assert "libodd.so.7" in unknown.message
    assert unknown.hint == "Install the package of your system that holds it."


def test_any_other_import_error_is_told_too():
    words = import_problem(ModuleNotFoundError("No module named 'PySide6'"))
    assert words.message == "The window cannot open: No module named 'PySide6'."


def test_a_library_is_looked_for_in_the_system():
    assert can_load("libc.so.6")
    assert not can_load("libcutaway-nowhere.so.9")
