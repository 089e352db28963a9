"""Tables and their CSV twins, to the character."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from app.telemetry import export
from app.telemetry.export import Column, Table
from app.telemetry.store import TelemetryStore
from app.units import NBSP
from backends.protocol import LifeCycle, MemoryRead, MemorySplit, ModelLoaded, StepDone, StepStats
from tests.helpers import block_maps


@pytest.fixture
def store():
    store = TelemetryStore()
    store.record_memory(MemoryRead(read_s=10.0, anonymous_bytes=1024, state=LifeCycle.LOADING))
    split = MemorySplit(weights_bytes=1024, kv_reserved_bytes=4096)
    loaded = ModelLoaded(backend="echo", model_path="m", context_tokens=8, kv_bytes_per_token=2.5, memory=split)
    store.model_loaded(loaded, 2.5)
    store.record_memory(MemoryRead(read_s=10.5, anonymous_bytes=2048))
    store.record_step(StepDone(StepStats(step=1, ended_s=11.0, duration_s=0.25, prefill_tokens=100, running=1)))
    figures = StepStats(
        step=2, ended_s=11.5, duration_s=0.5, decode_tokens=1, running=1, kv_used_tokens=3, kv_used_bytes=7
    )
    store.record_step(StepDone(figures))
    return store


def test_memory_becomes_bytes_by_owner(store):
    assert export.csv_text(export.memory_table(store)) == (
        "time_s,measured_bytes,rest_bytes,weights_bytes,compute_bytes,kv_used_bytes,kv_reserved_bytes,"
        "device_used_bytes,device_total_bytes\n"
        "0,1024,1024,0,0,0,0,,\n"
        "0.500000,2048,1024,1024,0,0,4096,,\n"
    )


def test_the_kv_cache_has_its_prediction_beside_it(store):
    assert export.csv_text(export.kv_table(store)) == (
        "time_s,kv_tokens,kv_used_bytes,kv_predicted_bytes,kv_reserved_bytes\n"
        "0,0,0,0,4096\n1,0,0,0,4096\n1.500000,3,7,7.500000,4096\n"
    )


def test_speeds_are_in_the_order_of_time_and_say_what_they_are(store):
    assert export.csv_text(export.speed_table(store)) == (
        "time_s,activity,tokens_per_s,duration_s\n0.750000,reading,400,0.250000\n1.500000,writing,2,\n"
    )


def test_a_table_can_begin_later(store):
    assert export.memory_table(store, since_s=0.2).num_rows == 1
    assert export.speed_table(store, since_s=99).num_rows == 0
    assert Table("a", "b", ()).num_rows == 0


def test_cells_are_worded_for_people(store):
    table = export.speed_table(store)
    assert [column.cell_text(0) for column in table.columns] == [
        f"0.75{NBSP}s",
        "reading",
        f"400{NBSP}tokens/s",
        f"250{NBSP}ms",
    ]
    assert table.columns[3].cell_text(1) == ""
    assert export.memory_table(store).columns[1].cell_text(1) == f"2.00{NBSP}KiB"


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@a", "\tx"])
def test_a_text_cell_never_runs_as_a_formula(text):
    table = Table("t", "t", (Column("a", "a", str, (text,)),))
    assert export.csv_text(table) == f"a\n'{text}\n"


def test_a_negative_number_stays_a_number_and_an_unknown_one_is_empty():
    table = Table("t", "t", (Column("a", "a", str, np.array([-1.5, math.nan, math.inf])),))
    assert export.csv_text(table) == 'a\n-1.500000\n""\n""\n'


def test_a_file_is_written_whole_and_replaces_the_old_one(store, tmp_path):
    path = tmp_path / "memory.csv"
    path.write_text("old")
    export.write_csv(export.memory_table(store), path)
    assert path.read_text(encoding="utf-8") == export.csv_text(export.memory_table(store))
    assert list(tmp_path.iterdir()) == [path]


def test_a_failed_write_leaves_the_old_file_and_nothing_else(store, tmp_path, monkeypatch):
    path = tmp_path / "memory.csv"
    path.write_text("old")

    def full(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space"):
        export.write_csv(export.memory_table(store), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_blocks_become_a_row_each():
    table = export.blocks_table(block_maps.store_with())
    assert table.title == "KV blocks of echo"
    assert export.csv_text(table) == (
        "block,state,tokens,first_token,sequence,sequences\n"
        "0,shared,16,0,1,2\n1,shared,16,16,1,2\n2,used,5,32,1,1\n3,used,8,32,2,1\n"
        "4,free,0,,,0\n5,kept,16,,,0\n6,free,0,,,0\n7,free,0,,,0\n"
    )
    assert [column.cell_text(4) for column in table.columns] == ["4", "free", "0", "", "", "0"]
    logical = export.blocks_table(block_maps.store_with(None, blocks=0))
    assert (logical.title, logical.num_rows, logical.is_over_time) == ("Logical KV blocks of echo", 8, False)
    assert export.blocks_table(TelemetryStore()).num_rows == 0
