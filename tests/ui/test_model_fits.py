"""Fits are worked out beside the window, the first ones first, and only the last question is answered."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from app.models.entry import ModelEntry
from backends.protocol import LoadParams
from ui.model_fits import ModelFits
from ui.tasks import SynchronousTasks


class Panel:
    """Takes what is shown."""

    def __init__(self):
        self.fits = []
        self.answers = []

    def set_fits(self, fits):
        self.fits.append(dict(fits))

    def set_answer(self, key, fit):
        self.answers.append((key, fit))


class Advisor:
    """Answers with the params it was asked with, and with "exact" once it was probed."""

    def __init__(self):
        self.probed = set()

    def fit(self, entry, params):
        return ("exact" if params in self.probed else "header", params.context_tokens)

    def fits(self, entries):
        return {entry.key: "fits" for entry in entries}

    def probe(self, _entry, params, _cancelled):
        self.probed.add(params)


class WaitingTasks(SynchronousTasks):
    """Does nothing until it is told to."""

    def __init__(self):
        super().__init__()
        self.waiting = []

    def run(self, work, on_done=None, on_error=None):
        self.waiting.append(lambda: super(WaitingTasks, self).run(work, on_done, on_error))

    def do(self):
        waiting, self.waiting = self.waiting, []
        for work in waiting:
            work()


def entries(count):
    return [ModelEntry(f"M{number}:Q", f"M{number}", Path(f"/m{number}.gguf"), "Q") for number in range(count)]


@pytest.fixture
def parts(qapp):
    panel, tasks, cancel = Panel(), WaitingTasks(), threading.Event()
    return panel, tasks, cancel, ModelFits(Advisor(), panel, tasks, cancel, tasks)


def test_many_models_are_shown_in_steps(parts):
    panel, tasks, _cancel, fits = parts
    fits.work_out(entries(450))
    for known in (200, 400, 450):
        tasks.do()
        assert len(panel.fits[-1]) == known
    tasks.do()
    assert len(panel.fits) == 3


def test_other_models_make_earlier_answers_void(parts):
    panel, tasks, _cancel, fits = parts
    fits.work_out(entries(300))
    fits.work_out(entries(1))
    tasks.do()
    assert panel.fits == [{"M0:Q": "fits"}]


def test_nothing_is_worked_out_after_the_end(parts):
    panel, tasks, cancel, fits = parts
    cancel.set()
    fits.work_out(entries(3))
    tasks.do()
    assert panel.fits == []


def test_a_question_is_answered_at_once_and_then_exactly(parts):
    panel, tasks, _cancel, fits = parts
    [entry] = entries(1)
    fits.ask(entry, LoadParams(context_tokens=512), is_question=True)
    fits.ask(entry, LoadParams(context_tokens=1024), is_question=True)
    assert panel.answers == [("M0:Q", ("header", 512)), ("M0:Q", ("header", 1024))]
    tasks.do()
    assert panel.answers[2:] == [("M0:Q", ("exact", 1024))]
    fits.ask(entry, LoadParams(context_tokens=256), is_question=False)
    tasks.do()
    assert panel.fits[-1] == {"M0:Q": ("exact", 256)}
