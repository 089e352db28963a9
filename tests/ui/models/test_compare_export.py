"""The table of all figures: one row a run, plain numbers in CSV, empty where nothing was measured."""

from __future__ import annotations

from app.telemetry.export import csv_text
from tests.helpers import compare_values as values
from ui.models.compare_export import results_table


def lines(plan, result):
    head, *rows = [line.split(",") for line in csv_text(results_table(plan, result)).splitlines()]
    return [dict(zip(head, row, strict=True)) for row in rows]


def test_every_run_is_a_row_with_plain_numbers():
    plan = values.plan()
    rows = lines(plan, values.result(plan))
    assert [row["run"] for row in rows] == ["F16", "Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q4_0", "Q2_K"]
    found = rows[4]
    assert (found["kl_mean"], found["same_top"], found["scored_tokens"]) == ("0.031300", "0.919000", "1020")
    assert found["size_bytes"] == str(int(4.58 * 2**30))
    assert found["decode_ratio"] == "2.400000"
    assert found["in_words"] == "small differences"


def test_what_was_not_measured_is_empty():
    plan = values.plan()
    failed = values.run("Q8_0", quality=None, speed=None, memory=None, load_s=None, failure="It ended.")
    rows = lines(plan, values.result(plan, runs=(values.run("F16"), failed)))
    assert (rows[0]["kl_mean"], rows[0]["decode_ratio"], rows[0]["kl_p999"]) == ("", "", "")
    assert (rows[1]["decode_tokens_per_s"], rows[1]["memory_bytes"], rows[1]["flips"]) == ("", "", "")
    assert rows[1]["in_words"] == "failed: It ended."
    assert rows[2]["in_words"] == "not run yet"


def test_people_read_units():
    plan = values.plan()
    table = results_table(plan, values.result(plan))
    columns = {column.key: column.cell_text(4).replace("\u00a0", " ") for column in table.columns}
    assert columns["decode_tokens_per_s"] == "13.0 tokens/s"
    assert columns["memory_bytes"] == "5.83 GiB"
    assert columns["kl_p999"] == ""
    assert not table.is_over_time
