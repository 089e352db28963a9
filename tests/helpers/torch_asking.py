"""Asks a torch engine in this process, and collects what came of each request."""

from __future__ import annotations

import dataclasses

from backends import protocol
from backends.torch_engine.engine import TorchEngine
from tests.helpers.hf_folders import smol_folder

GREEDY = protocol.SamplingParams(temperature=0, max_tokens=16)
PROMPTS = ("The sea is", "Once upon a time", "def main():", "La vie est", "1, 2, 3,")


def load(**params: object) -> tuple[TorchEngine, protocol.ModelLoaded]:
    engine = TorchEngine()
    fields = {"context_tokens": 1024, "dtype": "float32", "max_sequences": 8, "threads": 1, **params}
    command = protocol.LoadModel(str(smol_folder()), protocol.LoadParams(**fields))
    return engine, engine.load(command, lambda _event: None)


@dataclasses.dataclass
class Told:
    """What came of one request."""

    text: str = ""
    token_ids: tuple[int, ...] = ()
    chances: tuple[protocol.TokenChances, ...] = ()
    reason: protocol.StopReason | None = None
    figures: protocol.RequestFigures = dataclasses.field(default_factory=protocol.RequestFigures)


def request(number: int, prompt: str | protocol.Prompt, params=GREEDY, **fields) -> protocol.Generate:
    asked = protocol.Text(prompt) if isinstance(prompt, str) else prompt
    return protocol.Generate(request_id=protocol.RequestId(number), prompt=asked, params=params, **fields)


def finish(engine: TorchEngine) -> tuple[dict[int, Told], list[protocol.StepDone]]:
    """Step until nothing is left; return what came of each request, and the steps."""
    told: dict[int, Told] = {}
    steps = []
    while engine.has_work:
        for event in engine.step():
            take(event, told, steps)
    return told, steps


def take(event, told, steps) -> None:
    match event:
        case protocol.StepDone():
            steps.append(event)
            for piece in event.pieces:
                one = told.setdefault(piece.request_id, Told())
                one.text += piece.text
                one.token_ids += piece.token_ids
                one.chances += piece.chances
        case protocol.RequestFinished():
            one = told.setdefault(event.request_id, Told())
            one.reason, one.figures = event.stop_reason, event.figures


def ask(engine: TorchEngine, prompt: str | protocol.Prompt, params=GREEDY, **fields) -> Told:
    engine.add(request(1, prompt, params, **fields))
    return finish(engine)[0][1]


def check_pool(engine: TorchEngine) -> None:
    """Nothing is left behind."""
    parts = engine._parts
    parts.scheduler.check_invariants()
    assert parts.scheduler.pool.used == 0
