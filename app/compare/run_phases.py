"""The phases of one run: windows, answers, multiple-choice questions. Each goes on where the folder says it stands.

What was measured is written at once, piece by piece; a phase that ends early loses the piece under way and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from app.bench.engine_run import EngineRefusedError
from app.compare.folder import ComparisonFolder
from app.compare.plan import PromptSpec
from app.compare.results import Answer, AnswerToken
from app.compare.run_files import Material
from app.compare.run_worker import RunWorker
from app.compare.token_scores import TokenScores
from backends import protocol
from backends.errors import ErrorCode

TOP = 5  # of the likeliest tokens that are kept at each place of an answer

WINDOWS, ANSWERS, CHOICES = "windows", "answers", "choices"

Tell = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class RunPhases:
    """One run at work.

    Attributes:
        folder: where everything is kept.
        material: what the run is given.
        worker: with the run's model loaded.
        run_id: under which name it is kept; that of the plan, or NOISE_FLOOR_RUN.
        tell: takes a phase's name, what is done of it, and of how many.
    """

    folder: ComparisonFolder
    material: Material
    worker: RunWorker
    run_id: str
    tell: Tell

    # ---------------------------------------------------------------------------------------- windows

    def write_windows(self, keep_top: int, needed: Sequence[int]) -> None:
        """Score the reference's windows: those that are needed are written, and those not scored yet.

        Args:
            keep_top: how many of the likeliest tokens of each row are written; 0 for all.
            needed: the windows that a run is still to be compared with.
        """
        done = set(self.folder.windows_done(self.run_id))
        total = len(self.material.windows)
        for number, window in enumerate(self.material.windows):
            is_missing = number in needed and not self.folder.has_reference(number)
            if is_missing or number not in done:
                self.tell(WINDOWS, number, total)
                path = str(self.folder.reference_path(number)) if is_missing else ""
                event = self.worker.score_window(window.token_ids, write_path=path, keep_top=keep_top)
                if number not in done:
                    self._keep(number, event)
        self.tell(WINDOWS, total, total)

    def check_self(self) -> float:
        """Return the mean KL of the reference against its own first window as it was written, nats."""
        path = str(self.folder.reference_path(0))
        event = self.worker.score_window(self.material.windows[0].token_ids, reference_path=path)
        kl = np.frombuffer(event.kl, "<f4")[np.frombuffer(event.non_finite, np.uint8) == 0]
        return float(kl.astype(np.float64).mean()) if len(kl) else 0.0

    def score_windows(self) -> None:
        """Score what is not scored yet against the reference's windows.

        A window that cannot be read is deleted: the next attempt has the reference write it anew.
        """
        done = set(self.folder.windows_done(self.run_id))
        total = len(self.material.windows)
        for number, window in enumerate(self.material.windows):
            if number in done:
                continue
            self.tell(WINDOWS, number, total)
            path = self.folder.reference_path(number)
            try:
                event = self.worker.score_window(window.token_ids, reference_path=str(path))
            except EngineRefusedError as error:
                if error.code == ErrorCode.REFERENCE_UNREADABLE:
                    path.unlink(missing_ok=True)
                raise
            self._keep(number, event)
        self.tell(WINDOWS, total, total)

    def _keep(self, number: int, event: protocol.ScoreDone) -> None:
        self.folder.save_scores(self.run_id, number, TokenScores.from_events([event], first_window=number))

    # ---------------------------------------------------------------------------------------- answers

    def write_answers(self, prompts: Sequence[PromptSpec], reference: Sequence[Answer]) -> None:
        """Answer the prompts greedily, and read the reference's answers with this run's eyes.

        A scoring before each answer empties the context, so that every answer begins in an empty one.

        Args:
            prompts: of the plan.
            reference: the reference's answers; empty when this run is the reference.
        """
        found = list(self.folder.answers(self.run_id))
        for number in range(len(found), len(prompts)):
            self.tell(ANSWERS, number, len(prompts))
            prompt, tokens = prompts[number], self.material.prompts[number]
            written = self.worker.answer(tokens.token_ids, prompt.max_tokens)
            against = reference[number].token_ids if reference else written.token_ids
            agreed, forced = self._forced(tokens.token_ids, against)
            found.append(
                Answer(
                    prompt_id=prompt.prompt_id,
                    text=written.text,
                    token_ids=written.token_ids,
                    first_divergence=first_divergence(written.token_ids, against),
                    agreed=agreed,
                    forced=forced,
                )
            )
            self.folder.save(self.run_id, "answers", tuple(found))
        self.tell(ANSWERS, len(prompts), len(prompts))

    def _forced(self, prompt_ids: tuple[int, ...], ids: tuple[int, ...]) -> tuple[int, tuple[AnswerToken, ...]]:
        """Return how many tokens of an answer this run would have chosen too, and what it found likely at each."""
        if not ids:
            return 0, ()
        event = self.worker.score_answer(prompt_ids, ids, TOP)
        best = np.frombuffer(event.best_ids, "<i4")
        top_ids = np.frombuffer(event.top_ids, "<i4").reshape(len(ids), -1)
        chances = np.exp(np.frombuffer(event.top_logprobs, "<f4").reshape(len(ids), -1).astype(np.float64))
        known = sorted({*ids, *top_ids.ravel().tolist()})
        texts = dict(zip(known, self.worker.texts_of(known), strict=True))
        forced = tuple(
            AnswerToken(
                token_id=token_id,
                text=texts[token_id],
                top=tuple(
                    (texts[other], round(chance, 6)) for other, chance in zip(row.tolist(), odds.tolist(), strict=True)
                ),
            )
            for token_id, row, odds in zip(ids, top_ids, chances, strict=True)
        )
        return int((best == np.asarray(ids, np.int32)).sum()), forced

    # ---------------------------------------------------------------------------------------- choices

    def choose(self) -> None:
        """Choose the likeliest answer to each question, by the log-probability of its text per byte."""
        picks = list(self.folder.picks(self.run_id))
        total = len(self.material.choices)
        for number in range(len(picks), total):
            self.tell(CHOICES, number, total)
            choice = self.material.choices[number]
            odds = []
            for answer, size_bytes in zip(choice.answers, choice.answer_bytes, strict=True):
                event = self.worker.score_answer(choice.question_ids, answer, top=0)
                logprob = float(np.frombuffer(event.logprobs, "<f4").astype(np.float64).sum())
                is_finite = not any(event.non_finite) and np.isfinite(logprob)
                odds.append(logprob / size_bytes if is_finite else -np.inf)
            picks.append(int(np.argmax(odds)))
            self.folder.save(self.run_id, "choices", tuple(picks))
        self.tell(CHOICES, total, total)


def first_divergence(ids: Sequence[int], reference: Sequence[int]) -> int | None:
    """Return the place of the first token that is another one; where one answer goes on longer, its next token."""
    for place, (one, other) in enumerate(zip(ids, reference, strict=False)):
        if one != other:
            return place
    return None if len(ids) == len(reference) else min(len(ids), len(reference))
