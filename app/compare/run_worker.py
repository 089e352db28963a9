"""A fresh worker for one run of a comparison: loads the run's model as the plan says, and is asked for figures.

The same for every run: context, threads, batch sizes, a stream of its own, nothing computed before. Knows no folder.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import msgspec

from app.bench.bench import memory_json
from app.bench.engine_run import EngineRun, Written
from app.compare.plan import FIRST_SCORED, RunSpec, TextSpec
from app.compare.results import Memory
from app.compare.run_files import RunFacts
from app.engines.supervisor import LoadRequest
from app.errors import AppError, Words
from app.i18n import _
from backends import protocol
from backends.client import WorkerCommand
from backends.registry import BACKENDS
from backends.renderer_client import RendererClient


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerServices:
    """What a comparison needs of the program.

    Attributes:
        open_log: makes the log file of the next worker.
        renderer: renders the prompts with the reference's chat template.
        read_text: returns a text of the plan; raises AppError.
        is_chat_busy: whether a chat's answer is under way; speed is not measured meanwhile.
        predicted_bytes: what a run is expected to take with a context of so many tokens; None where nobody can tell.
        command: starts another worker than our own.
        keeps_reference: whether the reference's windows stay when the comparison is done.
    """

    open_log: Callable[[], Path]
    renderer: RendererClient
    read_text: Callable[[TextSpec], str]
    is_chat_busy: Callable[[], bool] = lambda: False
    predicted_bytes: Callable[[RunSpec, int], int | None] = lambda _run, _context_tokens: None
    command: WorkerCommand | None = None
    keeps_reference: bool = False


class RunWorker:
    """One worker with one run's model; use it as a context manager, which ends it.

    Attributes:
        spec: the run.
        _engine: leads the worker.
        _ids: of the next commands.
    """

    def __init__(self, spec: RunSpec, services: RunnerServices, is_stopped: Callable[[], bool]) -> None:
        self.spec = spec
        self._engine = EngineRun(services.open_log, services.command, is_stopped)
        self._ids = itertools.count(1)

    def __enter__(self) -> RunWorker:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the worker, also in the middle of its work."""
        self._engine.close()

    @property
    def loaded(self) -> protocol.ModelLoaded:
        """What the engine said of the model; only after load()."""
        assert self._engine.loaded is not None
        return self._engine.loaded

    def load(self, context_tokens: int, threads: int, on_progress: Callable[[float], None]) -> protocol.ModelLoaded:
        """Load the run's model; blocks until it is ready.

        Args:
            context_tokens: as asked for; the engine takes less where the model has less.
            threads: 0 for the engine's choice.
            on_progress: told how far the load is, 0 to 1.

        Raises:
            AppError: it cannot be loaded, or this engine cannot score.
            StoppedError: an end was asked for meanwhile.
        """
        spec = self.spec
        params = protocol.LoadParams(
            context_tokens=context_tokens,
            kv_type=spec.kv_type,
            threads=threads,
            micro_batch_tokens=spec.micro_batch_tokens,
            kv_mode="streams",
        )
        loaded = self._engine.load(LoadRequest(spec.path, spec.backend, params), on_progress)
        if not loaded.capabilities.can_score:
            message = _("The {backend} engine cannot score this model, so it cannot be compared.")
            raise AppError(Words(message.format(backend=BACKENDS[spec.backend].title), _("Choose another engine.")))
        return loaded

    def facts(self) -> RunFacts:
        """Return what is kept of a load."""
        loaded = self.loaded
        names = {name for name in RunFacts.__struct_fields__ if name in protocol.ModelLoaded.__struct_fields__}
        known = {name: getattr(loaded, name) for name in names}
        split = loaded.memory
        reserved = split.weights_bytes + split.kv_reserved_bytes + split.compute_bytes + split.output_bytes
        return RunFacts(**known, engine_version=self._engine.engine_version, reserved_bytes=reserved)

    # --------------------------------------------------------------------------------------- questions

    def tokenize(self, prompt: protocol.Prompt) -> tuple[int, ...]:
        """Return a prompt's token ids."""
        return self._engine.ask(protocol.Tokenize(self._id(), prompt), protocol.Tokenized).token_ids

    def texts_of(self, token_ids: Sequence[int]) -> list[str]:
        """Return each token's text; half a character shows as a replacement mark."""
        asked = protocol.Detokenize(self._id(), tuple(token_ids))
        pieces = self._engine.ask(asked, protocol.Detokenized).pieces
        return [piece.decode("utf-8", "replace") for piece in pieces]

    def score_window(
        self, token_ids: tuple[int, ...], *, write_path: str = "", reference_path: str = "", keep_top: int = 0
    ) -> protocol.ScoreDone:
        """Score a window's second half, and write it or compare it with one that was written."""
        return self._engine.ask(
            protocol.Score(
                request_id=self._id(),
                token_ids=token_ids,
                first_scored=FIRST_SCORED,
                write_path=write_path,
                reference_path=reference_path,
                keep_top=keep_top,
            ),
            protocol.ScoreDone,
        )

    def score_answer(self, prompt_ids: tuple[int, ...], answer_ids: tuple[int, ...], top: int) -> protocol.ScoreDone:
        """Score an answer's tokens behind a prompt, teacher-forced, with the likeliest others at each."""
        return self._engine.ask(
            protocol.Score(request_id=self._id(), prompt=protocol.TokenIds(prompt_ids), token_ids=answer_ids, top=top),
            protocol.ScoreDone,
        )

    def answer(self, prompt_ids: tuple[int, ...], max_tokens: int, *, goes_on: bool = False) -> Written:
        """Write the greedy answer to a prompt.

        Args:
            prompt_ids: the prompt.
            max_tokens: where it is cut.
            goes_on: whether it goes on past its end, for measurements of a fixed length.
        """
        params = protocol.SamplingParams(temperature=0.0, seed=1, max_tokens=max_tokens, ignore_eos=goes_on)
        return self._engine.answer(
            protocol.Generate(request_id=self._id(), prompt=protocol.TokenIds(prompt_ids), params=params)
        )

    def memory(self, predicted_bytes: int | None) -> Memory:
        """Return the most that was measured since the load, by owner, beside what was predicted."""
        self._engine.read_memory()
        return msgspec.convert(memory_json(self._engine) | {"predicted_bytes": predicted_bytes}, Memory)

    def _id(self) -> protocol.RequestId:
        return protocol.RequestId(next(self._ids))
