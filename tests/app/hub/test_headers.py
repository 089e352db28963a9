"""The headers of a whole table: the useful ones first, estimates at once, bounded in bytes, kept for the next time."""

from __future__ import annotations

import threading

import pytest

from app.downloads.types import FileRef
from app.http_clients import HttpClients
from app.hub.cache import AnswerCache
from app.hub.headers import HeaderTable
from app.hub.row_headers import RowFacts, RowReader
from app.hub.table import sort_files
from app.hub.types import QuantizationRow
from app.models.byte_source import HeaderError
from app.models.http_faults import RemoteError, RemoteFault
from app.models.shape import LayerShape, ModelShape

MIB = 2**20
LADDER = ("Q2_K", "Q3_K_M", "Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0", "BF16")


class StandInReader(RowReader):
    """Answers for each row by its key: facts, or an error."""

    def __init__(self, **answers: RowFacts | Exception) -> None:
        super().__init__(HttpClients())
        self.answers = answers
        self.asked: list[str] = []
        self._lock = threading.Lock()

    def read(self, row: QuantizationRow) -> RowFacts:
        with self._lock:
            self.asked.append(row.key)
        answer = self.answers.get(row.key) or facts(row.size_bytes)
        if isinstance(answer, Exception):
            raise answer
        return answer


def facts(weights_bytes: int, **fields: object) -> RowFacts:
    layers = (LayerShape(8, 128, 128, weights_bytes=weights_bytes // 2),) * 2
    shape = ModelShape(architecture="llama", weights_bytes=weights_bytes, layers=layers)
    made = {"bits_per_weight": 4.0, "shape": shape, "is_shape_exact": True, "read_bytes": MIB, **fields}
    return RowFacts(**made)


def table(*names: str, model: str = "M") -> tuple[QuantizationRow, ...]:
    files = [
        FileRef("https://h", "a/b", "c" * 40, f"{model}-{name}.gguf", 1000 * (number + 1), f"{number:064x}")
        for number, name in enumerate(names)
    ]
    return sort_files(files).rows


@pytest.fixture
def cache(tmp_path) -> AnswerCache:
    return AnswerCache(tmp_path / "hub")


def read(reader, cache, rows, told=None, budget=100 * MIB, **options) -> tuple[QuantizationRow, ...]:
    heard = [] if told is None else told
    return HeaderTable(reader, cache, heard.append, budget).read(
        rows, options.pop("cancel", threading.Event()), **options
    )


def test_every_row_is_read_and_told(cache):
    told: list[QuantizationRow] = []
    rows = read(StandInReader(), cache, table(*LADDER), told)
    assert {row.state for row in rows} == {"read"}
    assert [row.key for row in rows] == list(LADDER)
    for name in LADDER:
        states = [row.state for row in told if row.key == name]
        assert states[-1] == "read"
        assert "reading" in states
    assert next(row for row in told if row.state == "reading").key == "Q4_K_M"


def test_the_most_useful_rows_come_first(cache):
    reader = StandInReader()
    read(reader, cache, table(*LADDER))
    assert set(reader.asked[:4]) == {"Q4_K_M", "Q3_K_M", "Q5_K_M", "Q6_K"}
    assert reader.asked[-1] == "BF16"


def test_the_first_one_gives_all_others_a_shape_scaled_to_their_size(cache):
    rows = read(StandInReader(), cache, table(*LADDER), keys=("Q4_K_M",))
    by_key = {row.key: row for row in rows}
    assert (by_key["Q4_K_M"].state, by_key["Q4_K_M"].is_shape_exact) == ("read", True)
    for name in ("Q2_K", "BF16"):
        row = by_key[name]
        assert (row.state, row.is_shape_exact, row.bits_per_weight) == ("unread", False, None)
        assert row.shape.weights_bytes == row.size_bytes
        assert [layer.kv_heads for layer in row.shape.layers] == [8, 8]


def test_no_shape_is_lent_to_another_model(cache):
    rows = (*table("Q4_K_M", model="Small"), *table("Q8_0", model="Large"))
    found = read(StandInReader(), cache, rows, keys=("Q4_K_M",))
    assert found[1].shape is None


def test_a_shape_that_nobody_knows_is_not_lent(cache):
    unknown = ModelShape(architecture="x", unknown="new")
    found = read(StandInReader(Q4_K_M=facts(5, shape=unknown)), cache, table("Q4_K_M", "Q8_0"), keys=("Q4_K_M",))
    assert found[0].shape == unknown
    assert found[1].shape is None


def test_reading_ends_where_the_budget_does(cache):
    reader = StandInReader(**{name: facts(1000, read_bytes=8 * MIB) for name in LADDER})
    rows = read(reader, cache, table(*LADDER), budget=40 * MIB)
    assert 4 <= len(reader.asked) <= 5
    assert {row.state for row in rows} == {"read", "unread"}
    assert all(row.shape is not None for row in rows)


def test_rows_that_are_asked_for_are_read_whatever_they_cost(cache):
    reader = StandInReader(Q8_0=facts(1000, read_bytes=90 * MIB), BF16=facts(1000, read_bytes=90 * MIB))
    rows = read(reader, cache, table(*LADDER), budget=1, keys=("Q8_0", "BF16"))
    assert {row.key for row in rows if row.state == "read"} == {"Q8_0", "BF16"}


def test_faults_are_told_row_by_row(cache):
    reader = StandInReader(
        Q2_K=HeaderError("It is no model."), Q8_0=RemoteError(RemoteFault.NO_ACCESS, "hub.example", status=403)
    )
    by_key = {row.key: row for row in read(reader, cache, table(*LADDER))}
    assert (by_key["Q2_K"].state, by_key["Q2_K"].is_broken) == ("failed", True)
    assert by_key["Q2_K"].fault == "The file at the hub cannot be used. It is no model."
    assert (by_key["Q8_0"].state, by_key["Q8_0"].is_broken) == ("failed", False)
    assert by_key["Q8_0"].shape is not None
    assert by_key["Q4_K_M"].state == "read"


def test_what_was_read_once_is_not_read_again(cache):
    first = read(StandInReader(), cache, table(*LADDER))
    reader = StandInReader()
    assert read(reader, cache, table(*LADDER)) == first
    assert reader.asked == []


def test_other_bytes_under_the_same_name_are_read_again(cache):
    read(StandInReader(), cache, table("Q4_K_M"))
    reader = StandInReader()
    other = FileRef("https://h", "a/b", "d" * 40, "M-Q4_K_M.gguf", 1000, "f" * 64)
    read(reader, cache, sort_files([other]).rows)
    assert reader.asked == ["Q4_K_M"]


def test_a_row_that_failed_by_the_networks_fault_is_tried_again_and_a_broken_one_is_not(cache):
    rows = read(
        StandInReader(Q2_K=HeaderError("x"), Q8_0=RemoteError(RemoteFault.TOO_SLOW)), cache, table("Q2_K", "Q8_0")
    )
    reader = StandInReader()
    again = read(reader, cache, rows)
    assert reader.asked == ["Q8_0"]
    assert [row.state for row in again] == ["failed", "read"]
    assert again[1].fault == ""


def test_what_is_only_an_estimate_is_not_kept(cache):
    read(StandInReader(Q4_K_M=facts(5, is_shape_exact=False)), cache, table("Q4_K_M"))
    reader = StandInReader()
    read(reader, cache, table("Q4_K_M"))
    assert reader.asked == ["Q4_K_M"]


def test_cancelled_before_it_begins_nothing_is_read(cache):
    cancel = threading.Event()
    cancel.set()
    reader = StandInReader()
    rows = read(reader, cache, table(*LADDER), cancel=cancel)
    assert reader.asked == []
    assert {row.state for row in rows} == {"unread"}


def test_cancelled_on_the_way_the_rest_stays_unread(cache):
    cancel = threading.Event()
    rows = HeaderTable(StandInReader(), cache, lambda row: cancel.set() if row.state == "read" else None).read(
        table(*LADDER), cancel
    )
    states = [row.state for row in rows]
    assert "read" in states
    assert "unread" in states
    assert "reading" not in states


def test_a_table_without_rows_is_read_at_once(cache):
    assert read(StandInReader(), cache, ()) == ()
