"""A worker whose echo engine can score: what its script answers is what it finds likeliest, place by place.

So two scripts are two quantizations of one model: where their answers differ, they would have chosen differently.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from app.models.entry import ModelEntry
from backends import protocol
from backends.client import WorkerCommand
from backends.echo_engine import EchoEngine, EchoScript, fail_as, prompt_bytes
from backends.scoring import RowScorer, scored_text
from tests.helpers.echo_window import entry_for
from tests.helpers.engine_client import write_script

ROOT = Path(__file__).resolve().parent.parent.parent
VOCABULARY = 256
OTHER_VOCABULARY = "of another vocabulary"  # a script whose template says so claims one
_WORKER = """\
import sys
sys.path.insert(0, {root!r})
from tests.helpers import xray_worker
xray_worker.run()
"""


class ScoringEcho(EchoEngine):
    """The echo engine, with figures."""

    def load(self, command, report):
        """Load the script; its vocabulary may be another one."""
        loaded = super().load(command, report)
        is_other = OTHER_VOCABULARY in self._script.chat_template
        return msgspec.structs.replace(loaded, tokenizer_hash="other bytes" if is_other else "bytes")

    def tokenize(self, prompt: protocol.Prompt) -> tuple[int, ...]:
        """Return the prompt's bytes."""
        return tuple(prompt_bytes(prompt))

    def score(self, command: protocol.Score) -> protocol.ScoreDone:
        """Find the script's next byte likeliest, then the one that stands there, then its neighbours."""
        fail_as(self._script.fault, "prefill")
        time.sleep(self._script.prefill_s)
        text = scored_text(command, tuple(prompt_bytes(command.prompt)), VOCABULARY, self._script.context_tokens)
        with RowScorer(command, text, VOCABULARY) as scorer:
            scorer.add(logits_of(self._script.answer.encode(), command.token_ids))
            return scorer.finish(0.1, 0.2)


def logits_of(chosen: bytes, token_ids: Sequence[int]) -> np.ndarray:
    """Return [T, 256] logits: the byte of `chosen` is likeliest, the one that stands there comes next."""
    rows = np.zeros((len(token_ids), VOCABULARY), np.float32)
    for number, token in enumerate(token_ids):
        best = chosen[number] if number < len(chosen) else token
        for distance, height in ((1, 3.0), (2, 2.0), (3, 1.0)):
            rows[number, (best + distance) % VOCABULARY] = height
        rows[number, token] = 5.0
        rows[number, best] = 7.0
    return rows


def run() -> None:
    """Be the worker."""
    import os

    from backends import registry, worker

    registry.BACKENDS["echo"] = replace(registry.BACKENDS["echo"], module=__name__, class_name="ScoringEcho")
    code = worker.main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)


def scoring_command(folder: Path) -> WorkerCommand:
    """Return the command that starts such a worker."""
    worker = folder / "backends" / "worker.py"  # told from other processes by this name
    worker.parent.mkdir(exist_ok=True)
    worker.write_text(_WORKER.format(root=str(ROOT)), encoding="utf-8")
    return WorkerCommand((sys.executable, "-I", str(worker)))


def scripted_quantization(folder: Path, name: str, quantization: str, answer: str, **script: object) -> ModelEntry:
    """Return the entry of a model that finds this answer likeliest."""
    path = write_script(folder / f"{name}-{quantization}.json", EchoScript(answer, **script))
    return entry_for(path, name, quantization=quantization, parameters_count=10**6)
