"""Score, from logits to the answer: which rows, what of each, against the definitions in float64."""

from __future__ import annotations

import numpy as np
import pytest

from backends import protocol, scoring
from backends.errors import EngineError, ErrorCode
from backends.reference_window import ReferenceWindow
from backends.scoring import RowScorer, ScoredText, scored_text

ID = protocol.RequestId(1)
VOCABULARY = 97
TOKENS = tuple(int(token) for token in np.random.default_rng(0).integers(0, VOCABULARY, 40))
TEXT = ScoredText(TOKENS, 19)


def logits(seed: int = 0, noise: float = 0.0) -> np.ndarray:
    random = np.random.default_rng(3)
    values = 3 * random.standard_normal((TEXT.rows, VOCABULARY))
    return (values + noise * np.random.default_rng(seed).standard_normal(values.shape)).astype(np.float32)


def exact(values: np.ndarray) -> np.ndarray:
    values = values.astype(np.float64)
    return values - np.log(np.exp(values).sum(axis=1, keepdims=True))


def floats(data: bytes) -> np.ndarray:
    return np.frombuffer(data, "<f4")


def ints(data: bytes) -> np.ndarray:
    return np.frombuffer(data, "<i4")


def score(values: np.ndarray, text: ScoredText = TEXT, *, piece: int = 8, threads: int = 1, **fields):
    command = protocol.Score(request_id=ID, token_ids=text.token_ids, first_scored=text.first_row, **fields)
    with RowScorer(command, text, values.shape[1], threads=threads) as scorer:
        for first in range(0, len(values), piece):
            scorer.add(values[first : first + piece])
        return scorer.finish(1.0, 2.0)


# ----------------------------------------------------------------------------------------------- which rows


def test_without_a_prompt_the_rows_are_those_from_first_scored_to_the_last_but_one() -> None:
    text = scored_text(protocol.Score(request_id=ID, token_ids=tuple(range(9)), first_scored=5), (), 10, 20)
    assert (text.first_row, text.rows, text.targets) == (5, 3, (6, 7, 8))


def test_with_a_prompt_they_are_those_that_predict_the_tokens() -> None:
    command = protocol.Score(request_id=ID, token_ids=(7, 8), prompt=protocol.Text("x"))
    text = scored_text(command, (1, 2, 3), 10, 20)
    assert (text.token_ids, text.first_row, text.rows, text.targets) == ((1, 2, 3, 7, 8), 2, 2, (7, 8))


@pytest.mark.parametrize(
    ("fields", "prompt_ids", "code"),
    [
        ({"token_ids": (1, 2), "first_scored": 1}, (), ErrorCode.BAD_PARAMS),
        ({"token_ids": (1, 2), "first_scored": -1}, (), ErrorCode.BAD_PARAMS),
        ({"token_ids": (1,)}, (), ErrorCode.BAD_PARAMS),
        ({"token_ids": ()}, (), ErrorCode.BAD_PARAMS),
        ({"token_ids": (1, 10)}, (), ErrorCode.BAD_PARAMS),
        ({"token_ids": (1, -1)}, (), ErrorCode.BAD_PARAMS),
        ({"token_ids": (1, 2), "top": -1}, (), ErrorCode.BAD_PARAMS),
        ({"token_ids": tuple([1] * 6)}, (), ErrorCode.PROMPT_TOO_LONG),
        ({"token_ids": (1, 2), "prompt": protocol.Text("")}, (), ErrorCode.EMPTY_PROMPT),
        ({"token_ids": (), "prompt": protocol.Text("x")}, (1,), ErrorCode.BAD_PARAMS),
        ({"token_ids": (1,), "first_scored": 1, "prompt": protocol.Text("x")}, (1,), ErrorCode.BAD_PARAMS),
        ({"token_ids": (1, 2, 3), "prompt": protocol.Text("x")}, (1, 2, 3), ErrorCode.PROMPT_TOO_LONG),
    ],
)
def test_rows_that_are_not_there_are_refused(fields, prompt_ids, code) -> None:
    with pytest.raises(EngineError) as refused:
        scored_text(protocol.Score(request_id=ID, **fields), prompt_ids, 10, 5)
    assert refused.value.code is code


# ------------------------------------------------------------------------------------------ what of each row


def test_the_tokens_and_the_likeliest_have_the_log_probabilities_of_the_definition() -> None:
    values = logits()
    done = score(values, top=4)
    wanted = exact(values)
    rows = np.arange(TEXT.rows)
    assert ints(done.token_ids).tolist() == list(TEXT.targets)
    assert floats(done.logprobs) == pytest.approx(wanted[rows, list(TEXT.targets)], abs=2e-6)
    assert ints(done.best_ids).tolist() == values.argmax(axis=1).tolist()
    top = ints(done.top_ids).reshape(TEXT.rows, 4)
    assert top.tolist() == np.argsort(-values, axis=1)[:, :4].tolist()
    assert np.abs(floats(done.top_logprobs).reshape(TEXT.rows, 4) - np.take_along_axis(wanted, top, 1)).max() < 2e-6
    assert done.non_finite == bytes(TEXT.rows)
    assert (done.kl, done.cosine, done.reference_logprobs, done.reference_best_ids) == (b"", b"", b"", b"")
    assert (done.request_id, done.prefill_s, done.score_s) == (ID, 1.0, 2.0)


@pytest.mark.parametrize("piece", [1, 7, 1000])
def test_how_the_rows_are_cut_into_pieces_changes_nothing(tmp_path, piece) -> None:
    whole = score(logits(), piece=20, top=3, write_path=str(tmp_path / "a.cwin"))
    assert score(logits(), piece=piece, top=3, write_path=str(tmp_path / "b.cwin")) == whole
    assert (tmp_path / "a.cwin").read_bytes() == (tmp_path / "b.cwin").read_bytes()


def test_several_threads_find_the_same(tmp_path, monkeypatch) -> None:
    plain = score(logits(), write_path=str(tmp_path / "a.cwin"))
    monkeypatch.setattr(scoring, "_WORTH_THREADS", 1)
    assert score(logits(), threads=3, write_path=str(tmp_path / "b.cwin")) == plain
    assert (tmp_path / "a.cwin").read_bytes() == (tmp_path / "b.cwin").read_bytes()
    path = str(tmp_path / "a.cwin")
    assert score(logits(1, 0.2), threads=3, reference_path=path) == score(logits(1, 0.2), reference_path=path)


# ------------------------------------------------------------------------------------------------- compared


def test_a_model_against_its_own_window_shows_no_difference(tmp_path) -> None:
    path = str(tmp_path / "w.cwin")
    written = score(logits(), write_path=path)
    done = score(logits(), reference_path=path)
    assert abs(floats(done.kl).mean()) < 1e-6
    assert f"{floats(done.kl).mean():.4f}" in ("0.0000", "-0.0000")
    assert done.best_ids == done.reference_best_ids
    assert done.logprobs == done.reference_logprobs == written.logprobs
    assert floats(done.cosine).min() > 0.99999


def test_another_model_has_the_divergence_of_the_definition(tmp_path) -> None:
    path = str(tmp_path / "w.cwin")
    score(logits(), write_path=path)
    done = score(logits(5, 0.5), reference_path=path)
    theirs, ours = exact(logits()), exact(logits(5, 0.5))
    wanted = (np.exp(theirs) * (theirs - ours)).sum(axis=1)
    assert np.abs(floats(done.kl) - wanted).max() < 1e-4
    assert floats(done.kl).mean() == pytest.approx(wanted.mean(), rel=1e-3)
    assert floats(done.reference_logprobs) == pytest.approx(theirs[np.arange(TEXT.rows), list(TEXT.targets)], abs=2e-6)
    assert ints(done.reference_best_ids).tolist() == theirs.argmax(axis=1).tolist()
    assert floats(done.cosine).max() < 1


def test_a_window_of_16_nats_gives_llama_cpp_s_figures_of_the_reference(tmp_path) -> None:
    """They come from the rounded rows: the token's log-probability is one of its codes, and so is the likeliest."""
    path = str(tmp_path / "w.cwin")
    values = logits()
    values[4, TEXT.targets[4]] = values[4].max() - 30  # below what is kept
    score(values, write_path=path, span_nats=16.0)
    done = score(logits(5, 0.5), reference_path=path)
    with ReferenceWindow.open(path) as window:
        kept = window.logprobs(0, TEXT.rows)
        assert floats(done.reference_logprobs).tolist() == kept[np.arange(TEXT.rows), list(TEXT.targets)].tolist()
        assert window.target_logprobs[4] < kept[4].min() - 10
    assert ints(done.reference_best_ids).tolist() == kept.argmax(axis=1).tolist()


def test_a_compact_window_gives_a_lower_bound_and_no_cosine(tmp_path) -> None:
    full, compact = str(tmp_path / "f.cwin"), str(tmp_path / "c.cwin")
    score(logits(), write_path=full)
    score(logits(), write_path=compact, keep_top=12)
    whole, bound = (score(logits(5, 0.5), reference_path=path) for path in (full, compact))
    assert (floats(bound.kl) <= floats(whole.kl) + 2e-4).all()
    assert floats(bound.kl).mean() > 0.3 * floats(whole.kl).mean()
    assert bound.cosine == b""
    assert bound.reference_logprobs == whole.reference_logprobs
    assert abs(floats(score(logits(), reference_path=compact).kl).mean()) < 1e-5


def test_rows_that_are_not_finite_are_flagged_and_hold_nothing(tmp_path) -> None:
    path = str(tmp_path / "w.cwin")
    broken = logits()
    broken[3, 5], broken[11, 0] = np.nan, -np.inf
    done = score(broken, write_path=path, top=2)
    assert np.flatnonzero(np.frombuffer(done.non_finite, np.uint8)).tolist() == [3, 11]
    assert floats(done.logprobs)[[3, 11]].tolist() == [0, 0]
    other = logits(1, 0.1)
    other[7, 7] = np.inf
    done = score(other, reference_path=path)  # what is missing on either side cannot be compared
    assert np.flatnonzero(np.frombuffer(done.non_finite, np.uint8)).tolist() == [3, 7, 11]
    for data in (done.kl, done.cosine, done.logprobs, done.reference_logprobs):
        assert floats(data)[[3, 7, 11]].tolist() == [0, 0, 0]
        assert np.isfinite(floats(data)).all()


# -------------------------------------------------------------------------------------------------- refused


def refusal(text: ScoredText, vocabulary: int, path: str) -> str:
    values = np.zeros((text.rows, vocabulary), dtype=np.float32)
    with pytest.raises(EngineError) as refused:
        score(values, text, reference_path=path)
    assert refused.value.code is ErrorCode.REFERENCE_UNREADABLE
    return str(refused.value.parameters["detail"])


def test_a_window_of_another_text_or_vocabulary_is_refused(tmp_path) -> None:
    path = str(tmp_path / "w.cwin")
    score(logits(), write_path=path)
    assert refusal(TEXT, 98, path) == "it is of a vocabulary of 97 tokens, and this model has 98"
    assert refusal(ScoredText((*TOKENS[:-1], (TOKENS[-1] + 1) % 97), 19), 97, path) == "it is of another text"
    assert refusal(ScoredText(TOKENS, 20), 97, path) == "it is of another text"
    assert refusal(ScoredText(TOKENS[1:], 19), 97, path) == "it is of another text"


def test_a_damaged_row_ends_the_score_and_leaves_no_window_behind(tmp_path) -> None:
    path = tmp_path / "w.cwin"
    score(logits(), write_path=str(path))
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 64
    path.write_bytes(content)
    with pytest.raises(EngineError) as refused:
        score(logits(), reference_path=str(path), write_path=str(tmp_path / "n.cwin"))
    assert refused.value.code is ErrorCode.REFERENCE_UNREADABLE
    assert [file.name for file in tmp_path.iterdir()] == ["w.cwin"]


def test_a_score_that_ends_early_leaves_no_window(tmp_path) -> None:
    command = protocol.Score(request_id=ID, token_ids=TOKENS, write_path=str(tmp_path / "w.cwin"))
    with RowScorer(command, TEXT, VOCABULARY) as scorer:
        scorer.add(logits()[:5])
    assert not list(tmp_path.iterdir())
