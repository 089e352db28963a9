"""A worker led for a measurement: rounds, groups, memory, and an end in words."""

from __future__ import annotations

import pytest

from app.bench import engine_run
from app.bench.engine_run import EngineEndedError, EngineRefusedError, EngineRun, Round, StoppedError
from app.bench.workload import Workload, requests_of
from app.engines.supervisor import LoadRequest
from app.errors import AppError
from backends import protocol
from backends.echo_engine import EchoScript, Fault
from tests.helpers.engine_client import write_script

WORK = Workload(prompt_tokens=10, new_tokens=6, requests=4)


@pytest.fixture
def run(tmp_path):
    made = EngineRun(lambda: tmp_path / "worker.log")
    yield made
    made.close()


def load(run: EngineRun, tmp_path, **script: object) -> list[float]:
    path = write_script(tmp_path / "script.json", EchoScript("hello", **script))
    told: list[float] = []
    run.load(LoadRequest(str(path), "echo"), told.append)
    return told


def test_a_round_has_the_figures_of_every_request(run, tmp_path) -> None:
    assert load(run, tmp_path)[-1] == 1.0
    done = run.run(requests_of(WORK, 256, 0, first_id=1))
    assert [(one.prompt_tokens, one.new_tokens) for one in done.figures] == [(10, 6)] * 4
    assert (done.new_tokens, done.running, len(done.first_tokens_s)) == (24, 1, 4)
    assert done.wall_s >= max(done.first_tokens_s) > 0
    assert done.total_tokens_per_s == pytest.approx(24 / done.wall_s)
    assert (done.held_tokens, done.held_places, done.mapped_places) == (16, 16, 0)


def test_the_engine_s_map_says_how_many_places_have_no_token(run, tmp_path) -> None:
    load(run, tmp_path, blocks=8, block_tokens=16)
    done = run.run(requests_of(Workload(20, 6, 1), 256, 0, first_id=1))
    assert done.mapped_places == 32
    assert 0 < done.mapped_empty < 16


def test_the_next_group_begins_when_all_of_the_last_have_ended(run, tmp_path) -> None:
    load(run, tmp_path)
    waiting = []
    engine_send = run._engine.send

    def send(command: protocol.Command) -> bool:
        waiting.append(len(run._engine._unfinished))
        return engine_send(command)

    run._engine.send = send
    done = run.run(requests_of(WORK, 256, 0, first_id=1), at_once=2)
    assert waiting[0] == waiting[2] == 0
    assert len(done.figures) == 4


def test_the_memory_is_the_most_that_was_measured_split_among_owners(run, tmp_path) -> None:
    load(run, tmp_path)
    while not run.peak_bytes:
        run.run(requests_of(WORK, 256, 0, first_id=1))
    owned = run.memory()
    parts = (owned.rest_bytes, owned.weights_bytes, owned.compute_bytes, owned.kv_used_bytes, owned.kv_idle_bytes)
    assert sum(parts) == pytest.approx(run.peak_bytes)


def test_a_load_that_fails_and_an_engine_that_dies_are_told_in_words(run, tmp_path) -> None:
    with pytest.raises(AppError, match="is not there any more"):
        run.load(LoadRequest(str(tmp_path / "gone.json"), "echo"), lambda _fraction: None)
    load(run, tmp_path, fault=Fault("decode", "kill", 3))
    with pytest.raises(AppError, match="The system ended the engine"):
        run.run(requests_of(WORK, 256, 0, first_id=1))


def test_a_request_that_is_refused_ends_the_round(run, tmp_path) -> None:
    load(run, tmp_path, context_tokens=8)
    with pytest.raises(AppError, match="The chat is too long"):
        run.run(requests_of(WORK, 256, 0, first_id=1))


def test_a_round_that_took_no_time_has_no_speed() -> None:
    assert Round().total_tokens_per_s == 0.0


def test_a_command_has_its_one_answer_and_an_answer_its_text(run, tmp_path) -> None:
    load(run, tmp_path)
    counted = run.ask(protocol.CountTokens(protocol.RequestId(1), protocol.Text("abc")), protocol.TokensCounted)
    assert (counted.tokens, run.engine_version) == (3, "1")
    params = protocol.SamplingParams(temperature=0.0, max_tokens=4)
    request = protocol.Generate(request_id=protocol.RequestId(2), prompt=protocol.Text("abc"), params=params)
    written = run.answer(request)
    assert (written.text, written.token_ids, written.figures.new_tokens) == ("hell", tuple(b"hell"), 4)


def test_a_refusal_keeps_its_code_and_an_end_is_another_error(run, tmp_path) -> None:
    load(run, tmp_path, context_tokens=8, fault=Fault("decode", "kill", 1))
    long = protocol.Generate(request_id=protocol.RequestId(1), prompt=protocol.Text("a" * 20))
    with pytest.raises(EngineRefusedError) as caught:
        run.answer(long)
    assert caught.value.code == "prompt_too_long"
    with pytest.raises(EngineEndedError, match="The system ended the engine"):
        run.answer(protocol.Generate(request_id=protocol.RequestId(2), prompt=protocol.Text("a")))


def test_a_stop_ends_what_is_waited_for(tmp_path) -> None:
    is_stopped: list[bool] = []
    made = EngineRun(lambda: tmp_path / "worker.log", is_stopped=lambda: bool(is_stopped))
    try:
        load(made, tmp_path, token_s=60.0)
        is_stopped.append(True)
        with pytest.raises(StoppedError):
            made.answer(protocol.Generate(request_id=protocol.RequestId(1), prompt=protocol.Text("a")))
    finally:
        made.close()


def test_a_worker_that_says_nothing_any_more_is_ended_and_told(run, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(engine_run, "_SILENCE_LIMIT_S", 0.0)
    load(run, tmp_path, fault=Fault("decode", "stop", 1))
    with pytest.raises(EngineEndedError, match="did not answer any more"):
        run.answer(protocol.Generate(request_id=protocol.RequestId(1), prompt=protocol.Text("a")))


def test_memory_can_be_read_right_now(run, tmp_path) -> None:
    load(run, tmp_path)
    owned = run.read_memory()
    assert owned.rest_bytes > 0
    assert run.peak_bytes > 0
