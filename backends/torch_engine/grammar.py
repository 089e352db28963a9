"""Grammars and JSON schemas that an answer must follow: which tokens may come next, by llguidance.

A grammar is compiled once for a model's vocabulary; each request walks through it by itself. The mask names every
token that some text of the grammar allows, not only the tokenizer's favourite one, and once the grammar is complete
only the tokens that end a text are left.

Reference: https://github.com/guidance-ai/llguidance
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from llguidance import LLMatcher, LLParserLimits, LLTokenizer, TokenizerWrapper
from numpy.typing import NDArray

from backends.errors import EngineError, ErrorCode
from backends.protocol import SamplingParams
from backends.torch_engine.grammar_gbnf import to_lark

CHECK_LIMIT_S = 10.0  # for reading a grammar in a child; 0.1 s is usual
_CHECK_SCRIPT = Path(__file__).resolve().with_name("grammar_check.py")
# All that the child gets of the environment, as the template renderer does.
_KEPT_VARIABLES = ("SYSTEMROOT", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
_KEPT_GRAMMARS = 16  # compiled ones, a few hundred kB each
_DETAIL_CHARACTERS = 300  # a detail longer than this says no more to a person
# Without it the library allows only its own way to cut a text that is certain, and asks a tokenizer for that.
_HEADER = '%llguidance {"no_forcing": true}\n'
# Between the parts of JSON: without a bound a model can write blanks for ever. llama.cpp bounds them alike.
_JSON_BLANKS = {"whitespace_pattern": r"( |\n{1,2}[ \t]{0,20})?"}
_PLACE = re.compile(r"^(at )?\d+\(\d+\): ")
_MOST_DEPTH = 100  # of a schema's own JSON


class GrammarCompiler:
    """Makes grammars for one vocabulary. What the library knows of the vocabulary is built by the first grammar.

    Attributes:
        _pieces: the bytes of every token, empty for special ones.
        _end_ids: the tokens that end a text.
        _kept: compiled grammars by their text, the latest last.
    """

    def __init__(self, pieces: Sequence[bytes], end_ids: Sequence[int], check_limit_s: float = CHECK_LIMIT_S) -> None:
        self._pieces = pieces
        self._end_ids = tuple(end_ids)
        self._check_limit_s = check_limit_s
        self._tokenizer: LLTokenizer | None = None
        self._kept: OrderedDict[str, LLMatcher] = OrderedDict()

    def start(self, params: SamplingParams) -> GrammarState | None:
        """Return the beginning of the grammar or the schema that a request names, None for free text.

        Raises:
            EngineError: BAD_PARAMS: it cannot be read, asks for what is not supported, or takes too long to read.
        """
        if not params.grammar and not params.json_schema:
            return None
        if not self._end_ids:
            raise EngineError(ErrorCode.BAD_PARAMS, detail="this model has no token that ends a text")
        lark = _HEADER + (to_lark(params.grammar) if params.grammar else _schema_lark(params.json_schema))
        matcher = self._kept.get(lark)
        if matcher is None:
            check_grammar(lark, self._check_limit_s)
            matcher = LLMatcher(
                self._built_tokenizer(), LLMatcher.grammar_from_lark(lark), log_level=0, limits=_limits()
            )
            if matcher.is_error():
                raise EngineError(ErrorCode.BAD_PARAMS, detail=_words(matcher.get_error()))
            self._kept[lark] = matcher
            if len(self._kept) > _KEPT_GRAMMARS:
                self._kept.popitem(last=False)
        self._kept.move_to_end(lark)
        return GrammarState(matcher.deep_copy(), len(self._pieces))

    def _built_tokenizer(self) -> LLTokenizer:
        if self._tokenizer is None:
            vocabulary = TokenizerWrapper(_Vocabulary(self._pieces, self._end_ids))
            self._tokenizer = LLTokenizer(vocabulary, n_vocab=len(self._pieces), eos_token=list(self._end_ids))
        return self._tokenizer


class GrammarState:
    """Where one request stands in its grammar."""

    def __init__(self, matcher: LLMatcher, vocabulary_tokens: int) -> None:
        self._matcher = matcher
        self._vocabulary_tokens = vocabulary_tokens

    @property
    def is_complete(self) -> bool:
        """Whether the text so far is one of the grammar's; more may still be allowed."""
        return self._matcher.is_accepting()

    def mask(self, count: int) -> NDArray[np.bool_]:
        """Return which of the first `count` tokens may come next, [count].

        Raises:
            EngineError: DECODE_FAILED, the grammar is too intricate at this place.
        """
        words = np.zeros((self._vocabulary_tokens + 31) // 32, dtype=np.int32)
        self._matcher.unsafe_compute_mask_ptr(words.ctypes.data, words.nbytes)
        self._check()
        known = min(count, self._vocabulary_tokens)
        allowed = np.zeros(count, dtype=np.bool_)  # a model may have more rows than its tokenizer has tokens
        allowed[:known] = np.unpackbits(words.view(np.uint8), bitorder="little", count=known)
        return allowed

    def accept(self, token_id: int) -> None:
        """Go on by a token that joined the sequence.

        Raises:
            EngineError: DECODE_FAILED, the grammar does not allow it here.
        """
        self._matcher.consume_token(token_id)
        self._check()

    def clone(self) -> GrammarState:
        """Return a copy that goes on by itself."""
        return GrammarState(self._matcher.deep_copy(), self._vocabulary_tokens)

    def _check(self) -> None:
        if self._matcher.is_error():
            detail = f"the grammar cannot go on here: {_words(self._matcher.get_error())}"
            raise EngineError(ErrorCode.DECODE_FAILED, detail=detail)


class _Vocabulary:
    """What the library wants to know of a tokenizer."""

    bos_token_id = None

    def __init__(self, pieces: Sequence[bytes], end_ids: Sequence[int]) -> None:
        self.tokens = list(pieces)
        self.eos_token_id = end_ids[0]
        self.special_token_ids = [token_id for token_id, piece in enumerate(pieces) if not piece]

    def __call__(self, _text: bytes) -> list[int]:
        """Cut a text into tokens: never needed, since nothing is forced."""
        return []


def check_grammar(lark: str, limit_s: float = CHECK_LIMIT_S) -> None:
    """Read a grammar in a child process, which a hostile one cannot outlive.

    Raises:
        EngineError: BAD_PARAMS.
    """
    try:
        checked = subprocess.run(
            [sys.executable, "-I", str(_CHECK_SCRIPT)],
            input=lark.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=_CHECK_SCRIPT.parent,
            env={name: os.environ[name] for name in _KEPT_VARIABLES if name in os.environ},
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        detail = f"reading the grammar takes longer than {limit_s:g} seconds"
        raise EngineError(ErrorCode.BAD_PARAMS, detail=detail) from error
    if checked.returncode != 0:
        raise EngineError(ErrorCode.BAD_PARAMS, detail="the grammar is too large or too deep to be read")
    if found := checked.stdout.decode(errors="replace"):
        raise EngineError(ErrorCode.BAD_PARAMS, detail=_words(found))


def _schema_lark(text: str) -> str:
    """Return a grammar of the JSON texts that a schema allows."""
    try:
        schema = json.loads(text)
        written = json.dumps(schema, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise EngineError(ErrorCode.BAD_PARAMS, detail=f"the schema is not JSON: {error}") from error
    if schema is True:
        schema = {}
    if not isinstance(schema, dict):
        raise EngineError(ErrorCode.BAD_PARAMS, detail="a JSON schema must be an object")
    if _depth(written) > _MOST_DEPTH:
        raise EngineError(ErrorCode.BAD_PARAMS, detail=f"the schema is more than {_MOST_DEPTH} levels deep")
    return "start: %json " + json.dumps({**schema, "x-guidance": _JSON_BLANKS}) + "\n"


def _depth(written: str) -> int:
    """Return at most how many brackets of a JSON text lie in one another; those within texts count, too."""
    deepest = depth = 0
    for character in written:
        depth += (character in "[{") - (character in "]}")
        deepest = max(deepest, depth)
    return deepest


def _limits() -> LLParserLimits:
    """Return the bounds on work: two and ten times the library's own, since each of our terminals is a character.

    A grammar that is recursive at its right end would reach the library's bounds after 1,600 words. Errors tell what
    is wrong and not the state of the parser, which holds the answer's text.
    """
    return LLParserLimits(max_items_in_row=4_000, step_max_items=500_000, verbose_errors=False)


def _words(error: str) -> str:
    """Return the library's message in one line, without the place in a text that the person did not write."""
    message = error.split("\n   1 | ", maxsplit=1)[0].replace("<non-verbose/>", "")
    return _PLACE.sub("", " ".join(message.split()))[:_DETAIL_CHARACTERS]
