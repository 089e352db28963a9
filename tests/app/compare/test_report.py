"""comparison.json: the keys of the law, null for what nobody measured, and read back whole."""

from __future__ import annotations

import json

import pytest

from app.compare.files import FolderError
from app.compare.report import conditions_json, entry_json, read_result, report_of, write_report
from app.compare.results import RunResult
from app.compare.run_files import Conditions, MachineReading, RunFacts
from tests.helpers.comparison_values import RESULT
from tests.helpers.scoring_worker import FakeModel, make_plan

# design.md 8: the keys of one entry a candidate.
LAW = (
    "size_bytes", "bits_per_weight", "perplexity", "perplexity_ratio", "kl_mean", "kl_interval", "kl_median", "kl_p99",
    "kl_p999", "delta_p_rms", "same_top", "non_finite", "prefill_tokens_per_s", "decode_tokens_per_s", "memory",
    "on_front", "verdict",
)  # fmt: skip
CONDITIONS = Conditions(
    processor="P", cores=2, threads=2, machine=(MachineReading(moment="before", busy_share=0.1),), keeps_loaded=True
)


@pytest.fixture
def plan(tmp_path):
    return make_plan(tmp_path, q4=FakeModel(), q2=FakeModel())


def test_what_was_written_is_read_back_whole(plan, tmp_path) -> None:
    path = tmp_path / "comparison.json"
    write_report(path, plan, RESULT, CONDITIONS, {})
    assert read_result(path) == RESULT
    assert read_result(tmp_path / "none.json") is None


def test_every_entry_has_the_keys_of_the_law(plan) -> None:
    found = json.loads(json.dumps(report_of(plan, RESULT, CONDITIONS, {})))
    assert [one["run_id"] for one in found["candidates"]] == ["q4", "q2"]
    for entry in (found["reference"], *found["candidates"]):
        assert set(LAW) <= set(entry)
    entry = found["candidates"][0]
    assert (entry["kl_mean"], entry["kl_interval"], entry["kl_p999"]) == (0.04, [0.03, 0.05], None)
    assert (entry["size_bytes"], entry["bits_per_weight"]) == (900, 8.0)
    assert (entry["decode_tokens_per_s"], entry["on_front"], entry["verdict"]) == (2.0, True, "small differences")
    assert entry["memory"]["total_bytes"] == 10
    assert set(entry["memory"]) == {
        "weights_bytes", "kv_reserved_bytes", "kv_used_bytes", "compute_bytes", "rest_bytes", "total_bytes",
        "predicted_bytes",
    }  # fmt: skip
    assert found["reference"]["perplexity"] == 10.0
    assert found["candidates"][1]["kl_mean"] is None
    assert found["candidates"][1]["result"] is None


def test_a_run_of_which_nothing_is_known_has_null_and_not_zero(plan) -> None:
    entry = entry_json(plan.candidates[0], RunResult(run_id="q4", failure="It ended."))
    assert entry["failure"] == "It ended."
    assert all(entry[key] is None for key in LAW if key not in ("size_bytes", "bits_per_weight", "on_front", "verdict"))


def test_the_conditions_say_what_was_equal_and_what_each_run_really_had(plan) -> None:
    found = conditions_json(plan, CONDITIONS, {"q4": RunFacts(device="CPU", threads=2, kv_type="q8_0")})
    assert (found["windows"], found["scored_tokens_per_window"], found["window_tokens"]) == (3, 255, 512)
    assert found["machine"]["processor"] == "P"
    assert found["machine"]["load"][0]["moment"] == "before"
    assert (found["fresh_worker"], found["empty_cache"], found["interleaved_rounds"]) == (True, True, True)
    assert found["runs"]["q4"]["kv_type"] == "q8_0"
    assert found["runs"]["q4"]["micro_batch_tokens"] == 512


def test_a_path_of_the_person_s_is_not_in_the_report(plan, tmp_path) -> None:
    assert str(tmp_path) not in json.dumps(report_of(plan, RESULT, CONDITIONS, {}))


@pytest.mark.parametrize("data", [b"", b"{}", b'{"comparison_id": "x", "state": 1}', b"[]"])
def test_a_damaged_report_is_a_sentence(tmp_path, data) -> None:
    (tmp_path / "comparison.json").write_bytes(data)
    with pytest.raises(FolderError, match="damaged"):
        read_result(tmp_path / "comparison.json")
