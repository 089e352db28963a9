"""The torch engine: many requests at a time over one pool of KV blocks, with transformers' model code.

A token is born here: step() asks the scheduler what is known and not computed, runs it in one flat forward, and the
sampler draws for each sequence that has caught up; Sequence.append takes it. Blocks whose text comes again are found by
the scheduler, so that the next turn computes only what is new.
"""

from __future__ import annotations

import time
from collections.abc import Sequence as Many
from dataclasses import dataclass, field
from typing import ClassVar

import torch

from backends import protocol
from backends.engine import Engine, Report
from backends.errors import EngineError, ErrorCode
from backends.sampling_params import check_params
from backends.torch_engine import device as devices
from backends.torch_engine.answer import Answer
from backends.torch_engine.block_pool import BLOCK_TOKENS
from backends.torch_engine.loading import load_parts
from backends.torch_engine.model_runner import Interrupted
from backends.torch_engine.parts import Parts
from backends.torch_engine.sampler import RowsError, Sampled, SamplerRow
from backends.torch_engine.sampler_state import SamplerState
from backends.torch_engine.scoring import score
from backends.torch_engine.sequence import Sequence
from backends.torch_engine.step_layout import RowInput
from backends.torch_engine.step_plan import PlanRow, StepPlan

_MAP_INTERVAL_S = 0.2  # how often a block map is sent while steps go on


@dataclass(slots=True)
class Drawn:
    """What sampling came to: what may be shown, which requests ended and why, which failed and why."""

    pieces: list[protocol.Piece] = field(default_factory=list)
    ended: list[tuple[Answer, protocol.StopReason]] = field(default_factory=list)
    failed: list[tuple[Answer, str]] = field(default_factory=list)


class TorchEngine(Engine):
    """One model in torch.

    Attributes:
        _parts: what a load made; None while nothing is loaded.
        _answers: unfinished requests by their sequence.
        _mapped_s: when a block map was sent last; 0 makes the next step send one.
    """

    backend: ClassVar[str] = "torch"

    def __init__(self) -> None:
        self._parts: Parts | None = None
        self._answers: dict[Sequence, Answer] = {}
        self._steps = 0
        self._mapped_s = 0.0

    # ------------------------------------------------------------------------------------------ load

    def load(self, command: protocol.LoadModel, report: Report) -> protocol.ModelLoaded:
        """Load the model, prove that its attention runs over blocks, and make the pool."""
        began_s = time.monotonic()
        with devices.memory_errors(torch.device("cpu")):
            parts = load_parts(command, report)
        self._parts = parts
        self._steps = 0
        return parts.describe(command, time.monotonic() - began_s)

    def unload(self) -> None:
        """Let go of the model and its blocks."""
        self._answers.clear()
        parts, self._parts = self._parts, None
        if parts is not None:
            parts.close()

    # -------------------------------------------------------------------------------------- requests

    @property
    def has_work(self) -> bool:
        """Whether a request is unfinished."""
        return bool(self._answers)

    def add(self, request: protocol.Generate) -> None:
        """Accept a request; refuses what does not fit into the context."""
        parts = self._loaded()
        check_params(request.params)
        vocabulary = parts.vocabulary
        token_ids = vocabulary.encode(request.prompt) + list(request.parent_token_ids)
        if not token_ids:
            raise EngineError(ErrorCode.EMPTY_PROMPT)
        if any(not 0 <= token < parts.vocabulary_tokens for token in token_ids):
            raise EngineError(ErrorCode.BAD_PARAMS, detail="a token id is not in the vocabulary")
        if len(token_ids) >= parts.context_tokens:
            raise EngineError(
                ErrorCode.PROMPT_TOO_LONG, prompt_tokens=len(token_ids), context_tokens=parts.context_tokens
            )
        state = SamplerState(request.params, token_ids, parts.grammar(request.params))
        sequence = Sequence(request, token_ids)
        self._answers[sequence] = Answer(sequence, state)
        parts.scheduler.add(sequence)

    def abort(self, request_id: protocol.RequestId) -> Many[protocol.Event]:
        """End a request with what it has said so far."""
        self._loaded().runner.resume()
        for answer in self._answers.values():
            if answer.request_id == request_id:
                return self._finish(answer, protocol.StopReason.ABORTED)
        return ()

    def interrupt(self) -> None:
        """Make the forward in progress end between two layers."""
        parts = self._parts
        if parts is not None:
            parts.runner.interrupt()

    def count_tokens(self, prompt: protocol.Prompt) -> int:
        """Count a prompt's tokens."""
        return len(self._loaded().vocabulary.encode(prompt))

    def tokenize(self, prompt: protocol.Prompt) -> tuple[int, ...]:
        """Return a prompt's token ids."""
        return tuple(self._loaded().vocabulary.encode(prompt))

    def score(self, command: protocol.Score) -> protocol.ScoreDone:
        """Score known tokens in blocks of their own; requests that had to make room are computed again."""
        parts = self._loaded()
        self._set_threads()
        with devices.memory_errors(parts.device):
            return score(parts, command)

    def token_bytes(self, token_ids: Many[int]) -> tuple[bytes, ...]:
        """Return what each token adds to a text."""
        return self._loaded().vocabulary.token_bytes(token_ids)

    def describe_block(self, command: protocol.DescribeBlock) -> protocol.BlockDescribed:
        """Say which tokens lie in a block."""
        parts = self._loaded()
        if not 0 <= command.block < parts.blocks:
            raise EngineError(ErrorCode.BAD_PARAMS, detail=f"there is no block {command.block}")
        token_ids, users = parts.scheduler.describe(command.block)
        data = b"".join(parts.vocabulary.piece(token) for token in token_ids)
        return protocol.BlockDescribed(
            request_id=command.request_id,
            block=command.block,
            token_ids=token_ids,
            text=data.decode(errors="replace"),
            users=users,
        )

    def discard_requests(self) -> Many[protocol.RequestId]:
        """Forget every request and all blocks, which a fault may have left half-written."""
        ids = [answer.request_id for answer in self._answers.values()]
        self._answers.clear()
        if self._parts is not None:
            self._parts.clear()
        return ids

    # ------------------------------------------------------------------------------------------ step

    def step(self) -> Many[protocol.Event]:
        """Compute what the scheduler plans and draw a token for each sequence that has caught up."""
        parts = self._loaded()
        began_s = time.monotonic()
        events = self._set_threads()
        plan = parts.scheduler.schedule()
        for sequence in tuple(parts.scheduler.starved):
            events += self._finish(self._answers[sequence], protocol.StopReason.CONTEXT_FULL)
        if not plan.rows:
            return events
        rows = [
            RowInput(
                row.sequence.known[row.past : row.past + row.count],
                row.past,
                row.sequence.block_table,
                row.wants_logits,
            )
            for row in plan.rows
        ]
        try:
            with torch.inference_mode(), devices.memory_errors(parts.device):
                parts.runner.copy_blocks(plan.copies)
                logits = parts.runner.run(rows)
        except Interrupted:
            parts.scheduler.cancel(plan)
            return events
        counts = _token_counts(plan)
        drawn = self._sample(parts.scheduler.commit(plan), logits)
        events.append(self._step_done(began_s, drawn.pieces, plan, counts))
        for answer, reason in drawn.ended:
            events += self._finish(answer, reason)
        events += [self._fail(answer, detail) for answer, detail in drawn.failed]
        return events

    def _set_threads(self) -> list[protocol.Event]:
        """Compute with as many threads as other programs leave processors for; say so when that changes."""
        spare = self._loaded().spare_threads
        if spare is None or not spare.refresh():
            return []
        torch.set_num_threads(spare.count)  # what is computed does not depend on it
        if spare.count == spare.most:
            text = f"the processors are free again: {spare.count} threads compute"
        else:
            text = f"other programs keep {spare.others:.1f} processors busy: threads {spare.count} of {spare.most}"
        return [protocol.LogRecorded("info", text)]

    def _sample(self, rows: Many[PlanRow], logits: torch.Tensor) -> Drawn:
        """Draw for the rows of logits [R, V], those that want them."""
        parts = self._loaded()
        answers = [self._answers[row.sequence] for row in rows if row.wants_logits]
        drawn = Drawn()
        if not answers:
            return drawn
        sampled, drawn.failed = self._sampled(answers, logits)
        for answer, one in sampled:
            piece, reason = answer.take(one.token, one.chances, parts.vocabulary)
            if piece is not None:
                drawn.pieces.append(piece)
            if reason is None and len(answer.sequence.known) >= parts.context_tokens:
                reason = protocol.StopReason.CONTEXT_FULL
            if reason is not None:
                drawn.ended.append((answer, reason))
            elif not parts.reuses_kv:
                parts.scheduler.roll_back(answer.sequence, 0)
        return drawn

    def _sampled(
        self, answers: list[Answer], logits: torch.Tensor
    ) -> tuple[list[tuple[Answer, Sampled]], list[tuple[Answer, str]]]:
        """Return who gets which token, and who gets none and why: a model may compute nonsense for one of many."""
        sampler = self._loaded().sampler
        failed: list[tuple[Answer, str]] = []
        with torch.inference_mode():
            try:
                found = sampler.sample(logits, _sampler_rows(answers))
            except RowsError as error:
                failed = [(answers[number], detail) for number, detail in error.details.items()]
                good = [number for number in range(len(answers)) if number not in error.details]
                answers = [answers[number] for number in good]
                found = sampler.sample(logits[good], _sampler_rows(answers)) if good else []
        return list(zip(answers, found, strict=True)), failed

    def _fail(self, answer: Answer, detail: str) -> protocol.EngineFailed:
        """End a request that cannot go on; what it computed is not kept."""
        del self._answers[answer.sequence]
        self._loaded().end(answer.sequence, keep=False)
        return protocol.EngineFailed(
            code=ErrorCode.DECODE_FAILED, parameters={"detail": detail}, request_id=answer.request_id
        )

    def _step_done(
        self, began_s: float, pieces: Many[protocol.Piece], plan: StepPlan, counts: tuple[int, int]
    ) -> protocol.StepDone:
        parts = self._loaded()
        self._steps += 1
        now_s = time.monotonic()
        places = parts.scheduler.pool.used * BLOCK_TOKENS
        empty = sum(len(one.block_table) * BLOCK_TOKENS - one.computed for one in parts.scheduler.running)
        stats = protocol.StepStats(
            step=self._steps,
            ended_s=now_s,
            duration_s=now_s - began_s,
            prefill_tokens=counts[0],
            decode_tokens=counts[1],
            running=len(parts.scheduler.running),
            waiting=len(parts.scheduler.waiting),
            kv_used_tokens=places - empty,
            kv_used_bytes=places * parts.kv_bytes_per_token,
            preempted=len(plan.preempted),
        )
        block_map = None
        if parts.is_paged and now_s - self._mapped_s >= _MAP_INTERVAL_S:
            self._mapped_s = now_s
            block_map = parts.scheduler.block_map()
        return protocol.StepDone(stats, tuple(pieces), block_map)

    def _finish(self, answer: Answer, reason: protocol.StopReason) -> list[protocol.Event]:
        parts = self._loaded()
        del self._answers[answer.sequence]
        # Tokens behind a stop string were cut out of the text: what lies in their blocks is true all the same.
        parts.end(answer.sequence)
        rest = answer.rest()
        self._mapped_s = 0.0  # what ended shows at once
        events: list[protocol.Event] = []
        if rest is not None or not self._answers:
            pieces = (rest,) if rest is not None else ()
            events.append(self._step_done(time.monotonic(), pieces, StepPlan(()), (0, 0)))
        figures = answer.sequence.figures(answer.state.seed)
        events.append(protocol.RequestFinished(answer.request_id, reason, figures))
        return events

    def _loaded(self) -> Parts:
        if self._parts is None:
            raise EngineError(ErrorCode.NO_MODEL)
        return self._parts


def _sampler_rows(answers: list[Answer]) -> list[SamplerRow]:
    return [SamplerRow(answer.state, len(answer.sequence.known)) for answer in answers]


def _token_counts(plan: StepPlan) -> tuple[int, int]:
    """Return how many tokens of a plan are read and how many written."""
    read = sum(row.count for row in plan.rows if row.sequence.is_reading)
    return read, sum(row.count for row in plan.rows) - read
