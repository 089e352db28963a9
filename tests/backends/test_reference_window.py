"""A window gives back what was written, and a file that is not quite one is refused with a reason."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from backends.errors import EngineError, ErrorCode
from backends.reference_window import ReferenceWindow, WindowWriter
from backends.window_format import HEADER

ROWS, VOCABULARY = 7, 203
TOKENS = tuple(range(12))


def logprobs(spread: float = 2.5) -> np.ndarray:
    values = spread * np.random.default_rng(1).standard_normal((ROWS, VOCABULARY))
    values -= values.max(axis=1, keepdims=True)
    return (values - np.log(np.exp(values).sum(axis=1, keepdims=True))).astype(np.float32)


def write(path: Path, values: np.ndarray | None = None, **options) -> Path:
    writer = WindowWriter(path, ROWS, VOCABULARY, TOKENS, **options)
    values = logprobs() if values is None else values
    writer.add(values[:3], range(3))
    writer.add(values[3:], range(3, ROWS))
    writer.close()
    return path


def read_all(path: Path) -> None:
    with ReferenceWindow.open(path) as window:
        for first in range(0, window.rows, 3):
            last = min(first + 3, window.rows)
            if window.is_top:
                window.compact(first, last)
            else:
                window.logprobs(first, last)


def test_a_full_window_gives_back_each_row_within_half_a_step(tmp_path) -> None:
    values = logprobs()
    with ReferenceWindow.open(write(tmp_path / "w.cwin")) as window:
        assert (window.rows, window.vocabulary_tokens, window.span_nats, window.is_top) == (ROWS, VOCABULARY, 24, False)
        assert window.token_ids.tolist() == list(TOKENS)
        assert window.best_ids.tolist() == values.argmax(axis=1).tolist()
        assert window.target_logprobs == pytest.approx(values[np.arange(ROWS), np.arange(ROWS)])
        assert np.abs(window.logprobs(0, ROWS) - values).max() < 24 / 65535 / 2 + 3e-6
        assert np.array_equal(window.logprobs(2, 4), window.logprobs(0, ROWS)[2:4])
        ids, best = window.top(4, 5)
        assert ids.tolist() == np.argsort(-values[4])[:5].tolist()
        assert best == pytest.approx(values[4][ids], abs=1e-3)


def test_what_is_far_below_the_likeliest_is_cut_at_the_span(tmp_path) -> None:
    values = logprobs(spread=20.0)
    with ReferenceWindow.open(write(tmp_path / "w.cwin", values, span_nats=10.0)) as window:
        kept = window.logprobs(0, ROWS)
    wanted = np.maximum(values, values.max(axis=1, keepdims=True) - 10)
    assert np.abs(kept - wanted).max() < 10 / 65535 / 2 + 3e-5


def test_a_compact_window_keeps_the_likeliest_and_the_sum_of_the_rest(tmp_path) -> None:
    values = logprobs()
    full, compact = write(tmp_path / "f.cwin"), write(tmp_path / "c.cwin", keep_top=8)
    assert compact.stat().st_size < full.stat().st_size / 2
    with ReferenceWindow.open(compact) as window:
        assert (window.is_top, window.keep_top) == (True, 8)
        rows = window.compact(0, ROWS)
        assert rows.ids.tolist() == np.argsort(-values, axis=1)[:, :8].tolist()
        assert np.array_equal(rows.logprobs, np.take_along_axis(values, rows.ids, axis=1))
        assert np.exp(rows.logprobs).sum(axis=1) + np.exp(rows.rest) == pytest.approx(np.ones(ROWS), abs=1e-5)
        assert window.top(2, 100)[0].tolist() == rows.ids[2].tolist()
        assert window.best_ids.tolist() == values.argmax(axis=1).tolist()


def test_a_compact_window_of_the_whole_vocabulary_has_no_rest(tmp_path) -> None:
    with ReferenceWindow.open(write(tmp_path / "c.cwin", keep_top=10**6)) as window:
        assert window.keep_top == VOCABULARY
        assert (window.compact(0, ROWS).rest == -np.inf).all()


@pytest.mark.parametrize("keep_top", [0, 8])
def test_a_row_that_was_not_finite_is_marked(tmp_path, keep_top) -> None:
    values = logprobs()
    values[2, 9] = np.nan
    with ReferenceWindow.open(write(tmp_path / "w.cwin", values, keep_top=keep_top)) as window:
        assert (window.best_ids < 0).tolist() == [False, False, True, False, False, False, False]
        assert np.isnan(window.target_logprobs[2])
    read_all(tmp_path / "w.cwin")


def test_the_same_rows_give_the_same_file(tmp_path) -> None:
    assert write(tmp_path / "a.cwin").read_bytes() == write(tmp_path / "b.cwin").read_bytes()


# ------------------------------------------------------------------------------------------ what is no window


def refusal(path: Path) -> str:
    with pytest.raises(EngineError) as refused:
        read_all(path)
    assert refused.value.code is ErrorCode.REFERENCE_UNREADABLE
    assert refused.value.parameters["path"] == str(path)
    return str(refused.value.parameters["detail"])


def test_what_is_no_window_is_refused_with_a_reason(tmp_path) -> None:
    assert refusal(tmp_path / "missing.cwin") == "No such file or directory"
    assert refusal(tmp_path)  # a folder
    path = tmp_path / "w.cwin"
    for content in (b"", b"CUT", b"GGUF" + bytes(100), bytes(100)):
        path.write_bytes(content)
        assert refusal(path) == "it is no window of log-probabilities"


@pytest.mark.parametrize("keep_top", [0, 8])
def test_a_cut_or_a_longer_file_is_refused(tmp_path, keep_top) -> None:
    content = write(tmp_path / "w.cwin", keep_top=keep_top).read_bytes()
    for size in (HEADER.size, HEADER.size + 1, len(content) // 2, len(content) - 1):
        (tmp_path / "w.cwin").write_bytes(content[:size])
        assert refusal(tmp_path / "w.cwin") == "it is cut off, or something was added"
    (tmp_path / "w.cwin").write_bytes(content + b"\0")
    assert refusal(tmp_path / "w.cwin") == "it is cut off, or something was added"


def test_a_file_cut_while_it_is_open_is_refused(tmp_path) -> None:
    path = write(tmp_path / "w.cwin")
    with ReferenceWindow.open(path) as window:
        path.write_bytes(path.read_bytes()[:200])
        with pytest.raises(EngineError) as refused:
            window.logprobs(3, 5)
    assert refused.value.code is ErrorCode.REFERENCE_UNREADABLE


@pytest.mark.parametrize("keep_top", [0, 8])
def test_any_flipped_byte_is_noticed(tmp_path, keep_top) -> None:
    """Every single change is noticed for certain: all bytes but the checks are summed, and the sums are compared."""
    content = write(tmp_path / "w.cwin", keep_top=keep_top).read_bytes()
    random = np.random.default_rng(5)
    path = tmp_path / "m.cwin"
    for _ in range(500):
        mutated = bytearray(content)
        mutated[random.integers(len(content))] ^= int(random.integers(1, 256))
        path.write_bytes(mutated)
        assert refusal(path)


def reseal(content: bytes, **fields: float) -> bytes:
    """Return a window with other facts in its header and a valid check: what a stranger may send."""
    names = ("magic", "rows", "vocabulary", "tokens", "keep_top", "span", "tables", "header")
    values = dict(zip(names, HEADER.unpack(content[: HEADER.size]), strict=True)) | fields
    header = HEADER.pack(*values.values())[:-4]
    return header + struct.pack("<I", zlib.crc32(header)) + content[HEADER.size :]


@pytest.mark.parametrize(
    "fields",
    [
        {"rows": 2**32 - 1},
        {"vocabulary": 2**32 - 1},
        {"tokens": 2**32 - 1},
        {"tokens": 0},
        {"keep_top": 2**31},
        {"span": float("nan")},
        {"span": -1.0},
        {"rows": 0},
    ],
)
def test_a_header_that_cannot_be_true_is_refused_and_costs_no_memory(tmp_path, fields) -> None:
    path = tmp_path / "w.cwin"
    path.write_bytes(reseal(write(path).read_bytes(), **fields))
    assert refusal(path)


@pytest.mark.parametrize(
    ("keep_top", "word", "value"),
    [(0, 0, np.nan), (0, 0, 1e6), (0, 0, -1.0), (0, 1, np.inf), (8, 0, np.nan), (8, 0, 5.0), (8, 1, 1e30), (8, 9, 3.0)],
)
def test_rows_that_cannot_be_true_are_refused_though_their_checks_hold(tmp_path, keep_top, word, value) -> None:
    path = write(tmp_path / "w.cwin", keep_top=keep_top)
    content = bytearray(path.read_bytes())
    with ReferenceWindow.open(path) as window:
        tables_at = len(content) - 4 * (len(TOKENS) + 3 * ROWS)
        row_bytes = (tables_at - HEADER.size) // window.rows
    at = HEADER.size + 4 * word
    old, new = struct.unpack("<I", content[at : at + 4])[0], struct.unpack("<I", struct.pack("<f", value))[0]
    content[at : at + 4] = struct.pack("<I", new)
    check_at = len(content) - 4 * ROWS
    check = struct.unpack("<I", content[check_at : check_at + 4])[0]
    content[check_at : check_at + 4] = struct.pack("<I", (check + new - old) & 0xFFFFFFFF)
    path.write_bytes(reseal(bytes(content), tables=zlib.crc32(bytes(content[tables_at:]))))
    assert row_bytes > 0
    assert refusal(path) == "it is damaged"
