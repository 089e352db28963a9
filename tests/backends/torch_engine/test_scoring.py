"""Scores of the torch engine: transformers' own log-probabilities, in any pieces, beside any other request."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from backends import protocol
from backends.errors import EngineError, ErrorCode
from backends.llama_cpp_engine.engine import LlamaCppEngine
from backends.torch_engine import scoring
from backends.torch_engine.engine import TorchEngine
from tests.helpers.hf_folders import smol_folder
from tests.helpers.tiny_models import VOCABULARY, tiny_model
from tests.helpers.torch_asking import check_pool, finish, request
from tests.helpers.torch_folders import tiny_folder, tiny_gguf, tiny_tokens

ROOT = Path(__file__).resolve().parents[3]
CONTEXT = 96
# Ids of the tiny vocabulary; the model's rows are wider than it, as padded embeddings are.
WORDS = len(tiny_tokens())
TEXT = tuple(np.random.default_rng(3).integers(3, WORDS, 61).tolist())
LONG = protocol.SamplingParams(temperature=0, max_tokens=24, ignore_eos=True)


def load(folder, **params: object) -> TorchEngine:
    engine = TorchEngine()
    fields = {"context_tokens": CONTEXT, "dtype": "float32", "threads": 1, "max_sequences": 4, **params}
    engine.load(protocol.LoadModel(str(folder), protocol.LoadParams(**fields)), lambda _event: None)
    return engine


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_folder(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def engine(folder):
    engine = load(folder)
    yield engine
    engine.unload()


def ask(engine: TorchEngine, token_ids=TEXT, **fields) -> protocol.ScoreDone:
    done = engine.score(protocol.Score(request_id=protocol.RequestId(7), token_ids=tuple(token_ids), **fields))
    check_invariants(engine)
    return done


def check_invariants(engine: TorchEngine) -> None:
    """Every block is where the sequences say; none is left with the score."""
    engine._parts.scheduler.check_invariants()


def floats(data: bytes, width: int = 0):
    found = np.frombuffer(data, "<f4")
    return found.reshape(-1, width) if width else found


def ids(data: bytes, width: int = 0):
    found = np.frombuffer(data, "<i4")
    return found.reshape(-1, width) if width else found


def right_rows(architecture: str, token_ids):
    """Return transformers' own log-probabilities of every row [n, V], of the same weights."""
    model = tiny_model(architecture)
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([list(token_ids)]), use_cache=False).logits[0, :-1]
    return torch.log_softmax(logits.double(), dim=-1).numpy()


def check_rows(done: protocol.ScoreDone, token_ids, right, first_row: int, top: int = 0) -> None:
    rows, targets = right[first_row:], np.asarray(token_ids[first_row + 1 :])
    assert ids(done.token_ids).tolist() == targets.tolist()
    np.testing.assert_allclose(floats(done.logprobs), rows[np.arange(len(targets)), targets], atol=1e-4)
    assert ids(done.best_ids).tolist() == rows.argmax(axis=1).tolist()
    assert done.non_finite == bytes(len(targets))
    if top:
        order = np.argsort(-rows, axis=1)[:, :top]
        assert ids(done.top_ids, top).tolist() == order.tolist()
        np.testing.assert_allclose(floats(done.top_logprobs, top), np.take_along_axis(rows, order, axis=1), atol=1e-4)


# --------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize("architecture", ["llama", "qwen3", "gemma2", "gemma3_text", "cohere2", "gpt_neox"])
def test_over_blocks_the_rows_are_those_of_transformers(architecture, tmp_path):
    engine = load(tiny_folder(tmp_path, architecture))
    assert engine._parts.is_paged
    check_rows(ask(engine, first_scored=20, top=4), TEXT, right_rows(architecture, TEXT), 20, top=4)
    check_pool(engine)
    engine.unload()


@pytest.mark.parametrize("architecture", ["falcon", "bloom", "mpt", "jamba", "mamba"])
def test_on_the_plain_path_they_are_too(architecture, tmp_path, allow_log):  # of slow kernels
    """Loaded from a file, under our attention's name: bloom and mpt do not know it, and must mask all the same."""
    engine = load(tiny_folder(tmp_path, architecture), micro_batch_tokens=16)
    assert not engine._parts.is_paged
    check_rows(ask(engine, first_scored=20, top=4), TEXT, right_rows(architecture, TEXT), 20, top=4)
    assert engine._parts.runner.kept_sequences == 0
    check_pool(engine)
    engine.unload()


@pytest.mark.parametrize("step_tokens", [7, 16, 512])
@pytest.mark.parametrize("most_rows", [1, 5, 1000])
def test_the_pieces_change_nothing(folder, monkeypatch, step_tokens, most_rows):
    monkeypatch.setattr(scoring, "LOGITS_BYTES", 4 * VOCABULARY * most_rows)
    engine = load(folder, micro_batch_tokens=step_tokens)
    given: list[int] = []
    run = engine._parts.runner.run
    monkeypatch.setattr(engine._parts.runner, "run", lambda rows: given.append(len(rows[0].token_ids)) or run(rows))
    check_rows(ask(engine, first_scored=30), TEXT, right_rows("llama", TEXT), 30)
    assert max(given) <= step_tokens
    assert sum(given) == len(TEXT) - 1
    engine.unload()


@pytest.mark.parametrize("first_row", [0, 1, 59])
def test_rows_begin_where_they_were_asked_for(engine, first_row):
    check_rows(ask(engine, first_scored=first_row), TEXT, right_rows("llama", TEXT), first_row)


def test_with_a_prompt_all_tokens_behind_it_are_scored(engine):
    prompt = protocol.TokenIds(TEXT[:15])
    done = ask(engine, TEXT[15:], prompt=prompt, top=2)
    check_rows(done, TEXT, right_rows("llama", TEXT), 14, top=2)
    assert len(ids(done.token_ids)) == len(TEXT) - 15


def test_a_whole_context_can_be_scored(engine):
    full = tuple(np.random.default_rng(4).integers(3, WORDS, CONTEXT).tolist())
    check_rows(ask(engine, full), full, right_rows("llama", full), 0)


def test_a_score_is_the_same_whatever_was_computed_before(engine):
    """Nothing is reused: an answer with the same beginning leaves blocks that would fit."""
    first = ask(engine)
    engine.add(request(1, protocol.TokenIds(TEXT[:40]), LONG))
    finish(engine)
    second = ask(engine)
    assert (first.logprobs, first.best_ids) == (second.logprobs, second.best_ids)
    check_pool(engine)


def test_a_window_compared_with_itself_is_the_same(engine, tmp_path):
    path = str(tmp_path / "one.cwin")
    written = ask(engine, first_scored=10, write_path=path)
    compared = ask(engine, first_scored=10, reference_path=path)
    assert compared.reference_logprobs == compared.logprobs == written.logprobs
    assert compared.reference_best_ids == compared.best_ids
    assert floats(compared.kl).max() < 1e-6
    assert floats(compared.cosine).min() > 0.999999
    assert 0 < compared.prefill_s <= compared.score_s


def test_other_weights_differ(engine, folder, tmp_path):
    path = str(tmp_path / "one.cwin")
    ask(engine, write_path=path)
    other = load(folder)
    torch.manual_seed(1)
    with torch.inference_mode():
        for weight in other._parts.loaded.module.parameters():
            weight.add_(torch.randn_like(weight), alpha=0.02)
    compared = ask(other, reference_path=path)
    assert floats(compared.kl).mean() > 1e-4
    assert floats(compared.kl).min() > -1e-6
    other.unload()


def test_rows_that_are_not_finite_are_flagged(folder):
    engine = load(folder)
    with torch.inference_mode():
        next(iter(engine._parts.loaded.module.parameters()))[TEXT[30]] = float("nan")
    done = ask(engine)
    flags = np.frombuffer(done.non_finite, np.uint8) > 0
    assert flags[30:].all()
    assert not floats(done.logprobs)[flags].any()
    engine.unload()


def two_engines(path, token_ids, folder, first_scored: int) -> protocol.ScoreDone:
    """Return torch's score of a file held against llama.cpp's."""
    window = str(folder / "llama.cwin")
    fields = {"request_id": protocol.RequestId(1), "token_ids": tuple(token_ids), "first_scored": first_scored}
    llama = LlamaCppEngine()
    llama.load(protocol.LoadModel(str(path), protocol.LoadParams(context_tokens=512, threads=2)), lambda _event: None)
    llama.score(protocol.Score(write_path=window, **fields))
    llama.unload()
    engine = load(path, context_tokens=512, threads=2)
    done = engine.score(protocol.Score(reference_path=window, **fields))
    check_pool(engine)
    engine.unload()
    return done


def test_llama_cpp_says_the_same_of_a_file_in_float32(tmp_path):
    path = tiny_gguf(tmp_path / "tiny.gguf", tiny_model("llama", vocab_size=WORDS))
    done = two_engines(path, TEXT, tmp_path, 10)
    assert floats(done.kl).max() < 1e-5
    np.testing.assert_allclose(floats(done.logprobs), floats(done.reference_logprobs), atol=1e-3)  # its KV is float16
    assert done.best_ids == done.reference_best_ids


@pytest.mark.full
def test_llama_cpp_says_nearly_the_same_of_the_starter(starter_model, tmp_path):
    """It rounds what goes into a product to 8 bits, torch does not: near-lossless, and no more than that."""
    text = (ROOT / "resources" / "evaluation" / "encyclopaedia.txt").read_text(encoding="utf-8")[:1200]
    vocabulary = transformers.AutoTokenizer.from_pretrained(smol_folder(), local_files_only=True)
    done = two_engines(starter_model, vocabulary(text).input_ids[:200], tmp_path, 60)
    assert floats(done.kl).mean() < 0.01
    assert (ids(done.best_ids) == ids(done.reference_best_ids)).mean() > 0.9
    assert np.exp(floats(done.logprobs).mean() - floats(done.reference_logprobs).mean()) == pytest.approx(1, abs=0.03)


# ------------------------------------------------------------------------------------ other requests


@pytest.mark.parametrize("context", [CONTEXT, 2 * CONTEXT])
def test_requests_under_way_say_the_same_after_a_score(folder, context):
    """With room for both, and with room for one: then the request has its blocks taken and is computed again."""
    engine = load(folder, context_tokens=context)
    prompts = [TEXT[:20], TEXT[30:45]]
    alone = []
    for prompt in prompts:
        engine.add(request(1, protocol.TokenIds(prompt), LONG))
        alone.append(finish(engine)[0][1].token_ids)
    score_alone = ask(engine)
    for number, prompt in enumerate(prompts):
        engine.add(request(number, protocol.TokenIds(prompt), LONG))
    said: dict[int, tuple[int, ...]] = {}
    for _ in range(6):
        for event in engine.step():
            for piece in getattr(event, "pieces", ()):
                said[piece.request_id] = said.get(piece.request_id, ()) + piece.token_ids
    score = ask(engine)
    assert score.logprobs == score_alone.logprobs
    told, _steps = finish(engine)
    assert [said.get(number, ()) + told[number].token_ids for number in range(2)] == alone
    assert (sum(told[number].figures.preemptions for number in range(2)) > 0) == (context == CONTEXT)
    check_pool(engine)
    engine.unload()


def test_a_request_on_the_plain_path_says_the_same_after_a_score(tmp_path):
    engine = load(tiny_folder(tmp_path, "falcon"))
    engine.add(request(1, protocol.TokenIds(TEXT[:20]), LONG))
    alone = finish(engine)[0][1].token_ids
    engine.add(request(1, protocol.TokenIds(TEXT[:20]), LONG))
    said: tuple[int, ...] = ()
    for _ in range(5):
        said += sum((piece.token_ids for event in engine.step() for piece in getattr(event, "pieces", ())), ())
    check_rows(ask(engine), TEXT, right_rows("falcon", TEXT), 0)
    assert said + finish(engine)[0][1].token_ids == alone
    check_pool(engine)
    engine.unload()


# --------------------------------------------------------------------------------------------- faults


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"token_ids": ()}, ErrorCode.BAD_PARAMS),
        ({"token_ids": TEXT[:1]}, ErrorCode.BAD_PARAMS),
        ({"first_scored": 60}, ErrorCode.BAD_PARAMS),
        ({"first_scored": -1}, ErrorCode.BAD_PARAMS),
        ({"token_ids": (5, WORDS)}, ErrorCode.BAD_PARAMS),
        ({"token_ids": (5, -1)}, ErrorCode.BAD_PARAMS),
        ({"token_ids": TEXT * 2}, ErrorCode.PROMPT_TOO_LONG),
        ({"prompt": protocol.TokenIds(())}, ErrorCode.EMPTY_PROMPT),
        ({"prompt": protocol.TokenIds(TEXT[:5]), "token_ids": ()}, ErrorCode.BAD_PARAMS),
        ({"reference_path": "/nowhere/window.cwin"}, ErrorCode.REFERENCE_UNREADABLE),
        ({"write_path": "/nowhere/window.cwin"}, ErrorCode.WRITE_FAILED),
    ],
)
def test_what_cannot_be_scored_is_an_error_and_leaves_nothing(engine, fields, code):
    with pytest.raises(EngineError) as caught:
        engine.score(protocol.Score(request_id=protocol.RequestId(1), **{"token_ids": TEXT, **fields}))
    assert caught.value.code is code
    check_pool(engine)


def test_a_window_of_another_text_is_refused(engine, tmp_path):
    path = str(tmp_path / "one.cwin")
    ask(engine, write_path=path)
    with pytest.raises(EngineError) as caught:
        ask(engine, TEXT[::-1], reference_path=path)
    assert caught.value.code is ErrorCode.REFERENCE_UNREADABLE
    check_pool(engine)


def test_a_score_that_is_stopped_ends_and_leaves_nothing(engine, tmp_path):
    engine.interrupt()
    with pytest.raises(EngineError) as caught:
        ask(engine, write_path=str(tmp_path / "one.cwin"))
    assert (caught.value.code, caught.value.parameters) == (ErrorCode.DECODE_FAILED, {"detail": "scoring was stopped"})
    assert list(tmp_path.iterdir()) == []
    check_pool(engine)
    assert engine.abort(protocol.RequestId(7)) == ()  # the command that raised the flag
    check_rows(ask(engine), TEXT, right_rows("llama", TEXT), 0)


def test_without_a_model_nothing_is_scored():
    with pytest.raises(EngineError) as caught:
        TorchEngine().score(protocol.Score(request_id=protocol.RequestId(1), token_ids=TEXT))
    assert caught.value.code is ErrorCode.NO_MODEL


def test_tokens_of_a_text_are_those_of_its_prompt(engine):
    token_ids = engine.tokenize(protocol.Text("hello the"))
    assert len(token_ids) == engine.count_tokens(protocol.Text("hello the"))
    assert [tiny_tokens()[token] for token in token_ids] == ["hello", "Ġthe"]


# --------------------------------------------------------------------------------------------- pieces


@pytest.mark.parametrize("step_tokens", [1, 3, 16, 500])
@pytest.mark.parametrize("most_rows", [1, 4, 500])
@pytest.mark.parametrize("first_row", [0, 1, 10, 39])
def test_pieces_cover_a_text_within_their_limits(first_row, most_rows, step_tokens):
    pieces = list(scoring.cut(40, first_row, step_tokens, most_rows))
    assert [begin for begin, _end, _rows in pieces] == [0, *(end for _begin, end, _rows in pieces[:-1])]
    assert pieces[-1][1] == 40
    assert all(0 < end - begin <= step_tokens and 0 <= rows <= most_rows for begin, end, rows in pieces)
    assert all(rows == max(0, end - max(begin, first_row)) for begin, end, rows in pieces)
    assert sum(rows for _begin, _end, rows in pieces) == 40 - first_row
