"""A window is written whole or not at all, and its codes are those of llama.cpp's perplexity tool."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from backends.errors import EngineError, ErrorCode
from backends.reference_window import ReferenceWindow
from backends.window_writer import PlainRow, WindowWriter

ROWS, VOCABULARY = 6, 301
TOKENS = tuple(range(10, 20))


def rows(spread: float = 6.0, seed: int = 0) -> np.ndarray:
    return (spread * np.random.default_rng(seed).standard_normal((ROWS, VOCABULARY))).astype(np.float32)


def plain(values: np.ndarray, target: int = 0) -> PlainRow:
    peak = values.max()
    log_sum = np.float32(np.log(np.exp((values - peak).astype(np.float64)).sum()))
    return PlainRow(values, float(peak), float(log_sum), int(values.argmax()), target)


def llama_cpp_row(values: np.ndarray) -> tuple[np.float32, np.float32, list[int]]:
    """llama.cpp's loop, in float32 (perplexity.cpp, log_softmax that writes)."""
    one = np.float32
    largest = values.max()
    lowest = max(values.min(), largest - one(16))
    log_sum = one(np.log(float(np.exp((values - largest).astype(np.float64)).astype(one).sum(dtype=np.float64))))
    step = (largest - lowest) / one(65535)
    codes = []
    for value in values:
        scaled = (one(1) / step) * (value - lowest) + one(12582912)  # the addition rounds to a whole number
        codes.append(int(scaled - one(12582912)) if value > lowest else 0)
    return step, (lowest - largest) - log_sum, codes


@pytest.mark.parametrize("spread", [1.0, 6.0])
def test_with_16_nats_a_row_is_llama_cpp_s_bit_for_bit(tmp_path, spread) -> None:
    writer = WindowWriter(tmp_path / "w.cwin", ROWS, VOCABULARY, TOKENS, span_nats=16.0)
    for values in rows(spread):
        row = plain(values)
        writer.add_row(row.values, row.peak, row.log_sum, row.best, row.target)
    writer.close()
    with ReferenceWindow.open(tmp_path / "w.cwin") as window:
        coded = window.coded(0, ROWS)
        for number, values in enumerate(rows(spread)):
            step, lowest, codes = llama_cpp_row(values)
            assert (coded.steps[number], coded.lowest[number]) == (step, lowest)
            assert coded.codes[number].tolist() == codes


def test_rows_may_be_put_in_any_order_by_several_threads(tmp_path) -> None:
    values = rows()
    for name, order in (("a", range(ROWS)), ("b", (3, 0, 5, 1, 4, 2))):
        writer = WindowWriter(tmp_path / name, ROWS, VOCABULARY, TOKENS)
        threads = [threading.Thread(target=writer.put, args=(number, plain(values[number]))) for number in order]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        writer.close()
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_until_it_is_closed_nothing_has_the_final_name_and_discarded_nothing_is_left(tmp_path) -> None:
    writer = WindowWriter(tmp_path / "w.cwin", ROWS, VOCABULARY, TOKENS)
    writer.add(rows()[:2], [1, 2])
    assert [path.name for path in tmp_path.iterdir()] == ["w.cwin.part"]
    writer.discard()
    assert not list(tmp_path.iterdir())
    writer.discard()  # harmless, as is closing what was discarded
    writer.close()
    assert not list(tmp_path.iterdir())


def test_what_a_dead_process_left_is_overwritten(tmp_path) -> None:
    (tmp_path / "w.cwin.part").write_bytes(bytes(10**6))
    writer = WindowWriter(tmp_path / "w.cwin", ROWS, VOCABULARY, TOKENS)
    for values in rows():
        row = plain(values)
        writer.add_row(row.values, row.peak, row.log_sum, row.best, row.target)
    writer.close()
    ReferenceWindow.open(tmp_path / "w.cwin").close()


@contextlib.contextmanager
def little_room() -> Iterator[None]:
    """No file may grow beyond 2,000 bytes: what a full disk does, with another number.

    Just for the lines that write: what pytest tells meanwhile may go to a longer file.
    """
    resource = pytest.importorskip("resource", reason="only POSIX limits the size of files")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_where_there_is_no_room_the_error_says_so_and_no_file_is_left(tmp_path) -> None:
    writer = WindowWriter(tmp_path / "w.cwin", ROWS, VOCABULARY, TOKENS)
    with little_room(), pytest.raises(EngineError) as failed:
        writer.add(rows(), [0] * ROWS)
    assert failed.value.code is ErrorCode.WRITE_FAILED
    assert failed.value.parameters["path"] == str(tmp_path / "w.cwin")
    assert failed.value.parameters["detail"]
    assert not list(tmp_path.iterdir())
    with pytest.raises(EngineError):  # as another thread's next row would meet it
        writer.put(0, plain(rows()[0]))


def test_a_folder_that_is_not_there_is_an_error_with_a_code(tmp_path) -> None:
    with pytest.raises(EngineError) as failed:
        WindowWriter(Path(tmp_path / "none" / "w.cwin"), ROWS, VOCABULARY, TOKENS)
    assert failed.value.code is ErrorCode.WRITE_FAILED


@pytest.mark.parametrize(
    "wrong", [{"span_nats": 0.0}, {"span_nats": 65.0}, {"span_nats": float("nan")}, {"keep_top": -1}]
)
def test_what_cannot_be_written_is_refused(tmp_path, wrong) -> None:
    with pytest.raises(EngineError) as failed:
        WindowWriter(tmp_path / "w.cwin", ROWS, VOCABULARY, TOKENS, **wrong)
    assert failed.value.code is ErrorCode.BAD_PARAMS
    assert not list(tmp_path.iterdir())
