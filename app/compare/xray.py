"""Reads a finished answer with another quantization of its model, in one prefill each, in workers of their own.

The model that wrote the answer reads it first where it is at hand: its chat template renders the dialogue, and both
read the same ids. Each worker ends before the next begins, so that beside the chat's model there is never more than
one. Knows the store's messages and no widget.
"""

from __future__ import annotations

import codecs
import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from app.bench.engine_run import EngineRun, StoppedError
from app.chat import prompts
from app.chat.messages import Message
from app.compare.xray_types import (
    Chance,
    Reading,
    Xray,
    XrayModel,
    XrayProgress,
    XrayQuestion,
    XrayToken,
    text_of_piece,
)
from app.engines.supervisor import LoadRequest
from app.errors import AppError, Words, words_for
from app.i18n import _
from app.units import count_text
from backends import protocol
from backends.client import WorkerCommand
from backends.errors import EngineError
from backends.registry import BACKENDS
from backends.renderer_client import RendererClient

__all__ = ["StoppedError", "XrayRun", "xray_params"]

TOP = 5
_SPARE_TOKENS = 64  # of the context, for a template that says more than the one before
_CONTEXT_STEP = 256
_CHARACTERS_A_TOKEN = 2  # at least, for a guess of what nobody has counted

_PROMPT, _SCORE, _TEXT = protocol.RequestId(1), protocol.RequestId(2), protocol.RequestId(3)


@dataclass(frozen=True, slots=True)
class _Scored:
    """What one model found: each row's log-probability and its likeliest tokens."""

    label: str
    logprobs: list[float]
    is_finite: list[bool]
    top: list[list[tuple[int, float]]]


class XrayRun:
    """One X-ray; run() blocks, stop() may come from any thread.

    Attributes:
        _stopped: set when nobody wants the answer any more.
        _prompt_ids: the dialogue as both models read it; () before the first has rendered it.
        _pieces: the bytes of tokens, by id.
        _notes: what a person must know of the result.
    """

    def __init__(
        self,
        question: XrayQuestion,
        open_log: Callable[[], Path],
        renderer: RendererClient,
        command: WorkerCommand | None = None,
    ) -> None:
        self._question = question
        self._open_log = open_log
        self._renderer = renderer
        self._command = command
        self._stopped = threading.Event()
        self._prompt_ids: tuple[int, ...] = ()
        self._pieces: dict[int, bytes] = {}
        self._notes = list(question.notes)

    def stop(self) -> None:
        """Have run() end with StoppedError soon."""
        self._stopped.set()

    def run(self, on_progress: Callable[[XrayProgress], None]) -> Xray:
        """Read the answer and return what was found.

        Raises:
            AppError: it cannot be read; the words say why.
            StoppedError: stop() was called.
        """
        began_s = time.monotonic()
        question = self._question
        if not question.answer.token_ids or not question.answer.tokenizer_hash:
            raise AppError(_no_ids())
        own = None
        if question.own is not None:
            try:
                own = self._score(question.own, on_progress)
            except AppError as error:
                words = _("{name}, which wrote the answer, could not be asked: {reason}")
                self._notes.append(words.format(name=question.own.label, reason=error.words.message))
        other = self._score(question.other, on_progress)
        self._check_prompt()
        return Xray(
            other_label=other.label,
            own_label=own.label if own is not None else "",
            tokens=self._tokens(other, own),
            prompt_tokens=len(self._prompt_ids),
            notes=tuple(self._notes),
            took_s=time.monotonic() - began_s,
        )

    def _score(self, model: XrayModel, on_progress: Callable[[XrayProgress], None]) -> _Scored:
        loading = _("Loading {name}").format(name=model.label)
        on_progress(XrayProgress(loading, 0.0))
        engine = EngineRun(self._open_log, self._command, self._stopped.is_set)
        try:
            request = LoadRequest(model.path, model.backend, model.params)
            loaded = engine.load(request, lambda share: on_progress(XrayProgress(loading, share)))
            self._check_vocabulary(model, loaded)
            prompt_ids = self._prompt(engine, loaded)
            on_progress(XrayProgress(_("Reading the answer with {name}").format(name=model.label)))
            ids = self._question.answer.token_ids
            score = protocol.Score(request_id=_SCORE, token_ids=ids, top=TOP, prompt=protocol.TokenIds(prompt_ids))
            done = engine.ask(score, protocol.ScoreDone)
            scored = _unpacked(model.label, done, len(ids))
            self._learn_texts(engine, ids, scored)
        finally:
            engine.close()
        self._prompt_ids = prompt_ids
        return scored

    def _check_vocabulary(self, model: XrayModel, loaded: protocol.ModelLoaded) -> None:
        if loaded.tokenizer_hash != self._question.answer.tokenizer_hash:
            message = _("{name} cuts text into other tokens than the model that wrote this answer.")
            hint = _("Only a model with the same vocabulary can read it token by token. Choose another one.")
            raise AppError(Words(message.format(name=model.label), hint))

    def _prompt(self, engine: EngineRun, loaded: protocol.ModelLoaded) -> tuple[int, ...]:
        """Return the dialogue's ids, rendered by the template of the first model that was loaded."""
        if self._prompt_ids:
            return self._prompt_ids
        question = self._question
        messages = prompts.render_messages(question.dialogue, question.system_prompt, loaded.tokenizer_hash)
        try:
            prompt, words = prompts.render_prompt(self._renderer, loaded, messages)
        except EngineError as error:
            raise AppError(words_for(error.code, error.parameters)) from error
        if words is not None:
            self._notes.append(words.message)
        return engine.ask(protocol.Tokenize(_PROMPT, prompt), protocol.Tokenized).token_ids

    def _check_prompt(self) -> None:
        """Say it where the dialogue is no longer what the answer was written after."""
        then, now = self._question.answer.stats.get("prompt_tokens"), len(self._prompt_ids)
        if isinstance(then, int) and then > 0 and then != now:
            words = _(
                "The answer was written after {then} tokens, and they are {now} now: its instructions or template have "
                "changed since, and both models read it after other words."
            )
            self._notes.append(words.format(then=count_text(then), now=count_text(now)))

    def _learn_texts(self, engine: EngineRun, ids: Sequence[int], scored: _Scored) -> None:
        wanted = {*ids, *(token for row in scored.top for token, _logprob in row)} - self._pieces.keys()
        if wanted:
            order = tuple(sorted(wanted))
            pieces = engine.ask(protocol.Detokenize(_TEXT, order), protocol.Detokenized).pieces
            self._pieces.update(zip(order, pieces, strict=True))

    def _tokens(self, other: _Scored, own: _Scored | None) -> tuple[XrayToken, ...]:
        ids = self._question.answer.token_ids
        texts = answer_texts(self._pieces[token] for token in ids)
        return tuple(
            XrayToken(token, text, self._reading(other, row), self._reading(own, row) if own is not None else None)
            for row, (token, text) in enumerate(zip(ids, texts, strict=True))
        )

    def _reading(self, scored: _Scored, row: int) -> Reading:
        if not scored.is_finite[row]:
            return Reading(math.nan, math.nan, ())
        top = tuple(
            Chance(token, text_of_piece(self._pieces[token]), math.exp(logprob)) for token, logprob in scored.top[row]
        )
        return Reading(scored.logprobs[row], math.exp(scored.logprobs[row]), top)


def xray_params(
    params: protocol.LoadParams, backend: str, dialogue: Iterable[Message], answer: Message
) -> protocol.LoadParams:
    """Return how a model is loaded for an X-ray: room for what is read and no more, K and V exact.

    Args:
        params: how a person wants the model loaded.
        backend: which loads it.
        dialogue: what precedes the answer.
        answer: with its figures, where it has some: they say how long its prompt was.
    """
    prompt_tokens = answer.stats.get("prompt_tokens")
    if not isinstance(prompt_tokens, int) or prompt_tokens <= 0:
        characters = sum(len(message.text.encode(errors="replace")) for message in dialogue)
        prompt_tokens = characters // _CHARACTERS_A_TOKEN + _CONTEXT_STEP
    needed = prompt_tokens + len(answer.token_ids) + _SPARE_TOKENS
    kv_types = BACKENDS[backend].kv_types
    return msgspec.structs.replace(
        params,
        context_tokens=-(-needed // _CONTEXT_STEP) * _CONTEXT_STEP,
        kv_type=kv_types[0] if kv_types else params.kv_type,
        max_sequences=1,
    )


def answer_texts(pieces: Iterable[bytes]) -> list[str]:
    """Return the text that each token completes; "" for one that ends inside a character."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    return [decoder.decode(piece) for piece in pieces]


def _unpacked(label: str, done: protocol.ScoreDone, rows: int) -> _Scored:
    """Return an engine's answer as numbers.

    Raises:
        AppError: there are fewer rows than asked for, so the engine is at fault.
    """
    logprobs = np.frombuffer(done.logprobs, "<f4")
    broken = np.frombuffer(done.non_finite, np.uint8)
    top_ids, top_logprobs = np.frombuffer(done.top_ids, "<i4"), np.frombuffer(done.top_logprobs, "<f4")
    if len(logprobs) != rows or len(broken) != rows or len(top_ids) != len(top_logprobs) or len(top_ids) % rows:
        message = _("The engine read another number of tokens than the answer has.")
        raise AppError(Words(message, _("That is a fault of the engine; the log says more.")))
    width = len(top_ids) // rows
    pairs = [
        list(zip(ids.tolist(), values.tolist(), strict=True))
        for ids, values in zip(top_ids.reshape(rows, width), top_logprobs.reshape(rows, width), strict=True)
    ]
    return _Scored(label, logprobs.tolist(), [not one for one in broken], pairs)


def _no_ids() -> Words:
    message = _("The exact tokens of this answer were not kept, so it cannot be read token by token.")
    return Words(message, _("Answers that a model has finished writing in this version keep them."))
