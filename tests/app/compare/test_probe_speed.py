"""The probe: what it measures of an engine, with an engine that cannot score and with a real model."""

from __future__ import annotations

import pytest

from app.bench.engine_run import EngineRun
from app.bench.workload import Workload
from app.compare import probe_speed as probe_speed_module
from app.compare.plan import WINDOW_TOKENS
from app.compare.probe_speed import PROBE_S, _fitting, _Rate, probe_speed
from app.engines.supervisor import LoadRequest
from app.errors import AppError
from backends import protocol
from backends.echo_engine import EchoScript, Fault
from tests.helpers.engine_client import write_script


@pytest.fixture
def run(tmp_path):
    made = EngineRun(lambda: tmp_path / "worker.log")
    yield made
    made.close()


def test_an_engine_is_measured_whatever_it_can(run, tmp_path):
    path = write_script(tmp_path / "script.json", EchoScript("hello", token_s=0.002, prefill_s=0.01, load_s=0.05))
    told: list[float] = []
    probe = probe_speed(run, LoadRequest(str(path), "echo"), told.append)
    assert told[-1] == 1.0
    assert 0 < probe.decode_tokens_per_s <= 500
    assert 0 < probe.prefill_tokens_per_s <= 51_200
    assert probe.start_s > 0
    assert probe.prefill_tokens <= WINDOW_TOKENS
    assert probe.size_bytes == path.stat().st_size
    assert probe.scored_window_s > 0


def test_an_engine_that_dies_says_so(run, tmp_path):
    path = write_script(tmp_path / "script.json", EchoScript("hello", fault=Fault("prefill", "kill")))
    with pytest.raises(AppError):
        probe_speed(run, LoadRequest(str(path), "echo"))


def test_a_slow_model_is_asked_for_little_and_a_fast_one_for_no_more_than_a_window():
    def figures(read_per_s: float, write_per_s: float) -> protocol.RequestFigures:
        return protocol.RequestFigures(
            prompt_tokens=32, new_tokens=5, prefill_s=32 / read_per_s, decode_s=4 / write_per_s
        )

    slow = _Rate(figures(20, 3)).workload(0.4 * PROBE_S)
    fast = _Rate(figures(5000, 400)).workload(0.4 * PROBE_S)
    assert (slow.prompt_tokens, slow.new_tokens) == (32, 8)
    assert (fast.prompt_tokens, fast.new_tokens) == (512, 64)
    assert _Rate(protocol.RequestFigures()).tokens_in(512) == 512


def test_a_whole_window_is_told_from_a_part_of_it():
    rate = _Rate(protocol.RequestFigures(prompt_tokens=64, new_tokens=11, prefill_s=1.0, decode_s=1.0))
    assert rate.window_s(1.1, 128) == pytest.approx(0.1 + 4 * 1.0)
    assert rate.window_s(3.0, WINDOW_TOKENS) == pytest.approx(3.0)
    assert rate.window_s(0.1, 256) == pytest.approx(0.15)  # a disturbed decode does not make it free


def test_a_request_fits_into_the_context():
    assert _fitting(Workload(512, 64), 1000) == Workload(512, 64)
    small = _fitting(Workload(512, 64), 100)
    assert small.longest_tokens <= 100
    assert _fitting(Workload(32, 4), 8).longest_tokens <= 8


def test_a_real_model_is_measured_with_a_window_where_its_engine_can_score(run, starter_model, monkeypatch):
    monkeypatch.setattr(probe_speed_module, "PROBE_S", 0.5)
    params = protocol.LoadParams(context_tokens=1024, kv_mode="streams")
    probe = probe_speed(run, LoadRequest(str(starter_model), "llama_cpp", params))
    assert run.loaded is not None
    assert probe.prefill_tokens_per_s > 0
    assert probe.decode_tokens_per_s > 0
    assert probe.load_s > 0
    assert probe.size_bytes == starter_model.stat().st_size
    assert probe.window_s > 0
    assert probe.write_s > 0
