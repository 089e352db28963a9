"""`cutaway bench` as a service: what is measured, what does not count, and the keys of its JSON."""

from __future__ import annotations

import pytest

from app.bench import bench
from app.bench.bench import MachineLoad, bench_json, machine_load, run_bench
from app.bench.engine_run import EngineRun
from app.bench.workload import Workload
from app.engines.supervisor import LoadRequest
from backends.echo_engine import EchoScript
from tests.helpers.engine_client import write_script

WORK = Workload(prompt_tokens=12, new_tokens=20, requests=2)


@pytest.fixture(autouse=True)
def idle(monkeypatch):
    monkeypatch.setattr(bench, "machine_load", lambda: MachineLoad(0.1, 0.5, 2))


@pytest.fixture
def result(tmp_path):
    path = write_script(tmp_path / "script.json", EchoScript("hello"))
    run = EngineRun(lambda: tmp_path / "worker.log")
    rounds = []
    try:
        yield run_bench(
            run, LoadRequest(str(path), "echo"), WORK, 3, on_round=lambda number, of: rounds.append((number, of))
        )
    finally:
        run.close()
    assert rounds == [(1, 3), (2, 3), (3, 3)]


def test_the_warm_up_does_not_count(result) -> None:
    assert len(result.rounds) == 3
    assert all(one.new_tokens == 20 for done in result.rounds for one in done.figures)


def test_json_has_the_keys_that_chat_has_and_the_memory_of_a_fit(result) -> None:
    told = bench_json(result, "M")
    figures = ("ttft_s", "prefill_tokens_per_s", "decode_tokens_per_s", "total_tokens_per_s")
    for name in figures:
        assert told[name] == told["runs"][name]["median"]
        assert len(told["runs"][name]["values"]) == told["runs"]["count"] == 3
    assert (told["model"], told["backend"], told["device"]) == ("M", "echo", "CPU")
    assert (told["prompt_tokens"], told["new_tokens"], told["reused_tokens"]) == (12, 20, 0)
    assert (told["requests"], told["served_at_once"]) == (2, 1)
    assert {"engine_variant", "attention_path", "attention_kernel", "quantization"} <= told.keys()
    memory = told["memory"]
    owners = ("weights_bytes", "kv_reserved_bytes", "compute_bytes", "rest_bytes")
    assert sum(memory[key] for key in owners) == pytest.approx(memory["total_bytes"], abs=4)
    assert memory["kv_used_bytes"] <= memory["kv_reserved_bytes"]
    assert told["machine"] == {"cores": 2, "busy_share_before": 0.1, "load_average": 0.5}


def test_a_busy_machine_is_known(monkeypatch) -> None:
    found = machine_load()
    assert 0 <= found.busy_share <= 1
    assert found.cores >= 1
    assert MachineLoad(0.5, None, 2).is_busy
    assert not MachineLoad(0.05, None, 2).is_busy
