"""Scores windows of a text with models in workers, as a comparison does, and without its runner."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from app.compare import statistics, windows
from app.compare.plan import FIRST_SCORED, WINDOW_TOKENS
from app.compare.results import Quality
from app.compare.token_scores import TokenScores
from backends import protocol
from tests.helpers.engine_client import LoggedClient

# A batch of one window and one thread: small models gain nothing by more, and other tests run beside.
ENGINE = protocol.LoadParams(
    context_tokens=WINDOW_TOKENS, batch_tokens=WINDOW_TOKENS, micro_batch_tokens=WINDOW_TOKENS, threads=1
)


class WindowScorer:
    """A reference's windows on disk, with which candidates are compared.

    Attributes:
        windows: their token ids, cut by the reference's vocabulary.
        reference: the reference's own figures.
    """

    def __init__(self, folder: Path, reference: Path, text: str, count: int, span_nats: float = 24.0) -> None:
        self._folder = folder
        self._span_nats = span_nats
        with LoggedClient("llama_cpp", folder / "reference.log") as worker:
            worker.load(reference, ENGINE)
            token_ids, nothing = tokenize(worker, text), tokenize(worker, "")
            self.windows = windows.cut(token_ids, count, windows.bos_of(nothing, token_ids))
            self.reference = self._score(worker, is_reference=True)

    def scores(self, candidate: Path) -> TokenScores:
        """Return what a candidate says of each token."""
        with LoggedClient("llama_cpp", self._folder / f"{candidate.stem}.log") as worker:
            worker.load(candidate, ENGINE)
            return self._score(worker, is_reference=False)

    def quality(self, candidate: Path) -> Quality:
        """Return how near a candidate is."""
        found = statistics.quality(self.scores(candidate))
        assert found is not None
        return found

    def _score(self, worker: LoggedClient, *, is_reference: bool) -> TokenScores:
        done = []
        for number, window in enumerate(self.windows):
            place = str(self._folder / f"{number}.cwin")
            done.append(
                score(
                    worker,
                    window,
                    FIRST_SCORED,
                    write_path=place if is_reference else "",
                    reference_path="" if is_reference else place,
                    span_nats=self._span_nats,
                )
            )
        return TokenScores.from_events(done)


def score(
    worker: LoggedClient,
    token_ids: Sequence[int],
    first_scored: int,
    write_path: str = "",
    reference_path: str = "",
    span_nats: float = 24.0,
) -> protocol.ScoreDone:
    """Score one window and wait for it; raises the engine's refusal as AssertionError."""
    command = protocol.Score(
        request_id=_next_id(worker),
        token_ids=tuple(token_ids),
        first_scored=first_scored,
        write_path=write_path,
        reference_path=reference_path,
        span_nats=span_nats,
    )
    worker.client.send(command)
    answer = (protocol.ScoreDone, protocol.EngineFailed)
    event = worker.wait(answer, lambda one: one.request_id == command.request_id)  # type: ignore[arg-type]
    assert isinstance(event, protocol.ScoreDone), event
    return event


def tokenize(worker: LoggedClient, text: str) -> tuple[int, ...]:
    """Return the ids that the loaded model's vocabulary gives a text, with what it adds to every text."""
    request_id = _next_id(worker)
    worker.client.send(protocol.Tokenize(request_id, protocol.Text(text)))
    return worker.wait(protocol.Tokenized, lambda one: one.request_id == request_id).token_ids


def _next_id(worker: LoggedClient) -> protocol.RequestId:
    return protocol.RequestId(1 + len(worker.of(protocol.ScoreDone)) + len(worker.of(protocol.Tokenized)))
