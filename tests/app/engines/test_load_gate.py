"""What must be agreed to before a load, and that it is asked once."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.engines.load_gate import LoadGate
from app.models.entry import ModelEntry
from app.models.fit_types import Device, Fit, MemoryEstimate, Verdict
from app.models.library import Change
from backends.protocol import LoadParams

ENTRY = ModelEntry("Tiny:Q4_1", "Tiny", Path("/models/tiny.gguf"), "Q4_1", identity="provisional:1")
PARAMS = LoadParams(context_tokens=512)
GIB = 2**30


def fit_of(verdict, needed=8 * GIB):
    estimate = MemoryEstimate(needed, 0, 0, 0, 0, 0, 0, "header")
    device = Device("CPU", "This computer", 8 * GIB, 4 * GIB)
    known = verdict is not Verdict.UNKNOWN
    return Fit(
        verdict,
        estimate if known else None,
        512,
        {"f16": 0 if known else None},
        free_bytes=4 * GIB,
        device=device,
        reason="" if known else "Nobody knows this shape.",
    )


class FakeLibrary:
    """A library with one file, which may have changed."""

    def __init__(self, change=Change.UNCHANGED):
        self.change = change

    def change_of(self, _entry):
        return self.change

    def looks_changed(self, _entry):
        return self.change is not Change.UNCHANGED

    def accept_change(self, _entry):
        self.change = Change.UNCHANGED


class FakeAdvisor:
    """Answers every fit alike, until the allocator was asked."""

    def __init__(self, verdict, probed=None):
        self.verdict = verdict
        self._probed = probed or verdict
        self.probes = 0

    def backend_of(self, _entry):
        return "llama_cpp"

    def probe(self, _entry, _params, backend=""):
        self.probes += 1
        self.verdict = self._probed

    def fit(self, _entry, _params, backend=""):
        return fit_of(self.verdict)


@pytest.mark.parametrize("verdict", [Verdict.FITS, Verdict.TIGHT, Verdict.PARTIAL])
def test_what_fits_loads_at_once(verdict):
    assert LoadGate(FakeLibrary(), FakeAdvisor(verdict)).question(ENTRY, PARAMS) is None


@pytest.mark.parametrize("verdict", [Verdict.TOO_LARGE, Verdict.UNKNOWN, Verdict.TIGHT])
def test_nobody_is_asked_where_the_allocator_knows_that_it_fits(verdict):
    advisor = FakeAdvisor(verdict, probed=Verdict.FITS)
    gate = LoadGate(FakeLibrary(), advisor)
    assert gate.takes_time(ENTRY, PARAMS)
    assert gate.question(ENTRY, PARAMS) is None
    assert advisor.probes == 1
    assert not gate.takes_time(ENTRY, PARAMS)


@pytest.mark.parametrize("verdict", [Verdict.TOO_LARGE, Verdict.UNKNOWN])
def test_too_large_and_unknown_are_asked_once_and_never_refused(verdict):
    gate = LoadGate(FakeLibrary(), FakeAdvisor(verdict))
    question = gate.question(ENTRY, PARAMS)
    assert question.message
    assert "nan" not in question.message.lower()
    gate.agree(ENTRY, PARAMS)
    assert gate.question(ENTRY, PARAMS) is None
    assert gate.question(ENTRY, LoadParams(context_tokens=1024)) is not None


def test_what_was_agreed_to_for_one_backend_is_asked_again_for_another():
    gate = LoadGate(FakeLibrary(), FakeAdvisor(Verdict.TOO_LARGE))
    gate.agree(ENTRY, PARAMS)
    assert gate.question(ENTRY, PARAMS, "llama_cpp") is None  # the one that takes it anyway
    assert gate.question(ENTRY, PARAMS, "torch") is not None


def test_a_changed_file_is_asked_for_and_then_taken_as_it_is():
    library = FakeLibrary(Change.CHANGED)
    gate = LoadGate(library, FakeAdvisor(Verdict.FITS))
    assert gate.takes_time(ENTRY, PARAMS)
    assert gate.question(ENTRY, PARAMS).message == "The file of Tiny changed on disk since Cutaway last looked at it."
    gate.agree(ENTRY, PARAMS)
    assert not gate.takes_time(ENTRY, PARAMS)
    assert gate.question(ENTRY, PARAMS) is None
    assert library.change is Change.UNCHANGED
