"""The echo engine scores: a pure function of the bytes, and the faults of its script, in process and in a worker."""

from __future__ import annotations

import numpy as np
import pytest

from backends import protocol
from backends.client import EngineDied
from backends.echo_engine import EchoEngine, EchoScript, Fault
from backends.echo_scoring import EchoScoring, logits
from backends.errors import EngineError, ErrorCode
from tests.helpers.engine_client import LoggedClient, write_script

ID = protocol.RequestId(3)
TOKENS = tuple(b"the same text, byte by byte")


def engine(tmp_path, script: EchoScript) -> EchoEngine:
    made = EchoEngine()
    made.load(protocol.LoadModel(str(write_script(tmp_path / "script.json", script))), lambda _event: None)
    return made


def command(**fields) -> protocol.Score:
    return protocol.Score(request_id=ID, token_ids=TOKENS, first_scored=10, **fields)


def test_logits_depend_on_the_bytes_before_and_on_the_noise() -> None:
    plain = EchoScoring()
    assert np.array_equal(logits(plain, TOKENS), logits(plain, TOKENS))
    assert not np.array_equal(logits(plain, TOKENS), logits(plain, TOKENS[1:]))
    near, far = (logits(EchoScoring(noise=noise), TOKENS) - logits(plain, TOKENS) for noise in (0.1, 1.0))
    assert 0 < np.abs(near).mean() < np.abs(far).mean()
    assert not np.array_equal(near, logits(EchoScoring(noise=0.1, seed=1), TOKENS) - logits(plain, TOKENS))


def test_noise_makes_a_divergence_and_none_makes_none(tmp_path) -> None:
    path = str(tmp_path / "w.cwin")
    means = []
    engine(tmp_path, EchoScript()).score(command(write_path=path))
    for noise in (0.0, 0.1, 1.0):
        done = engine(tmp_path, EchoScript(scoring=EchoScoring(noise=noise))).score(command(reference_path=path))
        means.append(float(np.frombuffer(done.kl, "<f4").mean()))
    assert abs(means[0]) < 1e-6 < means[1] < means[2]


def test_scripted_rows_are_not_finite(tmp_path) -> None:
    done = engine(tmp_path, EchoScript(scoring=EchoScoring(non_finite_rows=(0, 4, 999)))).score(command())
    assert np.flatnonzero(np.frombuffer(done.non_finite, np.uint8)).tolist() == [0, 4]


def test_a_prompt_is_tokenized_and_what_follows_it_scored(tmp_path) -> None:
    made = engine(tmp_path, EchoScript(context_tokens=16))
    assert made.tokenize(protocol.Text("né")) == (110, 195, 169)
    done = made.score(protocol.Score(request_id=ID, token_ids=(65, 66), prompt=protocol.Text("né")))
    assert np.frombuffer(done.token_ids, "<i4").tolist() == [65, 66]
    with pytest.raises(EngineError) as refused:
        made.score(command())
    assert refused.value.code is ErrorCode.PROMPT_TOO_LONG


def test_a_worker_scores_and_dies_where_the_script_says(tmp_path) -> None:
    script = EchoScript(fault=Fault(phase="score", how="kill", after_tokens=1))
    with LoggedClient("echo", tmp_path / "log") as worker:
        assert worker.load(write_script(tmp_path / "script.json", script)).capabilities.can_score
        worker.client.send(protocol.Tokenize(ID, protocol.Text("ab")))
        assert worker.wait(protocol.Tokenized) == protocol.Tokenized(ID, (97, 98))
        worker.client.send(command())
        assert len(worker.wait(protocol.ScoreDone).logprobs) == 4 * (len(TOKENS) - 11)
        worker.client.send(command())
        worker.wait(EngineDied)


def test_an_abort_ends_a_score_that_takes_long(tmp_path) -> None:
    script = EchoScript(scoring=EchoScoring(score_s=600.0))
    with LoggedClient("echo", tmp_path / "log") as worker:
        worker.load(write_script(tmp_path / "script.json", script))
        worker.client.send(command())
        worker.wait(protocol.MemoryRead, lambda reading: reading.step_age_s > 0)
        worker.client.send(protocol.Abort(ID))
        failed = worker.wait(protocol.EngineFailed)
        assert (failed.code, failed.request_id) == (ErrorCode.INTERRUPTED, ID)
