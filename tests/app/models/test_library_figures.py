"""What is kept in numbers, and how much of it."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from app.models import library_figures, library_rows
from app.models.library_schema import migrate


@pytest.fixture
def connection():
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as opened:
        migrate(opened)
        for number in (1, 2):
            library_rows.model_for(opened, f"provisional:{number}")
        yield opened


def test_of_one_model_only_the_newest_loads_stay(connection):
    for number in range(30):
        library_figures.put_load(connection, 1, 0.0, str(number))
    library_figures.put_load(connection, 2, 0.0, "other")
    loads = library_figures.read_loads(connection)
    assert loads == {1: [str(number) for number in range(29, 9, -1)], 2: ["other"]}


def test_of_one_model_only_the_newest_probes_stay(connection):
    for number in range(30):
        library_figures.put_probe(connection, 1, f"params {number}", "first")
    library_figures.put_probe(connection, 1, "params 10", "again")
    library_figures.put_probe(connection, 1, "params 30", "last")
    probes = library_figures.read_probes(connection)[1]
    assert len(probes) == library_figures.MAX_RECORDS == 20
    assert (probes["params 10"], probes["params 30"], "params 11" in probes) == ("again", "last", False)


def test_a_fact_is_replaced(connection):
    library_figures.put_fact(connection, "a", "1")
    library_figures.put_fact(connection, "a", "2")
    assert library_figures.read_facts(connection) == {"a": "2"}


def test_every_scan_has_a_higher_number(connection):
    assert [library_figures.next_scan_number(connection) for _ in range(3)] == [1, 2, 3]
