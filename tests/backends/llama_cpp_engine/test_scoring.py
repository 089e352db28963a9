"""Scoring in llama.cpp: the rows are right, the chat's context is left alone, and Stop stops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from backends import protocol
from backends.errors import EngineError, ErrorCode
from backends.llama_cpp_engine.engine import LlamaCppEngine
from backends.llama_cpp_engine.scoring import MIN_PIECE_ROWS, piece_rows, pieces
from tests.helpers.engine_client import LoggedClient

ID = protocol.RequestId(5)
SENTENCES = (
    "The lighthouse keeper climbed the stairs every evening. He carried oil for the lamp, and a book. When the wind"
    " came from the north he could not read, because the whole tower hummed; then he counted ships instead. On clear"
    " nights there were as many as twenty, and he knew most of them by their lights."
)


@pytest.fixture(scope="module")
def engine(starter_model):
    made = LlamaCppEngine()
    params = protocol.LoadParams(context_tokens=512, threads=1)
    made.load(protocol.LoadModel(str(starter_model), params), lambda _event: None)
    yield made
    made.unload()


@pytest.fixture
def tokens(engine) -> tuple[int, ...]:
    return engine.tokenize(protocol.Text(SENTENCES))


def floats(data: bytes) -> np.ndarray:
    return np.frombuffer(data, "<f4")


def ints(data: bytes) -> list[int]:
    return np.frombuffer(data, "<i4").tolist()


def generate(engine: LlamaCppEngine, text: str, new_tokens: int = 12):
    params = protocol.SamplingParams(temperature=0, max_tokens=new_tokens)
    engine.add(protocol.Generate(request_id=ID, prompt=protocol.Text(text), params=params))
    ids: list[int] = []
    while engine.has_work:
        for event in engine.step():
            if isinstance(event, protocol.RequestFinished):
                return ids, event.figures
            ids += [token for piece in event.pieces for token in piece.token_ids]
    raise AssertionError("it did not finish")


# ------------------------------------------------------------------------------------------------- pieces


@pytest.mark.parametrize("length", [1, 5, 63, 64, 65, 255, 511, 512, 513, 1200])
@pytest.mark.parametrize("most_rows", [1, 32, 64, 128, 512])
def test_pieces_cover_every_position_once_and_ask_for_few_rows_each(length, most_rows) -> None:
    for first_row in {0, length // 2, length - 1}:
        cut = pieces(length, first_row, most_rows, 512)
        assert [position for start, end in cut for position in range(start, end)] == list(range(length))
        assert all(end - start <= 512 for start, end in cut)
        assert all(end - max(start, first_row) <= most_rows for start, end in cut)


def test_a_window_takes_few_pieces_and_each_computes_as_a_large_batch_does() -> None:
    assert pieces(512, 256, 128, 512) == [(0, 384), (384, 512)]
    assert pieces(512, 256, 512, 512) == [(0, 512)]
    assert all(end - start >= MIN_PIECE_ROWS for start, end in pieces(512, 256, MIN_PIECE_ROWS, 512))


def test_the_logits_of_a_piece_are_bounded_and_few_rows_are_never_asked_for() -> None:
    assert piece_rows(49_152, 512) == 128
    assert piece_rows(262_144, 512) == MIN_PIECE_ROWS
    assert piece_rows(262_144, 32) == 32
    assert piece_rows(4_096, 512) == 512


# ------------------------------------------------------------------------------------------------ figures


def test_a_model_against_its_own_window_shows_no_difference(engine, tokens, tmp_path) -> None:
    path = str(tmp_path / "w.cwin")
    written = engine.score(protocol.Score(request_id=ID, token_ids=tokens, first_scored=20, write_path=path))
    done = engine.score(protocol.Score(request_id=ID, token_ids=tokens, first_scored=20, reference_path=path))
    kl = floats(done.kl)
    assert len(kl) == len(tokens) - 21
    assert abs(kl.mean()) < 5e-5
    assert done.best_ids == done.reference_best_ids == written.best_ids
    assert done.logprobs == done.reference_logprobs
    assert done.non_finite == bytes(len(kl))
    assert 1.5 < math.exp(-floats(written.logprobs).mean()) < 60  # a small model knows English
    assert 0 < done.prefill_s <= done.score_s


def test_the_likeliest_tokens_of_an_answer_are_those_that_were_drawn_greedily(engine) -> None:
    """One may differ: a token drawn alone is computed another way than in a batch, and near ties fall as they like."""
    prompt = "Once upon a time there was a"
    ids, _ = generate(engine, prompt)
    done = engine.score(protocol.Score(request_id=ID, token_ids=tuple(ids), prompt=protocol.Text(prompt), top=3))
    assert ints(done.token_ids) == ids
    assert sum(best == token for best, token in zip(ints(done.best_ids), ids, strict=True)) >= len(ids) - 1
    top = np.frombuffer(done.top_logprobs, "<f4").reshape(len(ids), 3)
    assert (np.diff(top, axis=1) <= 0).all()
    assert np.exp(top).sum(axis=1).max() < 1.0001


def test_rows_do_not_depend_on_where_scoring_begins(engine, tokens) -> None:
    late, early = (
        floats(engine.score(protocol.Score(request_id=ID, token_ids=tokens, first_scored=first)).logprobs)
        for first in (40, 0)
    )
    assert np.abs(late - early[40:]).max() < 0.05  # pieces of other sizes round otherwise


def test_a_score_of_a_window_gives_the_same_figures_each_time_whatever_came_between(engine, tokens) -> None:
    command = protocol.Score(request_id=ID, token_ids=tokens, first_scored=30)
    first = engine.score(command)
    engine.score(protocol.Score(request_id=ID, token_ids=tokens[::-1], first_scored=3))
    generate(engine, "Something else.", 2)
    assert engine.score(command).logprobs == first.logprobs


# ------------------------------------------------------------------------------------------- beside a chat


def test_what_a_chat_keeps_in_its_context_stays(engine, tokens) -> None:
    prompt = "A list of rivers: the Danube, the Rhine, the"
    first, _ = generate(engine, prompt)
    engine.score(protocol.Score(request_id=ID, token_ids=tokens))
    again, figures = generate(engine, prompt)
    assert again == first
    assert figures.reused_tokens == figures.prompt_tokens - 1


def test_its_memory_is_given_back_when_a_request_comes(engine, tokens) -> None:
    engine.score(protocol.Score(request_id=ID, token_ids=tokens))
    assert engine._scoring._context is not None
    generate(engine, "And now", 1)
    assert engine._scoring._context is None


# ------------------------------------------------------------------------------------------------- refused


def refused(engine: LlamaCppEngine, **fields) -> EngineError:
    with pytest.raises(EngineError) as failed:
        engine.score(protocol.Score(request_id=ID, **fields))
    return failed.value


def test_what_does_not_fit_or_is_not_there_is_refused(engine, tokens, tmp_path) -> None:
    error = refused(engine, token_ids=tuple([100] * 513))
    assert error.code is ErrorCode.PROMPT_TOO_LONG
    assert error.parameters == {"prompt_tokens": 513, "context_tokens": 512}
    assert refused(engine, token_ids=(1, 10**6)).code is ErrorCode.BAD_PARAMS
    assert refused(engine, token_ids=tokens, first_scored=len(tokens) - 1).code is ErrorCode.BAD_PARAMS
    missing = str(tmp_path / "none.cwin")
    assert refused(engine, token_ids=tokens, reference_path=missing).code is ErrorCode.REFERENCE_UNREADABLE
    assert refused(engine, token_ids=tokens, write_path=str(tmp_path / "n" / "w")).code is ErrorCode.WRITE_FAILED


def test_a_raised_flag_ends_a_score_and_leaves_no_window(engine, tokens, tmp_path) -> None:
    engine.interrupt()
    error = refused(engine, token_ids=tokens, write_path=str(tmp_path / "w.cwin"))
    assert error.code is ErrorCode.INTERRUPTED
    assert not list(tmp_path.iterdir())
    engine.abort(ID)  # the command that raised it lowers it
    engine.score(protocol.Score(request_id=ID, token_ids=tokens))


def test_without_a_model_nothing_is_scored() -> None:
    assert refused(LlamaCppEngine(), token_ids=(1, 2)).code is ErrorCode.NO_MODEL


def test_a_worker_tokenizes_scores_and_compares(starter_model, tmp_path) -> None:
    path = str(tmp_path / "w.cwin")
    with LoggedClient("llama_cpp", tmp_path / "log") as worker:
        loaded = worker.load(starter_model, protocol.LoadParams(context_tokens=256, threads=1))
        assert loaded.capabilities.can_score
        worker.client.send(protocol.Tokenize(ID, protocol.Text(SENTENCES)))
        token_ids = worker.wait(protocol.Tokenized).token_ids
        for number, fields in enumerate(({"write_path": path}, {"reference_path": path}), start=1):
            worker.client.send(protocol.Score(request_id=ID, token_ids=token_ids, first_scored=30, **fields))
            done = worker.wait(protocol.ScoreDone, count=number)
        assert abs(floats(done.kl).mean()) < 5e-5
        assert done.best_ids == done.reference_best_ids
