"""GBNF means what it means to llama.cpp: the same tokens are allowed at every place of random texts."""

from __future__ import annotations

import ctypes
import random

import llama_cpp as llama
import numpy as np
import pytest

from backends.errors import EngineError, ErrorCode
from backends.protocol import SamplingParams
from backends.torch_engine.grammar import GrammarCompiler
from backends.torch_engine.grammar_gbnf import to_lark
from tests.helpers.token_pieces import starter_pieces

JSON = r"""
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws (
    string ":" ws value        # a comment
    ("," ws string ":" ws value)*
  )? "}" ws
array  ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws     ::= | " " | "\n" [ \t]{0,20}
"""
GRAMMARS = {
    "json": JSON,
    "a longest match would lose the end": 'root ::= [a-z]+ "x" | [a-z ]{2,} "yz"',
    "a literal and its beginning": 'root ::= ("a" [bc] | "ab" "d" | "abc" "e")+',
    "recursion in the middle": 'root ::= "(" root ")" | "<" root? ">" | [0-9-]',
    "other scripts and escapes": r'root ::= ([а-яё] | "\u00e9\U0001F600" | "\x41\n" | [^\x00-\u2fff] | "日本")+ "."',
    "counted": 'root ::= ("ab" | "c"){2,4} "d"{3} ("e"{2,})? [f-]',
    "names": 'root ::= first-Name other-name\nfirst-Name ::= [A-Z] [a-z]*\nother-name ::= | " " first-Name',
}


@pytest.fixture(scope="module")
def starter(starter_model):
    with starter_pieces(starter_model) as found:
        yield found


@pytest.fixture(scope="module")
def compiler(starter):
    return GrammarCompiler(starter.pieces, starter.end_ids)


def llama_mask(sampler, tokens: int) -> np.ndarray:
    """Return which tokens llama.cpp's grammar sampler leaves."""
    data = np.zeros(tokens, dtype=[("id", np.int32), ("logit", np.float32), ("p", np.float32)])
    data["id"] = np.arange(tokens)
    pointer = ctypes.cast(data.ctypes.data, ctypes.POINTER(llama.llama_token_data))
    candidates = llama.llama_token_data_array(pointer, tokens, -1, False)
    llama.llama_sampler_apply(sampler, ctypes.byref(candidates))
    return data["logit"] == 0


@pytest.mark.parametrize("name", GRAMMARS)
def test_the_same_tokens_are_allowed_as_by_llama_cpp(name, starter, compiler) -> None:
    """Left out: special tokens, whose names llama.cpp takes for text, and the byte 0, which it never allows."""
    text = GRAMMARS[name]
    tokens = len(starter.pieces)
    is_plain = np.array([bool(piece) and piece[0] != 0 for piece in starter.pieces])
    is_end = np.isin(np.arange(tokens), starter.end_ids)
    vocabulary = llama.llama_model_get_vocab(starter.model)
    theirs = llama.llama_sampler_init_grammar(vocabulary, text.encode(), b"root")
    ours = compiler.start(SamplingParams(grammar=text))
    rng = random.Random(7)
    for _number in range(14):
        allowed, expected = ours.mask(tokens), llama_mask(theirs, tokens)
        assert np.array_equal(allowed & is_plain, expected & is_plain)
        assert np.array_equal(allowed & is_end, expected & is_end)
        assert not (allowed & ~is_plain & ~is_end)[[not piece for piece in starter.pieces]].any()
        choices = np.flatnonzero(allowed & is_plain)
        if not len(choices):
            break
        token = int(rng.choice(choices))
        ours.accept(token)
        llama.llama_sampler_accept(theirs, token)
    llama.llama_sampler_free(theirs)


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("", "line 1 of the grammar: there is no rule “root”"),
        ('x ::= "a"', "line 1 of the grammar: there is no rule “root”"),
        ('root ::= "a"\n\nroot ::= "b"', "line 3 of the grammar: the rule “root” is defined twice"),
        ('root ::= "a" |\n  b', "line 2 of the grammar: the rule “b” is used and nowhere defined"),
        ('root = "a"', "line 1 of the grammar: “::=” is missing after “root”"),
        ('::= "a"', "line 1 of the grammar: the name of a rule is missing"),
        ('root ::= "a" )', "line 1 of the grammar: a rule must end with its line"),
        ('root ::= ("a"', "line 1 of the grammar: “)” is missing"),
        ('root ::= "a', "line 1 of the grammar: the text ends within a literal or a class"),
        ("root ::= [a", "line 1 of the grammar: the text ends within a literal or a class"),
        ("root ::= []", "line 1 of the grammar: a class of characters is empty"),
        ("root ::= [z-a]", "line 1 of the grammar: a range of characters ends before it begins"),
        (r'root ::= "\q"', "line 1 of the grammar: the escape “\\q” is unknown or not complete"),
        (r'root ::= "\x4"', "line 1 of the grammar: the escape “\\x” is unknown or not complete"),
        (r'root ::= "\uD800"', "line 1 of the grammar: there is no such character"),
        ('root ::= "a"{2', "line 1 of the grammar: “}” is missing"),
        ('root ::= "a"{,2}', "line 1 of the grammar: a number is missing"),
        ('root ::= "a"{3,2}', "line 1 of the grammar: a number of repetitions ends before it begins"),
        ('root ::= "a"{2001}', "line 1 of the grammar: more than 2,000 repetitions"),
        ("root ::= <think>", "line 1 of the grammar: references to tokens are not supported"),
        ("root ::= " + "(" * 101 + ")" * 101, "line 1 of the grammar: more than 100 parentheses lie in one another"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(text, detail) -> None:
    with pytest.raises(EngineError) as caught:
        to_lark(text)
    assert caught.value.code is ErrorCode.BAD_PARAMS
    assert caught.value.parameters["detail"] == detail


def test_every_terminal_is_one_character() -> None:
    lark = to_lark(r'root ::= "ab" [x-z\]-] | .')
    assert lark.splitlines() == [
        "start: r0",
        r"r0: g0 /[\u{78}-\u{7a}\u{5d}\u{2d}]/ | /[\u{0}-\u{10ffff}]/",
        r"g0: /[\u{61}]/ /[\u{62}]/",
    ]


def test_deep_parentheses_up_to_the_bound_are_read(compiler) -> None:
    assert compiler.start(SamplingParams(grammar="root ::= " + "(" * 100 + '"a"' + ")" * 100)) is not None


@pytest.mark.parametrize(
    "name",
    [
        'root ::= ("a"*)* ""* ("b"?)+',
        'root ::= root "a" | "a"',
        'root ::= x{0,20}\nx ::= y{0,20}\ny ::= "a"{0,20}',
    ],
)
def test_grammars_that_could_go_in_circles_come_to_an_end(name, compiler) -> None:
    state = compiler.start(SamplingParams(grammar=name))
    for _number in range(20):
        allowed = state.mask(300)
        assert allowed[token_of(compiler, b"a")]
        state.accept(token_of(compiler, b"a"))


def test_a_grammar_that_grows_too_intricate_is_said_so(compiler) -> None:
    state = compiler.start(SamplingParams(grammar='root ::= x{0,2000}\nx ::= y{0,2000}\ny ::= "a"{0,2000}'))
    token = token_of(compiler, b"a")
    with pytest.raises(EngineError) as caught:
        _accept_all(state, [token] * 2000)
    assert caught.value.code is ErrorCode.DECODE_FAILED
    assert "cannot go on here" in str(caught.value.parameters["detail"])


def _accept_all(state, tokens: list[int]) -> None:
    for token in tokens:
        state.accept(token)


def token_of(compiler: GrammarCompiler, piece: bytes) -> int:
    return compiler._pieces.index(piece)
