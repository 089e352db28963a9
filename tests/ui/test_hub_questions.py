"""Only the newest question counts; what was taken back is never answered; a slow hub is told."""

from __future__ import annotations

import pytest

from app.errors import AppError, Words
from app.hub.hub_errors import HubError, HubErrorKind
from ui import hub_questions
from ui.hub_questions import HubQuestions, Latest, fault_words
from ui.tasks import SynchronousTasks, Tasks

PATIENCE_MS = 60_000  # of a machine that is busy with much else


@pytest.fixture
def heard():
    return []


def asked(questions, question, work, heard, **more):
    questions.ask(
        question,
        work,
        lambda answer: heard.append(("done", answer)),
        lambda why: heard.append(("fault", why)),
        **more,
    )


def failing(error):
    def work():
        raise error

    return work


def test_a_new_question_takes_back_the_one_before():
    latest = Latest()
    first = latest.begin()
    second = latest.begin()
    assert first.is_set()
    assert not second.is_set()
    latest.end()
    assert second.is_set()


def test_answers_and_faults_come_back(qapp, heard):
    questions = HubQuestions(waiting=SynchronousTasks())
    error = HubError(HubErrorKind.SLOW, "hub")
    asked(questions, Latest().begin(), lambda: 7, heard)
    asked(questions, Latest().begin(), failing(error), heard)
    asked(questions, Latest().begin(), failing(AppError(Words("No."))), heard)
    assert heard == [("done", 7), ("fault", error), ("fault", Words("No."))]
    assert fault_words(error) == error.words
    assert fault_words(Words("No.")) == Words("No.")


def test_what_was_taken_back_is_not_answered(qapp, heard):
    questions = HubQuestions(waiting=SynchronousTasks())
    over = Latest().begin()
    over.set()
    for work in (lambda: 7, failing(HubError(HubErrorKind.SLOW)), failing(AppError(Words("No.")))):
        asked(questions, over, work, heard)
    asked(questions, Latest().begin(), failing(HubError(HubErrorKind.CANCELLED)), heard)
    assert heard == []


def test_a_slow_hub_is_told_while_it_is_waited_for(qtbot, monkeypatch, heard):
    monkeypatch.setattr(hub_questions, "_SLOW_MS", 0)
    waiting = Tasks()
    questions = HubQuestions(waiting=waiting)
    latest = Latest()
    question = latest.begin()
    asked(questions, question, question.wait, heard, on_slow=lambda: heard.append(("slow", None)))
    qtbot.waitUntil(lambda: heard == [("slow", None)], timeout=PATIENCE_MS)
    latest.end()
    questions.wait_all()
    assert heard == [("slow", None)]


def test_an_answer_that_is_quick_enough_is_never_called_slow(qtbot, heard):
    questions = HubQuestions(waiting=SynchronousTasks())
    asked(questions, Latest().begin(), lambda: 7, heard, on_slow=lambda: heard.append("slow"))
    assert heard == [("done", 7)]
    assert not any(timer.isActive() for timer in questions.findChildren(hub_questions.QTimer))
