"""Work runs elsewhere, and what comes of it arrives on the GUI thread, in words."""

from __future__ import annotations

import threading

import pytest
from PySide6.QtCore import QObject
from shiboken6 import Shiboken

from app.errors import AppError, Words
from ui.tasks import SynchronousTasks, Tasks


@pytest.fixture
def tasks(qapp):
    made = Tasks()
    yield made
    assert made.wait_all()


def test_work_runs_on_another_thread_and_its_result_arrives_on_the_gui_thread(tasks, qtbot):
    seen = []
    tasks.run(threading.get_ident, lambda ident: seen.append((ident, threading.get_ident())))
    qtbot.waitUntil(lambda: bool(seen))
    worker, receiver = seen[0]
    assert worker != threading.get_ident()
    assert receiver == threading.get_ident()


def test_a_foreseen_error_brings_its_own_words(tasks, qtbot):
    def refuse():
        raise AppError(Words("No.", "Do otherwise."))

    seen = []
    tasks.run(refuse, seen.append, seen.append)
    qtbot.waitUntil(lambda: bool(seen))
    assert seen == [Words("No.", "Do otherwise.")]


def test_an_unforeseen_error_is_logged_and_worded_without_its_text(qtbot, allow_log, caplog):
    def fail():
        raise ValueError("CANARY")

    seen = []
    tasks = Tasks(on_error=seen.append)
    tasks.run(fail)
    assert tasks.wait_all()
    assert "ValueError" in seen[0].message
    assert "CANARY" not in seen[0].message
    assert caplog.records[0].message == "background work failed"


def test_a_callback_of_a_deleted_widget_is_dropped(tasks):
    class Owner(QObject):
        def take(self, value):
            pytest.fail("called after its deletion")

    owner = Owner()
    gate = threading.Event()
    tasks.run(lambda: gate.wait(10), owner.take)
    Shiboken.delete(owner)
    gate.set()
    assert tasks.wait_all()


def test_waiting_delivers_everything_even_what_a_callback_starts(tasks):
    seen = []
    tasks.run(lambda: 1, lambda value: tasks.run(lambda: value + 1, seen.append))
    assert tasks.wait_all()
    assert seen == [2]


def test_waiting_gives_up_in_time_and_says_so(tasks):
    gate = threading.Event()
    tasks.run(lambda: gate.wait(10))
    assert not tasks.wait_all(0.01)
    gate.set()


def test_without_callbacks_nothing_happens(tasks, allow_log):
    def fail():
        raise OSError(5, "Input/output error")

    tasks.run(fail)
    tasks.run(lambda: 1)
    assert tasks.wait_all()


def test_the_synchronous_twin_is_done_when_it_returns(qapp):
    seen = []
    tasks = SynchronousTasks()
    tasks.run(lambda: 1, seen.append)
    assert seen == [1]
    tasks.run(lambda: 1 / 1, seen.append)
    assert seen == [1, 1.0]


def test_the_synchronous_twin_words_errors_too(qapp):
    def refuse():
        raise AppError(Words("No."))

    seen = []
    SynchronousTasks(seen.append).run(refuse)
    assert seen == [Words("No.")]


def test_work_that_waits_may_have_more_threads(qapp):
    tasks = Tasks(threads=6)
    assert tasks._pool.maxThreadCount() == 6
