"""The real window program with hands: `ui.main.main` runs as it is, and lines on standard input press its buttons.

A drill starts this file as its program and asserts everything else from outside. A command is one line, a JSON list
of a name and its arguments; each is answered by one line of JSON. Nothing of the product knows that this exists.

    python -m tests.end_to_end.driver [--worker SCRIPT] [model files]
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import QEvent, QMimeData, QObject, QSocketNotifier, Qt, QTimer
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QApplication, QFrame, QPushButton

import ui.main
from app.context import AppContext
from backends.client import WorkerCommand

_TICK_MS = 20
_SHOWN_CHARACTERS = 2000


class Hands(QObject):
    """Does on the GUI thread what a person would do, and tells what a person would see.

    Attributes:
        _commands: by their names.
        _worst_gap_s: the longest time the window's event loop did not run, since it was last told.
    """

    def __init__(self, program: ui.main.Program, context: AppContext) -> None:
        super().__init__(program)
        self._window = program.window
        self._context = context
        self._buffer = b""
        self._output = sys.stdout
        self._ticked_s = time.monotonic()
        self._worst_gap_s = 0.0
        self._commands: dict[str, Callable[..., dict[str, Any]]] = {
            name: getattr(self, f"_do_{name}")
            for name in ("state", "send", "write", "stop", "new", "open", "press", "load", "modules", "grab", "quit")
        }
        os.set_blocking(0, False)
        self._notifier = QSocketNotifier(0, QSocketNotifier.Type.Read, self)
        self._notifier.activated.connect(self._on_readable)
        self._timer = QTimer(self)
        self._timer.setInterval(_TICK_MS)
        self._timer.timeout.connect(self._on_tick)
        self._timer.start()

    # ---------------------------------------------------------------------------------------- commands

    def _do_state(self) -> dict[str, Any]:
        chat = self._window.chats.chat
        button = chat.composer.findChild(QPushButton, "send_button")
        gap_s, self._worst_gap_s = self._worst_gap_s, 0.0
        return {
            "life_cycle": self._context.engine.state.value,
            "is_busy": button.text() == "Stop",
            "can_send": button.isEnabled(),
            "written": len(chat.composer.prompt.text),
            "notices": [notice.accessibleName() for notice in self._notices()],
            "buttons": [b.text() for n in self._notices() for b in _buttons(n)],
            "messages": [
                {
                    "role": item.role,
                    "text": item.text[:_SHOWN_CHARACTERS],
                    "characters": len(item.text),
                    "state_text": item.state_text,
                    "is_streaming": item.is_streaming,
                }
                for item in chat.view.items
            ],
            "chip": chat.chip.words,
            "line": self._window.chats.status.line,
            "worst_gap_s": gap_s,
        }

    def _do_write(self, text: str) -> dict[str, Any]:
        """Paste into the prompt, as it may come from any program's clipboard."""
        data = QMimeData()
        data.setData("text/plain", text.encode("utf-8", "surrogatepass"))  # half characters too
        self._window.chats.chat.composer.prompt.insertFromMimeData(data)
        return {}

    def _do_send(self, text: str) -> dict[str, Any]:
        self._do_write(text)
        self._press_key(self._window.chats.chat.composer.prompt, Qt.Key.Key_Return)
        return {}

    def _do_stop(self) -> dict[str, Any]:
        """Press the button, as Stop; tell the moment by the system's monotonic clock."""
        button = self._window.chats.chat.composer.findChild(QPushButton, "send_button")
        pressed_s = time.monotonic()
        if button.text() == "Stop":
            button.click()
        return {"pressed_s": pressed_s, "ended_s": time.monotonic()}

    def _do_new(self) -> dict[str, Any]:
        self._window.chats.new_chat()
        return {}

    def _do_open(self) -> dict[str, Any]:
        """Open the chat that was used last."""
        self._window.chats.open_chat(self._context.store.chats()[0].chat_id)
        return {}

    def _do_press(self, words: str) -> dict[str, Any]:
        """Press the button of a notice."""
        for notice in self._notices():
            for button in _buttons(notice):
                if button.text() == words:
                    button.click()
                    return {"pressed": True}
        return {"pressed": False}

    def _do_load(self, path: str) -> dict[str, Any]:
        self._window.open_files([path])
        return {}

    def _do_modules(self) -> dict[str, Any]:
        return {"modules": sorted({name.partition(".")[0] for name in sys.modules})}

    def _do_grab(self, path: str) -> dict[str, Any]:
        return {"saved": self._window.grab().save(path)}

    def _do_quit(self) -> dict[str, Any]:
        QTimer.singleShot(0, self._window.close)
        return {}

    # ------------------------------------------------------------------------------------------- slots

    def _on_readable(self) -> None:
        try:
            data = os.read(0, 1 << 20)
        except BlockingIOError:
            return
        if not data:  # the drill is gone: so is the person
            self._notifier.setEnabled(False)
            self._window.close()
            return
        self._buffer += data
        while b"\n" in self._buffer:
            line, _newline, self._buffer = self._buffer.partition(b"\n")
            name, *arguments = json.loads(line)
            self._output.write(json.dumps(self._commands[name](*arguments)) + "\n")
            self._output.flush()

    def _on_tick(self) -> None:
        now_s = time.monotonic()
        self._worst_gap_s = max(self._worst_gap_s, now_s - self._ticked_s)
        self._ticked_s = now_s

    # ----------------------------------------------------------------------------------------- helpers

    def _notices(self) -> list[QFrame]:
        bars = (self._window.chats.chat.notices, self._window.models.notices)
        frames = [frame for bar in bars for frame in bar.findChildren(QFrame)]
        return [frame for frame in frames if frame.property("kind") == "notice" and not frame.isHidden()]

    def _press_key(self, widget: QObject, key: Qt.Key) -> None:
        for kind in (QEvent.Type.KeyPress, QEvent.Type.KeyRelease):
            QApplication.sendEvent(widget, QKeyEvent(kind, key, Qt.KeyboardModifier.NoModifier))


class DrivenProgram(ui.main.Program):
    """The program, to which the hands are added once it is shown."""

    def __init__(self, app: QApplication, context: AppContext, files: list[str]) -> None:
        super().__init__(app, context, files)
        self._driven_context = context

    def start(self) -> None:
        super().start()
        self._hands = Hands(self, self._driven_context)


def _buttons(notice: QFrame) -> list[QPushButton]:
    return [button for button in notice.findChildren(QPushButton) if not button.isHidden()]


def main() -> int:
    """Run the program until its window is closed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--worker", default="")
    parser.add_argument("files", nargs="*")
    given = parser.parse_args()
    if given.worker:
        command = WorkerCommand((sys.executable, "-I", given.worker))
        ui.main.build_context = functools.partial(ui.main.build_context, command=command)
    ui.main.Program = DrivenProgram
    return ui.main.main(given.files)


if __name__ == "__main__":
    sys.exit(main())
