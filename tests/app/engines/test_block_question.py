"""One question about a block at a time, and only the newest answer counts."""

from __future__ import annotations

from app.engines.block_question import BlockQuestion
from backends.client import EngineDied
from backends.protocol import BlockDescribed, DescribeBlock, EngineFailed, ModelLoaded, RequestId, TokensCounted


class Engine:
    """Takes commands, or refuses them."""

    def __init__(self) -> None:
        self.sent: list[DescribeBlock] = []
        self.is_there = True

    def send(self, command) -> bool:
        if self.is_there:
            self.sent.append(command)
        return self.is_there

    @property
    def blocks(self) -> list[int]:
        return [command.block for command in self.sent]


def answer(command: DescribeBlock) -> BlockDescribed:
    return BlockDescribed(request_id=command.request_id, block=command.block, text="words")


def test_an_answer_is_taken_once():
    engine = Engine()
    question = BlockQuestion(engine.send)
    question.ask(5)
    assert engine.blocks == [5]
    event = answer(engine.sent[0])
    assert question.take(event) is event
    assert question.take(event) is None
    assert question.take(TokensCounted(RequestId(1), 3)) is None


def test_ids_are_never_those_of_a_chats_request():
    engine = Engine()
    question = BlockQuestion(engine.send)
    for block in range(3):
        question.ask(block)
        question.take(answer(engine.sent[-1]))
    assert [command.request_id for command in engine.sent] == [-1, -2, -3]


def test_of_the_questions_that_come_meanwhile_only_the_newest_is_asked():
    engine = Engine()
    question = BlockQuestion(engine.send)
    for block in (5, 6, 7, 8):
        question.ask(block)
    assert engine.blocks == [5]
    assert question.take(answer(engine.sent[0])) is None
    assert engine.blocks == [5, 8]
    assert question.take(answer(engine.sent[1])).block == 8


def test_who_comes_back_to_the_block_that_is_asked_for_gets_its_answer():
    engine = Engine()
    question = BlockQuestion(engine.send)
    for block in (5, 6, 5):
        question.ask(block)
    assert question.take(answer(engine.sent[0])).block == 5
    assert engine.blocks == [5]


def test_a_question_that_fails_makes_room_for_the_next():
    engine = Engine()
    question = BlockQuestion(engine.send)
    question.ask(5)
    question.ask(6)
    assert question.take(EngineFailed(code="any", request_id=RequestId(77))) is None
    assert engine.blocks == [5]
    question.take(EngineFailed(code="any", request_id=engine.sent[0].request_id))
    assert engine.blocks == [5, 6]
    question.take(EngineFailed(code="any", request_id=engine.sent[1].request_id))
    assert engine.blocks == [5, 6]


def test_an_engine_that_ended_owes_no_answer():
    engine = Engine()
    question = BlockQuestion(engine.send)
    for gone in (EngineDied(None, None, (), "replaced"), ModelLoaded(backend="echo", model_path="", context_tokens=1)):
        question.ask(5)
        late = answer(engine.sent[-1])
        question.take(gone)
        assert question.take(late) is None
        question.ask(6)
        assert engine.blocks[-1] == 6
        question.take(answer(engine.sent[-1]))


def test_without_an_engine_nothing_is_open():
    engine = Engine()
    engine.is_there = False
    question = BlockQuestion(engine.send)
    question.ask(5)
    engine.is_there = True
    question.ask(6)
    assert engine.blocks == [6]
