"""A fresh worker for one run: loaded as every other, asked for figures, ended with its run."""

from __future__ import annotations

import psutil
import pytest

from app.bench.engine_run import EngineRefusedError, StoppedError
from app.compare.plan import RunSpec
from app.compare.run_worker import RunWorker
from app.errors import AppError
from backends import protocol
from tests.helpers.scoring_worker import FakeModel, make_services, write_model


def spec_of(tmp_path, **model) -> RunSpec:
    return RunSpec(run_id="a", label="a", path=write_model(tmp_path / "a.json", FakeModel(**model)), backend="echo")


def test_a_run_is_loaded_asked_and_ended(tmp_path) -> None:
    told: list[float] = []
    with RunWorker(spec_of(tmp_path), make_services(tmp_path), lambda: False) as worker:
        loaded = worker.load(1024, 3, told.append)
        assert (loaded.context_tokens, loaded.threads, told[-1]) == (1024, 3, 1.0)
        facts = worker.facts()
        assert (facts.backend, facts.device, facts.threads, facts.context_tokens) == ("echo", "CPU", 3, 1024)
        assert (facts.engine_version, facts.reserved_bytes) == ("1", loaded.memory.kv_reserved_bytes)
        assert worker.tokenize(protocol.Text("ab")) == (97, 98)
        assert worker.texts_of((97, 255)) == ["a", "�"]
        path = tmp_path / "window-0001.cwin"
        ids = tuple(number % 256 for number in range(512))
        assert len(worker.score_window(ids, write_path=str(path)).logprobs) == 4 * 255
        assert not any(worker.score_window(ids, reference_path=str(path)).kl)
        done = worker.score_answer((1, 2, 3), (4, 5), top=3)
        assert (len(done.logprobs), len(done.top_ids)) == (8, 24)
        first = worker.answer((65, 66), 4)
        assert (worker.answer((65, 66), 4).token_ids, len(first.token_ids)) == (first.token_ids, 4)
        memory = worker.memory(predicted_bytes=7)
        assert (memory.predicted_bytes, memory.kv_used_bytes > 0) == (7, True)
    assert not psutil.Process().children()


def test_an_engine_that_cannot_score_is_refused_in_words(tmp_path) -> None:
    spec = spec_of(tmp_path, can_score=False)
    with RunWorker(spec, make_services(tmp_path), lambda: False) as worker:  # noqa: SIM117 - ended whatever is raised
        with pytest.raises(AppError, match="echo engine cannot score"):
            worker.load(512, 0, lambda _fraction: None)


def test_a_refusal_names_its_code_and_the_worker_lives_on(tmp_path) -> None:
    with RunWorker(spec_of(tmp_path), make_services(tmp_path), lambda: False) as worker:
        worker.load(1024, 0, lambda _fraction: None)
        (tmp_path / "cut.cwin").write_bytes(b"x")
        with pytest.raises(EngineRefusedError) as caught:
            worker.score_window((1,) * 512, reference_path=str(tmp_path / "cut.cwin"))
        assert caught.value.code == "reference_unreadable"
        assert worker.tokenize(protocol.Text("a")) == (97,)


def test_a_stop_ends_what_is_waited_for(tmp_path) -> None:
    stopped = False
    with RunWorker(spec_of(tmp_path), make_services(tmp_path), lambda: stopped) as worker:
        worker.load(1024, 0, lambda _fraction: None)
        stopped = True
        with pytest.raises(StoppedError):
            worker.score_window((1,) * 512)
