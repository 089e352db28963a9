"""The measuring script on its own: every byte is read, the best pass counts, and nothing but the number is said."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from app.models import bandwidth_child
from app.models.bandwidth_child import LEAST_PASSES, MOST_PASSES, PIECE_BYTES, STRETCHES, measure


def test_the_script_writes_one_number() -> None:
    command = (sys.executable, "-I", bandwidth_child.__file__, str(2**22), "2")
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    assert done.stderr == ""
    assert float(done.stdout) > 0


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_the_best_pass_counts_and_passes_take_turns_over_all_that_was_asked_for(monkeypatch, threads) -> None:
    took = iter([0.5, 0.25, 0.5, *[1.0] * MOST_PASSES])
    passes = []

    def fake_pass(stretches) -> float:
        passes.append([(stretch.ctypes.data, stretch.nbytes) for stretch in stretches])
        return next(took)

    monkeypatch.setattr(bandwidth_child, "_pass_s", fake_pass)
    stretch_bytes = 2**22 // threads // STRETCHES
    assert measure(2**22, threads) == threads * stretch_bytes / 0.25
    assert len(passes) == MOST_PASSES
    assert all(len(stretches) == threads for stretches in passes)
    assert {size for stretches in passes for _address, size in stretches} == {stretch_bytes}
    assert len({address for stretches in passes for address, _size in stretches}) == threads * STRETCHES


def test_a_slow_machine_makes_few_passes(monkeypatch) -> None:
    clock = iter(range(0, 1000, 1))
    monkeypatch.setattr(bandwidth_child.time, "perf_counter", lambda: next(clock))
    passes = []
    monkeypatch.setattr(bandwidth_child, "_pass_s", lambda arrays: passes.append(1) or 1.0)
    measure(2**16, 1)
    assert len(passes) == LEAST_PASSES


def test_every_byte_of_every_array_is_read(monkeypatch) -> None:
    read = []

    class CountingNumpy:
        empty, uint8 = staticmethod(np.empty), np.uint8

        def bitwise_and(self, piece, _mask, out) -> None:
            assert out.size == piece.size
            read.append(piece.size)

        def right_shift(self, piece, _bits, out) -> None:
            assert out.size == piece.size

    monkeypatch.setattr(bandwidth_child, "np", CountingNumpy())
    sizes = (3 * PIECE_BYTES + 5, 7)
    assert bandwidth_child._pass_s([np.zeros(size, dtype=np.uint8) for size in sizes]) > 0
    assert sorted(read) == [5, 7, PIECE_BYTES, PIECE_BYTES, PIECE_BYTES]
