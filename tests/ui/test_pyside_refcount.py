"""PySide6 6.12 on Python 3.11 loses a reference to True at each emit and ends the interpreter after some 600."""

from __future__ import annotations

import sys

from PySide6.QtCore import QObject, Signal

EMITS = 1_000
# Other code may take or drop a few references meanwhile; the fault loses one an emit.
SLACK = 20


class _Sender(QObject):
    happened = Signal(bool)
    said = Signal(str)


def test_a_thousand_emits_leave_the_references_to_true_alone():
    sender = _Sender()
    received: list[bool] = []
    sender.happened.connect(received.append)
    before = sys.getrefcount(True)
    for _ in range(EMITS):
        sender.happened.emit(True)
        sender.said.emit("word")
    held = len(received)
    assert held == EMITS
    received.clear()
    assert abs(sys.getrefcount(True) - before) < SLACK
