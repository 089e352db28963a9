"""The one thread hop: everything arrives on the GUI thread, in order, and text at most once a frame."""

from __future__ import annotations

import threading
import time

import pytest
from PySide6.QtCore import QObject

from app.chat.session_events import AnswerWaiting, ChatChanged, TextAppended
from app.engines.supervisor import StateChanged
from backends import protocol
from backends.protocol import LifeCycle, RequestId
from ui.bridge import FRAME_MS, Bridge


class Heard(QObject):
    """Remembers what a bridge says, and on which thread."""

    def __init__(self, bridge: Bridge) -> None:
        super().__init__()
        self.events: list[object] = []
        self.texts: list[tuple[int, int, int, str]] = []
        self.readings = 0
        self.threads: set[int] = set()
        bridge.engine_event.connect(self.on_event)
        bridge.session_event.connect(self.on_event)
        bridge.text_appended.connect(self.on_text)
        bridge.telemetry_moved.connect(self.on_reading)

    def on_event(self, event: object) -> None:
        self.events.append(event)
        self.threads.add(threading.get_ident())

    def on_text(self, *parts: object) -> None:
        self.texts.append(parts)
        self.threads.add(threading.get_ident())

    def on_reading(self) -> None:
        self.readings += 1


@pytest.fixture
def bridge(qapp):
    made = Bridge()
    yield made
    made.close()


@pytest.fixture
def heard(bridge):
    return Heard(bridge)


def on_a_thread(work) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_events_of_other_threads_arrive_in_order_on_the_gui_thread(bridge, heard, qtbot):
    events = [StateChanged(state) for state in LifeCycle] + [ChatChanged(number) for number in range(50)]

    def tell() -> None:
        for event in events[: len(LifeCycle)]:
            bridge.on_engine_event(event)
        for event in events[len(LifeCycle) :]:
            bridge.on_session_event(event)

    on_a_thread(tell)
    qtbot.waitUntil(lambda: len(heard.events) == len(events))
    assert heard.events == events
    assert heard.threads == {threading.get_ident()}


def test_readings_only_wake_the_plots_and_steps_are_not_forwarded(bridge, heard, qtbot):
    bridge.on_engine_event(protocol.StepDone(protocol.StepStats(step=1, ended_s=0.0, duration_s=0.0)))
    bridge.on_engine_event(protocol.TokensCounted(RequestId(1), 5))
    bridge.on_engine_event(protocol.MemoryRead(read_s=1.0))
    bridge.on_engine_event(protocol.LogRecorded("info", "the last"))
    assert (heard.readings, heard.events) == (1, [protocol.LogRecorded("info", "the last")])


def test_the_text_of_a_frame_is_one_insertion_with_its_place(bridge, heard, qtbot):
    for place, letter in enumerate("token"):
        bridge.on_session_event(TextAppended(1, 2, letter, place))
    assert heard.texts == []
    qtbot.waitUntil(lambda: bool(heard.texts))
    assert heard.texts == [(1, 2, 0, "token")]
    bridge.on_session_event(TextAppended(1, 2, "s", 5))
    qtbot.waitUntil(lambda: len(heard.texts) == 2)
    assert heard.texts[1] == (1, 2, 5, "s")


def test_the_texts_of_two_answers_are_kept_apart(bridge, heard, qtbot):
    big = 2**53 - 1  # ids do not fit into a C int
    for place in range(3):
        bridge.on_session_event(TextAppended(1, 10, "a", place))
        bridge.on_session_event(TextAppended(big, big, "b", place))
    qtbot.waitUntil(lambda: len(heard.texts) == 2)
    assert heard.texts == [(1, 10, 0, "aaa"), (big, big, 0, "bbb")]


def test_a_flood_of_text_costs_one_insertion_a_frame(bridge, heard, qtbot):
    # Twenty thousand tokens, as fast as a thread can tell them: the GUI thread sees frames, not tokens.
    num_events = 20_000

    def tell() -> None:
        for place in range(num_events):
            bridge.on_session_event(TextAppended(1, 2, "x", place))

    began_s = time.monotonic()
    thread = threading.Thread(target=tell)
    thread.start()
    qtbot.waitUntil(lambda: sum(len(text) for *_ids, text in heard.texts) == num_events, timeout=30_000)
    frames = (time.monotonic() - began_s) * 1000 / FRAME_MS
    thread.join()
    assert len(heard.texts) <= frames + 1
    assert [start for _chat, _message, start, _text in heard.texts] == [
        sum(len(text) for *_ids, text in heard.texts[:index]) for index in range(len(heard.texts))
    ]


def test_a_closed_bridge_forwards_nothing_and_starts_no_timer(bridge, heard, qapp, qtbot):
    on_a_thread(lambda: bridge.on_session_event(TextAppended(1, 2, "waiting", 0)))
    bridge.close()
    bridge.on_session_event(AnswerWaiting(1, True))
    bridge.on_engine_event(StateChanged(LifeCycle.READY))
    bridge.on_engine_event(protocol.MemoryRead(read_s=1.0))
    qapp.processEvents()  # the wish for a timer, queued before the end, is delivered
    assert not bridge._timer.isActive()
    assert (heard.events, heard.texts, heard.readings) == ([], [], 0)
