"""Whatever the logits say, the answer follows the grammar or the schema, and free rows beside it do not notice."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from backends.errors import EngineError, ErrorCode
from backends.protocol import SamplingParams
from backends.torch_engine import grammar as grammar_module
from backends.torch_engine.grammar import GrammarCompiler, check_grammar
from backends.torch_engine.sampler import BatchSampler, RowsError, SamplerRow, probabilities
from backends.torch_engine.sampler_state import SamplerState
from tests.helpers.token_pieces import starter_pieces

SAMPLER = BatchSampler()
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 12},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "tags": {"type": "array", "items": {"enum": ["a", "é", "\U0001f600"]}, "maxItems": 3},
        "is_alive": {"type": "boolean"},
    },
    "required": ["name", "age", "tags"],
    "additionalProperties": False,
}
WEEK = 'root ::= day (", " day)*\nday ::= "Monday" | "Mon" | "Tuesday" | "Sunday!"'
HOSTILE = json.dumps({"allOf": [{"pattern": f"(a|b)*a(a|b){{{count}}}"} for count in range(1, 25)]})


@pytest.fixture(scope="module")
def starter(starter_model):
    with starter_pieces(starter_model) as found:
        yield found


@pytest.fixture(scope="module")
def compiler(starter):
    return GrammarCompiler(starter.pieces, starter.end_ids)


def write(starter, state: SamplerState, seed: int, most: int = 400) -> bytes:
    """Write an answer from random logits that like the end of the text and special tokens."""
    logits = torch.randn(16, len(starter.pieces) + 64, generator=torch.Generator().manual_seed(seed)) * 4
    logits[:, :17] += 15  # special tokens
    answer = b""
    for position in range(most):
        row = position % len(logits)
        token = SAMPLER.sample(logits[row : row + 1], [SamplerRow(state, position)])[0].token
        state.accept(token)
        if token in starter.end_ids:
            return answer
        answer += starter.pieces[token]
    pytest.fail("the answer did not end")


@pytest.mark.parametrize("seed", range(4))
def test_random_logits_write_json_that_the_schema_allows(seed, starter, compiler) -> None:
    params = SamplingParams(json_schema=json.dumps(PERSON), seed=seed, temperature=[0.0, 1.0, 2.0][seed % 3])
    found = json.loads(write(starter, SamplerState(params, (), compiler.start(params)), seed))
    assert set(found) - {"is_alive"} == {"name", "age", "tags"}
    assert len(found["name"]) <= 12
    assert 0 <= found["age"] <= 150
    assert len(found["tags"]) <= 3
    assert set(found["tags"]) <= {"a", "é", "\U0001f600"}
    assert isinstance(found.get("is_alive", True), bool)


@pytest.mark.parametrize("seed", range(3))
def test_random_logits_write_what_the_grammar_allows(seed, starter, compiler) -> None:
    params = SamplingParams(grammar=WEEK, seed=seed, top_k=[0, 40, 2000][seed])
    text = write(starter, SamplerState(params, (), compiler.start(params)), seed).decode()
    assert set(text.split(", ")) <= {"Monday", "Mon", "Tuesday", "Sunday!"}


def test_when_the_grammar_is_complete_only_the_end_of_the_text_is_allowed(starter, compiler) -> None:
    state = compiler.start(SamplingParams(grammar='root ::= "hi"'))
    for token in starter.ids_of(b"hi"):
        assert not state.is_complete
        state.accept(token)
    assert state.is_complete
    assert np.flatnonzero(state.mask(len(starter.pieces))).tolist() == starter.end_ids
    state.accept(starter.end_ids[1])
    assert np.flatnonzero(state.mask(len(starter.pieces))).tolist() == starter.end_ids


def test_every_way_to_cut_a_certain_text_into_tokens_is_allowed(starter, compiler) -> None:
    state = compiler.start(SamplingParams(grammar='root ::= "hello world"'))
    allowed = {starter.pieces[token] for token in np.flatnonzero(state.mask(len(starter.pieces)))}
    assert allowed == {b"h", b"he", b"hel", b"hell", b"hello"}


def test_rows_beyond_the_tokenizer_are_never_allowed(starter, compiler) -> None:
    count = len(starter.pieces)
    mask = compiler.start(SamplingParams(grammar="root ::= .*")).mask(count + 100)
    assert mask[:count].any()
    assert not mask[count:].any()
    assert len(compiler.start(SamplingParams(grammar="root ::= .*")).mask(10)) == 10


def test_free_rows_beside_a_grammar_are_not_changed(starter, compiler) -> None:
    logits = torch.randn(4, len(starter.pieces), generator=torch.Generator().manual_seed(3)) * 4
    free = [SamplingParams(seed=1), SamplingParams(temperature=0), SamplingParams(top_k=0, seed=2)]
    alone = [
        SAMPLER.sample(logits[at : at + 1], [SamplerRow(SamplerState(one), 5)])[0].token for at, one in enumerate(free)
    ]
    bound = SamplingParams(grammar='root ::= "zebra"', seed=3, logprobs=1)
    rows = [SamplerRow(SamplerState(one), 5) for one in free]
    rows.append(SamplerRow(SamplerState(bound, (), compiler.start(bound)), 5))
    before = logits.clone()
    found = SAMPLER.sample(logits, rows)
    assert [one.token for one in found[:3]] == alone
    assert b"zebra".startswith(starter.pieces[found[3].token])
    assert torch.equal(logits, before)
    expected = torch.log_softmax(logits[3].double(), -1)[found[3].token].item()  # of the model, not of the grammar
    assert found[3].chances.chosen.logprob == pytest.approx(expected, abs=1e-4)


def test_probabilities_lie_on_allowed_tokens_only(starter, compiler) -> None:
    params = SamplingParams(grammar="root ::= [a-c]+", top_k=0, top_p=1.0, min_p=0.0, temperature=1.0)
    state = SamplerState(params, (), compiler.start(params))
    logits = torch.randn(len(starter.pieces), generator=torch.Generator().manual_seed(3))
    found = probabilities(logits, state)
    allowed = torch.from_numpy(state.grammar.mask(len(logits)))
    expected = torch.softmax(logits.double().masked_fill(~allowed, -torch.inf), -1)
    assert torch.allclose(found, expected, atol=1e-9)


def test_only_accepted_tokens_move_the_grammar_and_a_clone_looks_ahead(starter, compiler) -> None:
    state = compiler.start(SamplingParams(grammar='root ::= "abc"'))
    first = state.mask(len(starter.pieces))
    assert np.array_equal(first, state.mask(len(starter.pieces)))
    ahead = state.clone()
    ahead.accept(starter.pieces.index(b"a"))
    assert np.array_equal(first, state.mask(len(starter.pieces)))
    assert {starter.pieces[token] for token in np.flatnonzero(ahead.mask(len(starter.pieces)))} == {b"b", b"bc"}


def test_two_requests_of_one_grammar_walk_apart(starter, compiler) -> None:
    params = SamplingParams(grammar='root ::= "ab"')
    one, other = compiler.start(params), compiler.start(params)
    one.accept(starter.pieces.index(b"a"))
    assert not other.mask(len(starter.pieces))[starter.pieces.index(b"b")]


def test_a_token_that_the_grammar_forbids_cannot_be_accepted(starter, compiler) -> None:
    state = compiler.start(SamplingParams(grammar='root ::= "ab"'))
    with pytest.raises(EngineError) as caught:
        state.accept(starter.pieces.index(b"z"))
    assert caught.value.code is ErrorCode.DECODE_FAILED
    assert "grammar" in str(caught.value.parameters["detail"])


def test_a_row_whose_grammar_cannot_go_on_is_named(starter, compiler) -> None:
    params = SamplingParams(grammar='root ::= "ab"')
    state = SamplerState(params, (), compiler.start(params))
    with pytest.raises(EngineError):
        state.accept(starter.pieces.index(b"z"))
    logits = torch.zeros(2, len(starter.pieces))
    rows = [SamplerRow(SamplerState(SamplingParams(temperature=0)), 0), SamplerRow(state, 0)]
    with pytest.raises(RowsError) as caught:
        SAMPLER.sample(logits, rows)
    assert list(caught.value.details) == [1]


def test_free_text_has_no_grammar(compiler) -> None:
    assert compiler.start(SamplingParams()) is None


@pytest.mark.parametrize(
    ("schema", "word"),
    [
        ("{", "not JSON"),
        ('{"maximum": 1e999}', "not JSON"),
        ("[1]", "must be an object"),
        ("[" * 5000, "not JSON"),
        ('{"a":' * 200 + "1" + "}" * 200, "levels deep"),
        ('{"type": "nosuch"}', "Invalid type: nosuch"),
        ('{"if": {}}', "Unimplemented keys"),
        ('{"$ref": "https://example.com/x"}', "does not fetch"),
        (HOSTILE, "takes longer than 0.5 seconds"),
    ],
)
def test_a_schema_that_cannot_be_followed_is_refused_in_words(schema, word, starter) -> None:
    with pytest.raises(EngineError) as caught:
        GrammarCompiler(starter.pieces, starter.end_ids, check_limit_s=0.5 if schema == HOSTILE else 60).start(
            SamplingParams(json_schema=schema)
        )
    assert caught.value.code is ErrorCode.BAD_PARAMS
    assert word in str(caught.value.parameters["detail"])
    assert "\n" not in str(caught.value.parameters["detail"])


def test_a_model_without_an_end_of_text_cannot_follow_a_grammar() -> None:
    with pytest.raises(EngineError) as caught:
        GrammarCompiler([b"a"], []).start(SamplingParams(grammar='root ::= "a"'))
    assert caught.value.code is ErrorCode.BAD_PARAMS


def test_a_check_that_dies_is_a_refusal(monkeypatch, tmp_path) -> None:
    script = tmp_path / "dies.py"
    script.write_text("import os; os.abort()")
    monkeypatch.setattr(grammar_module, "_CHECK_SCRIPT", script)
    with pytest.raises(EngineError) as caught:
        check_grammar("start: /a/", 60)
    assert "too large or too deep" in str(caught.value.parameters["detail"])


def test_a_compiled_grammar_is_kept_and_not_checked_again(monkeypatch, compiler) -> None:
    params = SamplingParams(grammar='root ::= "kept"')
    assert compiler.start(params) is not None
    monkeypatch.setattr(grammar_module, "check_grammar", lambda *_arguments: pytest.fail("checked again"))
    assert compiler.start(params) is not None


def test_true_allows_any_json(starter, compiler) -> None:
    state = compiler.start(SamplingParams(json_schema="true"))
    allowed = {starter.pieces[token] for token in np.flatnonzero(state.mask(len(starter.pieces)))}
    assert {b"{", b"[", b'"', b"t", b"1"} <= allowed
    assert b"x" not in allowed
