"""What the tests of the whole window share: one that is open on the echo engine, and closed at the end."""

from __future__ import annotations

import pytest

from tests.helpers.echo_window import OpenWindow, echo_context, script_entry

PATIENCE_MS = 30_000


@pytest.fixture
def open_window(qtbot, tmp_path):
    """Return a function that opens the window on a script, or on a context, and waits until its model is loaded."""
    opened: list[OpenWindow] = []

    def open_one(script=None, *, context=None, files=(), is_ready=OpenWindow.is_ready):
        made = OpenWindow(context or echo_context([script_entry(tmp_path, "Echo", script)]), files)
        opened.append(made)
        qtbot.waitUntil(lambda: is_ready(made), timeout=PATIENCE_MS)
        return made

    yield open_one
    for made in opened:
        made.close()
