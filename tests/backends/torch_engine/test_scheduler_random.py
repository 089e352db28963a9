"""Random requests, steps, aborts, forks, roll backs and broken steps; whatever happens, every answer is its own."""

from __future__ import annotations

import random

import pytest

from backends.torch_engine.sequence import Sequence
from tests.helpers.fake_model import VOCABULARY, FakeEngine, alone


class Story:
    """One run of random operations over a small pool, where everything collides."""

    def __init__(self, seed: int) -> None:
        self.draw = draw = random.Random(seed)
        self.engine = FakeEngine(
            draw.choice((6, 10, 10, 24, 60)),
            block_tokens=draw.choice((1, 2, 4, 4)),
            token_budget=draw.choice((1, 5, 16, 64)),
            max_sequences=draw.choice((1, 3, 5)),
            keeps=draw.random() < 0.9,
        )
        self.beginnings = [[draw.randrange(VOCABULARY) for _ in range(draw.randrange(1, 20))] for _ in range(3)]
        self.asked: dict[int, tuple[list[int], int, int]] = {}  # number -> prompt, new tokens, seed
        self.aborted: set[int] = set()
        self.rolled_back = 0

    def add(self) -> None:
        draw = self.draw
        beginning = draw.choice(self.beginnings)
        prompt = beginning[: draw.randrange(1, len(beginning) + 1)]
        prompt = prompt + [draw.randrange(2) for _ in range(draw.randrange(3))]
        new_tokens, seed = draw.randrange(1, 12), draw.randrange(3)
        salt = draw.choice((b"", b"", b"", b"other"))
        sequence = self.engine.add(prompt, new_tokens, seed, draw.choice((0, 0, 1, 5)), salt)
        self.asked[sequence.request.request_id] = (prompt, new_tokens, seed)

    def fork(self) -> None:
        parents = [sequence for sequence in self.everyone() if sequence.scheduled == sequence.computed]
        parents = [sequence for sequence in parents if sequence.new_tokens < (sequence.request.params.max_tokens or 0)]
        if not parents:
            return
        parent = self.draw.choice(parents)
        prompt, new_tokens, seed = self.asked[parent.request.request_id]
        child = self.engine.scheduler.fork(parent, self.engine.request(new_tokens, seed, self.draw.choice((0, 2))))
        self.asked[child.request.request_id] = (prompt, new_tokens, seed)

    def abort(self) -> None:
        if everyone := self.everyone():
            sequence = self.draw.choice(everyone)
            self.aborted.add(sequence.request.request_id)
            self.engine.scheduler.remove(sequence, keep=self.draw.random() < 0.7)

    def roll_back(self) -> None:
        running = [s for s in self.engine.scheduler.running if s.scheduled == s.computed and s.computed]
        if running:
            sequence = self.draw.choice(running)
            self.engine.scheduler.roll_back(sequence, self.draw.randrange(sequence.computed))
            self.rolled_back += 1

    def break_off(self) -> None:
        if self.engine.model.in_flight:
            self.engine.break_off(self.draw.randrange(4))

    def land(self) -> None:
        if self.engine.model.in_flight:
            self.engine.land()

    def plan(self) -> None:
        if len(self.engine.model.in_flight) < 3:
            self.engine.plan()

    def everyone(self) -> list[Sequence]:
        return [*self.engine.scheduler.running, *self.engine.scheduler.waiting]

    def tell(self, operations: int) -> None:
        moves = [self.add, self.plan, self.land, self.fork, self.abort, self.roll_back, self.break_off]
        weights = [8, 20, 18, 2, 2, 2, 2]
        for move in self.draw.choices(moves, weights, k=operations):
            move()
            self.engine.scheduler.check_invariants()
        self.engine.run()

    def check(self) -> None:
        said, starved = self.engine.said, set(self.engine.starved)
        for number, (prompt, new_tokens, seed) in self.asked.items():
            if number in said:
                assert said[number] == alone(prompt, new_tokens, seed), f"request {number}"
            else:
                assert number in self.aborted | starved, f"request {number} was forgotten"
            if number in starved:
                needed = self.engine.pool.blocks_for(len(prompt) + new_tokens)
                assert needed > self.engine.pool.blocks, f"request {number} would have fitted"
        assert self.engine.pool.used == 0
        assert self.engine.pool.available == self.engine.pool.blocks


@pytest.mark.parametrize("seed", range(40))
def test_whatever_happens_every_answer_is_what_it_is_alone(seed: int) -> None:
    story = Story(seed)
    story.tell(200)
    story.check()


@pytest.mark.full
@pytest.mark.parametrize("seed", range(1000, 1300))
def test_whatever_happens_over_a_long_time_every_answer_is_what_it_is_alone(seed: int) -> None:
    story = Story(seed)
    story.tell(2_000)
    story.check()


def test_the_stories_have_everything_in_them() -> None:
    """Otherwise the tests above would prove little."""
    stories = [Story(seed) for seed in range(12)]
    for story in stories:
        story.tell(200)
    assert sum(story.engine.preempted for story in stories) > 10
    assert sum(story.rolled_back for story in stories) > 10
    assert sum(len(story.engine.said) for story in stories) > 100
    assert sum(len(story.engine.starved) for story in stories) > 0
