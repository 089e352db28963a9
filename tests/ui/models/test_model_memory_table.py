"""The parts of the memory bars and their table: the same numbers, worded and unrounded."""

from __future__ import annotations

import math
from dataclasses import replace

from app.telemetry.export import csv_text
from app.units import NBSP
from tests.helpers.model_entries import MIB, entry, fit, measured
from ui.models.model_memory_table import memory_parts, memory_table

FOUND = entry("A", "Q4_0", 4.5)
FIT = fit(FOUND, 16_384)


def test_every_owner_has_its_colour_and_only_kv_is_hatched():
    parts = memory_parts(FIT, None)
    assert [(part.key, part.role, part.is_reserved) for part in parts] == [
        ("weights", "weights", False),
        ("kv", "kv", True),
        ("compute", "compute", False),
        ("rest", "rest", False),
    ]
    assert sum(part.predicted_bytes for part in parts) == FIT.estimate.total_bytes
    assert {part.measured_bytes for part in parts} == {None}
    assert {part.source for part in parts} == {"Told by the engine's allocator, nothing loaded."}


def test_an_unknown_fit_has_no_parts():
    assert memory_parts(fit(FOUND, None), None) == ()


def test_a_load_stands_beside_its_prediction():
    parts = memory_parts(FIT, measured(FOUND, FIT))
    compute = next(part for part in parts if part.key == "compute")
    assert (compute.predicted_bytes, compute.measured_bytes) == (264 * MIB, 272 * MIB)


def test_the_table_holds_the_numbers_of_the_bars_and_their_total():
    parts = memory_parts(FIT, measured(FOUND, FIT))
    table = memory_table(parts, is_comparable=True)
    assert [table.columns[0].cell_text(row) for row in range(table.num_rows)] == [part.title for part in parts] + [
        "Total"
    ]
    assert list(table.columns[1].values[:-1]) == [part.predicted_bytes for part in parts]
    assert list(table.columns[2].values[:-1]) == [part.measured_bytes for part in parts]
    assert table.columns[1].values[-1] == FIT.estimate.total_bytes
    assert table.columns[3].cell_text(2) == f"+3.0{NBSP}%"


def test_what_was_not_measured_is_a_dash_and_empty_in_the_file():
    table = memory_table(memory_parts(FIT, None), is_comparable=True)
    assert table.columns[2].cell_text(0) == "–"
    assert table.columns[3].cell_text(0) == "–"
    lines = csv_text(table).splitlines()
    assert lines[0] == "owner,predicted_bytes,measured_bytes,off"
    assert lines[1] == f"Weights,{FOUND.size_bytes},,"


def test_loads_of_another_kind_are_not_compared():
    table = memory_table(memory_parts(FIT, measured(FOUND, FIT)), is_comparable=False)
    assert all(math.isnan(off) for off in table.columns[3].values)


def test_what_the_system_may_take_back_comes_last_and_is_hatched():
    found = replace(FIT, estimate=replace(FIT.estimate, copied_bytes=MIB))
    last = memory_parts(found, None)[-1]
    assert (last.key, last.role, last.is_reserved, last.predicted_bytes) == ("copies", "weights", True, MIB)
    assert last.source.startswith("Pages of the file")
