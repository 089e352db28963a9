"""What a measurement asks an engine: prompts of exactly so many token ids, answers of exactly so many tokens.

The same numbers give the same requests on every engine. No prompt is ever asked twice in a load, so that no engine can
reuse what it computed before, but for the tokens that the requests of one round are to share. Knows no engine.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from backends import protocol

# Ids at both ends of a vocabulary are control tokens; words are in the middle.
_FIRST_SHARE, _LAST_SHARE = 1 / 8, 7 / 8
_SEED = 20_260


@dataclass(frozen=True, slots=True)
class Workload:
    """The requests of one round.

    Attributes:
        prompt_tokens: of each prompt.
        new_tokens: of the longest answer.
        requests: how many there are.
        shared_tokens: how many tokens all prompts of a round begin with.
        is_uneven: whether answers are of different lengths, as those of people's questions are.
    """

    prompt_tokens: int = 512
    new_tokens: int = 128
    requests: int = 1
    shared_tokens: int = 0
    is_uneven: bool = False

    @property
    def longest_tokens(self) -> int:
        """What the longest request takes, prompt and answer."""
        return self.prompt_tokens + self.new_tokens

    def answer_tokens(self, number: int) -> int:
        """Return how many tokens the answer to a request has; uneven ones take a quarter, two, three or all of it."""
        quarters = (4, 1, 3, 2)[number % 4] if self.is_uneven else 4
        return max(1, self.new_tokens * quarters // 4)


def requests_of(work: Workload, vocabulary_tokens: int, round_number: int, first_id: int) -> list[protocol.Generate]:
    """Return the requests of a round.

    Args:
        work: how many and how long.
        vocabulary_tokens: of the model.
        round_number: rounds with other numbers have other prompts.
        first_id: id of the first request; the others follow.
    """
    # Rounds differ from their first token on: nothing of an earlier one can be reused.
    shared = _ids(work.shared_tokens, vocabulary_tokens, f"{_SEED} shared {round_number}", round_number)
    made = []
    for number in range(work.requests):
        place = round_number * work.requests + number
        own = _ids(work.prompt_tokens - len(shared), vocabulary_tokens, f"{_SEED} {round_number} {number}", place)
        params = protocol.SamplingParams(
            temperature=0.0, seed=1, max_tokens=work.answer_tokens(number), ignore_eos=True
        )
        made.append(
            protocol.Generate(
                request_id=protocol.RequestId(first_id + number),
                prompt=protocol.TokenIds((*shared, *own)),
                params=params,
            )
        )
    return made


def _ids(count: int, vocabulary_tokens: int, seed: str, place: int) -> Sequence[int]:
    """Return ids that this seed alone gives; sequences of different places differ in their first id."""
    first, last = int(vocabulary_tokens * _FIRST_SHARE), int(vocabulary_tokens * _LAST_SHARE)
    width = max(1, last - first)
    draw = random.Random(seed)
    return [first + (place % width if number == 0 else draw.randrange(width)) for number in range(max(0, count))]
