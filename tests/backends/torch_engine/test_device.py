"""Which processor computes, what is free there, and what a piece of work takes."""

from __future__ import annotations

import pytest
import torch

from backends.errors import EngineError, ErrorCode, NoticeCode
from backends.torch_engine.device import PeakMeter, choose_device, device_name, free_bytes, memory_errors

CPU = torch.device("cpu")


@pytest.fixture
def no_card(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


@pytest.fixture
def two_cards(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)


@pytest.mark.parametrize("wanted", ["", "cpu", "CPU"])
def test_without_a_card_the_processor_is_no_surprise(no_card, wanted):
    assert choose_device(wanted) == (CPU, ())


@pytest.mark.parametrize("wanted", ["gpu", "cuda", "cuda:0", "mps"])
def test_a_card_that_is_not_there_is_told_of(no_card, wanted):
    assert choose_device(wanted) == (CPU, (NoticeCode.GPU_NOT_USED,))


@pytest.mark.parametrize(("wanted", "index"), [("", 0), ("gpu", 0), ("cuda", 0), ("cuda:1", 1)])
def test_a_card_is_taken_where_there_is_one(two_cards, wanted, index):
    assert choose_device(wanted) == (torch.device("cuda", index), ())


def test_a_card_beyond_the_last_is_not_there(two_cards):
    assert choose_device("cuda:2") == (CPU, (NoticeCode.GPU_NOT_USED,))


@pytest.mark.parametrize("wanted", ["nonsense", "cuda:x", "meta", "../etc"])
def test_a_name_that_is_no_device_is_refused(no_card, wanted):
    with pytest.raises(EngineError) as caught:
        choose_device(wanted)
    assert caught.value.code is ErrorCode.BAD_PARAMS


def test_people_read_short_names():
    assert [device_name(torch.device(name)) for name in ("cpu", "cuda:1", "mps")] == ["CPU", "CUDA1", "MPS"]


def test_something_is_free():
    assert free_bytes(CPU) > 2**20


def test_the_peak_of_some_work_is_measured():
    with PeakMeter(CPU) as meter:
        block = torch.ones(64 * 2**20, dtype=torch.uint8)
        block.add_(1)
        del block
    assert 60 * 2**20 < meter.peak_bytes < 400 * 2**20


def test_what_takes_nothing_has_no_peak():
    with PeakMeter(CPU) as meter:
        pass
    assert meter.peak_bytes < 60 * 2**20


def test_want_of_memory_has_its_code_and_size():
    with pytest.raises(EngineError) as caught, memory_errors(CPU):
        torch.empty(2**60, dtype=torch.uint8)
    assert caught.value.code is ErrorCode.OUT_OF_MEMORY
    assert caught.value.parameters["needed_bytes"] == 2**60


def test_a_cards_want_of_memory_has_its_code():
    with pytest.raises(EngineError) as caught, memory_errors(CPU):
        raise torch.OutOfMemoryError("CUDA out of memory")
    assert caught.value.code is ErrorCode.OUT_OF_MEMORY


def test_other_errors_pass():
    with pytest.raises(RuntimeError, match="shapes"), memory_errors(CPU):
        raise RuntimeError("shapes do not match")
