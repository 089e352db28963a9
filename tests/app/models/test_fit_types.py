"""The question and the answer as plain values."""

from __future__ import annotations

from app.models.fit_types import Device, FitQuestion, Machine, MemoryEstimate
from backends.protocol import LoadParams


def test_the_total_is_every_owner_and_what_is_needed_leaves_out_what_can_be_given_back():
    estimate = MemoryEstimate(100, 20, 3, 4, 5, 6, 7, "header", copied_bytes=40, tables_bytes=8)
    assert (estimate.total_bytes, estimate.needed_bytes) == (153, 113)


def test_the_computer_is_the_first_device():
    cpu, card = Device("CPU", "This computer", 8, 4), Device("CUDA0", "RTX 4060", 8, 4)
    assert Machine((cpu, card)).cpu is cpu
    assert (cpu.is_cpu, card.is_cpu) == (True, False)


def test_a_question_without_words_is_the_engine_s_own_choice():
    assert FitQuestion() == FitQuestion(backend="llama_cpp", params=LoadParams(), draft=None, projector_bytes=0)
