"""Threads come and go with what other programs leave: it is said, and no token is another one for it."""

from __future__ import annotations

import pytest
import torch

from backends import protocol
from backends.processors import SpareThreads
from tests.helpers.torch_asking import PROMPTS, finish, load, request, take


class _Scripted(SpareThreads):
    """Two threads and one in turn, a step each."""

    def refresh(self) -> bool:
        self.count = 3 - self.count
        self.others = 2.0 - self.count
        return True


@pytest.fixture(scope="module", params=["float32", "bfloat16"])
def engine(request):
    engine, _loaded = load(dtype=request.param)
    yield engine
    engine.unload()


def answers(engine) -> tuple[dict[int, tuple[int, ...]], list[str]]:
    for number, prompt in enumerate(PROMPTS[:3]):
        engine.add(request(number, prompt))
    told, logged = {}, []
    while engine.has_work:
        for event in engine.step():
            take(event, told, [])
            if isinstance(event, protocol.LogRecorded):
                logged.append(event.text)
    return {number: one.token_ids for number, one in told.items()}, logged


def test_an_answer_is_the_same_with_threads_that_come_and_go(engine):
    alone, logged = answers(engine)
    assert logged == []
    engine._parts.spare_threads = _Scripted(2)
    again, logged = answers(engine)
    engine._parts.spare_threads = None
    assert again == alone
    assert logged[0] == "other programs keep 1.0 processors busy: threads 1 of 2"
    assert logged[1] == "the processors are free again: 2 threads compute"


def test_a_number_that_a_person_gave_is_kept():
    engine, loaded = load(threads=1)
    assert engine._parts.spare_threads is None
    assert loaded.threads == 1
    engine.unload()


def test_the_engine_s_own_choice_looks_at_the_machine():
    engine, loaded = load(threads=0)
    assert engine._parts.spare_threads.most == loaded.threads
    engine.add(request(1, "The sea is"))
    finish(engine)
    assert 1 <= torch.get_num_threads() <= loaded.threads
    engine.unload()
