"""A worker whose engine scores without a model, and a comparison's plan for it.

The "model" is a file with a FakeModel: a vocabulary of bytes, logits that are a pure function of the last tokens, moved
away from the reference's by `noise`. Deaths can be scripted at any piece of work. Windows are written as numpy files.
"""

from __future__ import annotations

import os
import signal
import sys
import zlib
from pathlib import Path

import msgspec
import numpy as np

from app.compare.plan import ChoiceSpec, ComparisonPlan, PromptSpec, RunSpec, SpeedSpec, TextSpec, WorkloadSpec
from app.compare.run_worker import RunnerServices
from backends import protocol, registry
from backends.client import WorkerCommand
from backends.echo_engine import EchoEngine, prompt_bytes
from backends.errors import EngineError, ErrorCode
from backends.renderer_client import RendererClient

ROOT = Path(__file__).resolve().parent.parent.parent
VOCABULARY = 256
TEXT = " ".join(f"{number} is a number, and {number * number} is its square." for number in range(80))


class FakeModel(msgspec.Struct, frozen=True):
    """A model of this worker.

    Attributes:
        noise: how far its logits lie from the reference's.
        fault: "kill" or a code of ErrorCode; "" for none.
        fault_at: at which command of the fault's kind, from 0.
        fault_kind: "load", "score", "compare", "answer".
        fault_once: a file that is there once the fault has happened: then it does not happen again.
        can_score: what the engine says of itself.
        tokenizer_hash, architecture, parameters_count, context_tokens: as the engine tells them.
    """

    noise: float = 0.0
    fault: str = ""
    fault_at: int = 0
    fault_kind: str = "score"
    fault_once: str = ""
    tokenizer_hash: str = "bytes"
    architecture: str = "fake"
    parameters_count: int = 1000
    context_tokens: int = 8192
    can_score: bool = True


class ScoringEngine(EchoEngine):
    """The echo engine with a FakeModel behind its answers and scores."""

    def load(self, command: protocol.LoadModel, report) -> protocol.ModelLoaded:
        self._model = msgspec.json.decode(Path(command.model_path).read_bytes(), type=FakeModel)
        self._counts: dict[str, int] = {}
        self._fail("load")
        loaded = super().load(protocol.LoadModel("", command.params), report)
        self._noise = self._model.noise + (0.001 if command.params.micro_batch_tokens != 512 else 0.0)
        return msgspec.structs.replace(
            loaded,
            model_path=command.model_path,
            tokenizer_hash=self._model.tokenizer_hash,
            architecture=self._model.architecture,
            parameters_count=self._model.parameters_count,
            context_tokens=min(command.params.context_tokens or 8192, self._model.context_tokens),
            threads=command.params.threads or 2,
            chat_template="",
            capabilities=protocol.Capabilities(can_score=self._model.can_score),
        )

    def add(self, request: protocol.Generate) -> None:
        self._fail("answer")
        super().add(request)
        # greedy: the likeliest byte after each
        state = self._requests[-1]
        ids = list(state.prompt)
        for _number in range(request.params.max_tokens or 8):
            ids.append(int(self._logits(ids[-4:]).argmax()))
        state.answer = bytes(ids[state.prompt_tokens :])

    def tokenize(self, prompt: protocol.Prompt) -> tuple[int, ...]:
        return tuple(prompt_bytes(prompt))

    def score(self, command: protocol.Score) -> protocol.ScoreDone:
        self._fail("compare" if command.reference_path else "score")
        ids = [*(prompt_bytes(command.prompt) if command.prompt else b""), *command.token_ids]
        first = len(ids) - len(command.token_ids) - 1 if command.prompt else command.first_scored
        rows = np.stack([self._logits(ids[max(0, at - 3) : at + 1]) for at in range(first, len(ids) - 1)])
        logprobs = rows - np.log(np.exp(rows).sum(1, keepdims=True))
        targets = np.asarray(ids[first + 1 :])
        at = np.arange(len(targets))
        top = np.argsort(-logprobs, axis=1)[:, : command.top]
        done = protocol.ScoreDone(
            request_id=command.request_id,
            token_ids=targets.astype("<i4").tobytes(),
            logprobs=logprobs[at, targets].astype("<f4").tobytes(),
            best_ids=logprobs.argmax(1).astype("<i4").tobytes(),
            non_finite=bytes(len(targets)),
            top_ids=top.astype("<i4").tobytes(),
            top_logprobs=np.take_along_axis(logprobs, top, 1).astype("<f4").tobytes(),
            prefill_s=0.001,
            score_s=0.001,
        )
        if command.write_path:
            part = Path(command.write_path + ".part")
            try:
                part.write_bytes(logprobs.astype("<f8").tobytes())
            except OSError as error:
                part.unlink(missing_ok=True)
                raise EngineError(
                    ErrorCode.WRITE_FAILED, path=command.write_path, detail=str(error.strerror)
                ) from error
            part.replace(command.write_path)
        return self._compared(done, command, logprobs, targets) if command.reference_path else done

    def _compared(self, done, command, logprobs, targets) -> protocol.ScoreDone:
        data = Path(command.reference_path).read_bytes()
        if len(data) != logprobs.size * 8:
            raise EngineError(ErrorCode.REFERENCE_UNREADABLE, path=command.reference_path, detail="it is cut off")
        theirs = np.frombuffer(data, "<f8").reshape(logprobs.shape)
        kl = (np.exp(theirs) * (theirs - logprobs)).sum(1)
        return msgspec.structs.replace(
            done,
            reference_logprobs=theirs[np.arange(len(targets)), targets].astype("<f4").tobytes(),
            reference_best_ids=theirs.argmax(1).astype("<i4").tobytes(),
            kl=np.abs(kl).astype("<f4").tobytes(),
            cosine=np.ones(len(targets), "<f4").tobytes(),
        )

    def _logits(self, last) -> np.ndarray:
        seed = zlib.crc32(bytes(last))
        base = np.random.default_rng(seed).normal(0, 2, VOCABULARY)
        moved = np.random.default_rng(seed + 1).normal(0, 1, VOCABULARY)
        return base + self._noise * moved

    def _fail(self, kind: str) -> None:
        model = self._model
        number = self._counts.get(kind, 0)
        self._counts[kind] = number + 1
        if not model.fault or model.fault_kind != kind or number != model.fault_at:
            return
        if model.fault_once:
            if Path(model.fault_once).exists():
                return
            Path(model.fault_once).touch()
        if model.fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise EngineError(ErrorCode(model.fault), path="x", detail="scripted")


def worker_command() -> WorkerCommand:
    """Return what starts this worker."""
    script = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from tests.helpers.scoring_worker import main; main()"
    return WorkerCommand((sys.executable, "-c", script))


def main() -> None:
    """Be the worker."""
    from backends import worker

    registry.create_engine = lambda _name: ScoringEngine()
    code = worker.main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)


# ------------------------------------------------------------------------------------------- a comparison


def write_model(path: Path, model: FakeModel) -> str:
    """Write a model's file and return its path."""
    path.write_bytes(msgspec.json.encode(model))
    return str(path)


def make_plan(folder: Path, **models: FakeModel) -> ComparisonPlan:
    """Return a plan: 3 windows, 2 prompts, 2 choices, 2 rounds; a reference and these candidates."""
    reference = RunSpec(
        run_id="F16",
        label="F16",
        path=write_model(folder / "f16.json", models.pop("reference", FakeModel())),
        backend="echo",
        size_bytes=1000,
        bits_per_weight=16.0,
    )
    candidates = tuple(
        RunSpec(
            run_id=name,
            label=name,
            path=write_model(folder / f"{name}.json", model),
            backend="echo",
            size_bytes=900 - 100 * number,
            bits_per_weight=8.0 - number,
        )
        for number, (name, model) in enumerate(models.items())
    )
    workload = WorkloadSpec(
        amount="quick",
        texts=(TextSpec(text_id="numbers", windows=2), TextSpec(text_id="more", windows=1)),
        prompts=(
            PromptSpec(prompt_id="a", text="How?", max_tokens=6),
            PromptSpec(prompt_id="b", text="Why?", max_tokens=4),
        ),
        choices=(
            ChoiceSpec(choice_id="one", question="1 + 1 =", answers=(" 2", " 3"), right=0),
            ChoiceSpec(choice_id="two", question="2 + 2 =", answers=(" five", " 4"), right=1),
        ),
        speed=SpeedSpec(prompt_tokens=8, new_tokens=4, rounds=2),
        context_tokens=2048,
    )
    return ComparisonPlan(
        comparison_id="test", created_s=1.0, title="Fake", reference=reference, candidates=candidates, workload=workload
    )


def make_services(folder: Path, renderer: RendererClient | None = None, **changes) -> RunnerServices:
    """Return services with this worker; the texts are numbers."""
    return RunnerServices(
        open_log=lambda: folder / "worker.log",
        renderer=renderer or RendererClient(),
        read_text=lambda _spec: TEXT,
        command=worker_command(),
        **changes,
    )
