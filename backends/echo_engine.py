"""An engine without a model: it answers from a script, for tests, screenshots and the self-test.

The "model file" is a JSON script (EchoScript); a path that is "" answers with the prompt's own text. Faults can be
scripted at any phase: crash, abort(), hang, stop, exit.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

import msgspec

from backends import protocol
from backends.detokenizer import Detokenizer
from backends.echo_blocks import EchoBlocks, EchoSequence
from backends.echo_scoring import VOCABULARY_TOKENS, EchoScoring, score
from backends.engine import Engine, Report
from backends.errors import EngineError, ErrorCode

Phase = Literal["probe", "load", "prefill", "decode", "score"]


class Fault(msgspec.Struct, frozen=True):
    """How the engine shall fail.

    Attributes:
        phase: where.
        how: "kill", "segv", "abort", "exit0", "exit1", "stop" (SIGSTOP), "hang" (a step that never returns), "raise".
        after_tokens: in decode, after how many tokens; in score, after how many texts.
    """

    phase: Phase
    how: Literal["kill", "segv", "abort", "exit0", "exit1", "stop", "hang", "raise"]
    after_tokens: int = 0


class EchoScript(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the engine does.

    Attributes:
        answer: the text to answer; "" echoes the prompt.
        token_s: seconds a token takes.
        load_s: seconds the load takes.
        prefill_s: seconds the reading of the prompt takes.
        fault: a scripted fault.
        context_tokens: the context it claims.
        chat_template: the template it reports; "" none.
        memory: the memory split it claims.
        blocks: KV blocks it claims; 0 for an engine that has none.
        block_tokens: places of a block.
        kept_blocks: blocks that hold tokens of earlier requests from the beginning.
        sequences: what lies in the blocks beside the answers.
        scoring: how it scores.
    """

    answer: str = ""
    token_s: float = 0.0
    load_s: float = 0.0
    prefill_s: float = 0.0
    fault: Fault | None = None
    context_tokens: int = 4096
    chat_template: str = "{% for message in messages %}{{ message.content }}\n{% endfor %}"
    memory: protocol.MemorySplit = protocol.MemorySplit(kv_reserved_bytes=4096 * 1024)
    blocks: int = 0
    block_tokens: int = 16
    kept_blocks: int = 0
    sequences: tuple[EchoSequence, ...] = ()
    scoring: EchoScoring = EchoScoring()


# How often a map of the blocks is sent at most: a few times a second, as engines with real blocks do.
_MAP_INTERVAL_S = 0.2

_SIGNALS = {"kill": "SIGKILL", "segv": "SIGSEGV", "abort": "SIGABRT", "stop": "SIGSTOP"}


class _Request:
    """A request in progress: the tokens to say and how far it is."""

    def __init__(self, request: protocol.Generate, prompt: bytes, answer: bytes) -> None:
        self.request = request
        self.prompt = prompt
        self.prompt_tokens = len(prompt)
        limit = request.params.max_tokens
        if request.params.ignore_eos and limit is not None and answer:
            answer *= -(-(limit + 1) // len(answer))  # over and over, and one token more than is let through
        self.answer = answer[:limit]
        self.is_cut = len(self.answer) < len(answer)
        self.detokenizer = Detokenizer(request.params.stop)
        self.new_tokens = 0
        self.began_s = time.monotonic()
        self.first_token_s = 0.0


class EchoEngine(Engine):
    """The scripted engine. A token is a byte, its id the byte's value: vocabulary 256.

    Attributes:
        _requests: unfinished requests, the first one is served.
        _woken: set by interrupt, ends a scripted delay.
        _blocks: the KV blocks, None where the script has none.
        _mapped_s: when a map of them was last sent.
        _scored: how many texts were scored.
    """

    backend: ClassVar[str] = "echo"

    def __init__(self) -> None:
        self._script = EchoScript()
        self._requests: list[_Request] = []
        self._woken = threading.Event()
        self._steps = 0
        self._kv_tokens = 0
        self._scored = 0
        self._blocks: EchoBlocks | None = None
        self._mapped_s = -_MAP_INTERVAL_S

    def load(self, command: protocol.LoadModel, report: Report) -> protocol.ModelLoaded:
        """Read the script; raises EngineError when it is not one."""
        script = self._script = read_script(command.model_path) if command.model_path else self._script
        for tenth in range(11):
            report(protocol.Progress(phase="load", done=tenth / 10, total=1.0))
            time.sleep(script.load_s / 11)
            if tenth == 5:  # half-way, so that a load that dies has begun
                self._fail_in("load")
        if script.blocks:
            self._blocks = EchoBlocks(script.blocks, script.block_tokens, script.sequences, script.kept_blocks)
        return protocol.ModelLoaded(
            backend=self.backend,
            model_path=command.model_path,
            context_tokens=script.context_tokens,
            train_context_tokens=script.context_tokens,
            tokenizer_hash="bytes",
            architecture="echo",
            quantization="none",
            vocabulary_tokens=VOCABULARY_TOKENS,
            chat_template=script.chat_template,
            device="CPU",
            load_s=script.load_s,
            kv_bytes_per_token=script.memory.kv_reserved_bytes / script.context_tokens,
            memory=script.memory,
            capabilities=protocol.Capabilities(
                can_roll_back=True, can_score=True, can_probe_memory=True, kv_types=("f16",)
            ),
            block_tokens=script.block_tokens if script.blocks else 0,
            blocks=script.blocks,
        )

    def probe_memory(self, command: protocol.ProbeMemory, report: Report) -> protocol.MemorySplit:
        """Say what the script claims; raises EngineError when it is none."""
        script = read_script(command.model_path) if command.model_path else EchoScript()
        fail_as(script.fault, "probe")
        return script.memory

    def unload(self) -> None:
        """Forget the script."""
        self._script = EchoScript()
        self._requests.clear()
        self._blocks = None

    @property
    def has_work(self) -> bool:
        """Whether a request is unfinished."""
        return bool(self._requests)

    def add(self, request: protocol.Generate) -> None:
        """Accept a request."""
        prompt = prompt_bytes(request.prompt)
        if not prompt:
            raise EngineError(ErrorCode.EMPTY_PROMPT)
        if len(prompt) >= self._script.context_tokens:
            raise EngineError(
                ErrorCode.PROMPT_TOO_LONG, prompt_tokens=len(prompt), context_tokens=self._script.context_tokens
            )
        self._requests.append(_Request(request, prompt, self._script.answer.encode() or prompt))

    def abort(self, request_id: protocol.RequestId) -> Sequence[protocol.Event]:
        """End a request with what it has said so far."""
        self._woken.clear()
        for state in self._requests:
            if state.request.request_id == request_id:
                return self._finish(state, protocol.StopReason.ABORTED)
        return ()

    def step(self) -> Sequence[protocol.Event]:
        """Say one token of the first request."""
        state = self._requests[0]
        began_s = time.monotonic()
        is_prefill = state.new_tokens == 0
        if is_prefill:
            self._fail_in("prefill")
            self._woken.wait(self._script.prefill_s)
            self._kv_tokens = state.prompt_tokens
        if self._woken.is_set():
            return ()
        self._woken.wait(self._script.token_s)
        self._fail_in("decode", state.new_tokens)
        token = state.answer[state.new_tokens]
        state.new_tokens += 1
        self._kv_tokens += 1
        state.first_token_s = state.first_token_s or time.monotonic()
        text, ids = state.detokenizer.add(token, bytes([token]))
        events: list[protocol.Event] = [
            self._step_done(state, began_s, text, ids, state.prompt_tokens if is_prefill else 0)
        ]
        if state.detokenizer.stopped:
            events += self._finish(state, protocol.StopReason.STOP_STRING)
        elif state.new_tokens == len(state.answer):
            reason = protocol.StopReason.MAX_TOKENS if state.is_cut else protocol.StopReason.END_OF_TEXT
            events += self._finish(state, reason)
        return events

    def interrupt(self) -> None:
        """Cut a scripted delay short."""
        self._woken.set()

    def count_tokens(self, prompt: protocol.Prompt) -> int:
        """Count the prompt's bytes."""
        return len(prompt_bytes(prompt))

    def tokenize(self, prompt: protocol.Prompt) -> tuple[int, ...]:
        """Return the prompt's bytes."""
        return tuple(prompt_bytes(prompt))

    def score(self, command: protocol.Score) -> protocol.ScoreDone:
        """Score bytes as the script says."""
        from backends.scoring import scored_text

        prompt_ids = prompt_bytes(command.prompt) if command.prompt is not None else b""
        text = scored_text(command, prompt_ids, VOCABULARY_TOKENS, self._script.context_tokens)
        self._fail_in("score", self._scored)
        if self._woken.wait(self._script.scoring.score_s):
            raise EngineError(ErrorCode.INTERRUPTED, command="Score")
        self._scored += 1
        return score(self._script.scoring, command, text)

    def token_bytes(self, token_ids: Sequence[int]) -> tuple[bytes, ...]:
        """Return each token's byte."""
        return tuple(bytes([token & 255]) for token in token_ids)

    def describe_block(self, command: protocol.DescribeBlock) -> protocol.BlockDescribed:
        """Say what lies in a block; nothing where the script has no blocks."""
        if self._blocks is None:
            return protocol.BlockDescribed(request_id=command.request_id, block=command.block)
        return self._blocks.describe(command)

    def discard_requests(self) -> Sequence[protocol.RequestId]:
        """Forget every request."""
        ids = [state.request.request_id for state in self._requests]
        self._requests.clear()
        return ids

    def _step_done(
        self, state: _Request, began_s: float, text: str, ids: tuple[int, ...], prefill: int
    ) -> protocol.StepDone:
        self._steps += 1
        now_s = time.monotonic()
        per_token = self._script.memory.kv_reserved_bytes / self._script.context_tokens
        stats = protocol.StepStats(
            step=self._steps,
            ended_s=now_s,
            duration_s=now_s - began_s,
            prefill_tokens=prefill,
            decode_tokens=0 if prefill else 1,
            running=1,
            waiting=len(self._requests) - 1,
            kv_used_tokens=self._kv_tokens,
            kv_used_bytes=int(self._kv_tokens * per_token),
        )
        pieces = (protocol.Piece(state.request.request_id, text, ids),) if text or ids else ()
        return protocol.StepDone(stats, pieces, self._block_map(state, now_s))

    def _block_map(self, state: _Request, now_s: float) -> protocol.BlockMap | None:
        """Return the map of the blocks where it is time for one."""
        if self._blocks is None:
            return None
        self._blocks.grow(state.prompt + state.answer[: state.new_tokens])
        is_last = state.new_tokens == len(state.answer)
        if now_s - self._mapped_s < _MAP_INTERVAL_S and not is_last:
            return None
        self._mapped_s = now_s
        return self._blocks.block_map(state.request.request_id, state.prompt_tokens + state.new_tokens)

    def _finish(self, state: _Request, reason: protocol.StopReason) -> list[protocol.Event]:
        self._requests.remove(state)
        now_s = time.monotonic()
        events: list[protocol.Event] = []
        text, ids = state.detokenizer.finish()
        if text or ids or self._blocks is not None:
            done = self._step_done(state, now_s, text, ids, 0)
            if self._blocks is not None:
                self._blocks.end_answer()
                done = msgspec.structs.replace(done, block_map=self._blocks.block_map(state.request.request_id, 0))
            events.append(done)
        first_s = state.first_token_s or now_s
        figures = protocol.RequestFigures(
            prompt_tokens=state.prompt_tokens,
            new_tokens=state.new_tokens,
            ttft_s=first_s - state.began_s,
            prefill_s=first_s - state.began_s,
            decode_s=now_s - first_s,
        )
        events.append(protocol.RequestFinished(state.request.request_id, reason, figures))
        return events

    def _fail_in(self, phase: Phase, tokens: int = 0) -> None:
        fail_as(self._script.fault, phase, tokens)


def read_script(path: str) -> EchoScript:
    """Return the script in this file; raises EngineError when it is none."""
    try:
        return msgspec.json.decode(Path(path).read_bytes(), type=EchoScript)
    except FileNotFoundError as error:
        raise EngineError(ErrorCode.FILE_MISSING, path=path) from error
    except (OSError, msgspec.DecodeError) as error:
        raise EngineError(ErrorCode.NOT_A_MODEL, path=path, detail=str(error)) from error


def fail_as(fault: Fault | None, phase: Phase, tokens: int = 0) -> None:
    """Fail in the scripted way, if it is time to."""
    if fault is None or fault.phase != phase or tokens < fault.after_tokens:
        return
    if fault.how in _SIGNALS:
        os.kill(os.getpid(), getattr(signal, _SIGNALS[fault.how]))
    elif fault.how == "hang":
        while True:
            time.sleep(1.0)
    elif fault.how == "raise":
        raise RuntimeError("a scripted fault")
    else:
        os._exit(int(fault.how == "exit1"))


def prompt_bytes(prompt: protocol.Prompt) -> bytes:
    """Return a prompt as this engine's tokens."""
    match prompt:
        case protocol.Text():
            return prompt.text.encode(errors="replace")
        case protocol.TokenIds():
            return bytes(token & 255 for token in prompt.token_ids)
        case protocol.RenderedPrompt():
            return b"".join(
                bytes(t & 255 for t in part.token_ids)
                if isinstance(part, protocol.TokenPart)
                else part.text.encode(errors="replace")
                for part in prompt.parts
            )
