"""What a sampled token does to a request: text, ids and chances go out together, and every end has its reason."""

from __future__ import annotations

import pytest

from backends import protocol
from backends.protocol import StopReason, TokenChance, TokenChances
from backends.torch_engine.answer import Answer, with_texts
from backends.torch_engine.sampler_state import SamplerState
from backends.torch_engine.sequence import Sequence

PIECES = {0: b"", 1: b"Hi", 2: b" there", 3: "é".encode()[:1], 4: "é".encode()[1:], 5: b"###"}
END = 0


class FewWords:
    """A vocabulary of six tokens."""

    def piece(self, token: int) -> bytes:
        return PIECES[token]

    def ends_text(self, token: int) -> bool:
        return token == END

    def special_text(self, token: int) -> str:
        return "<end>" if token == END else ""


@pytest.fixture
def make():
    def make(**params: object) -> Answer:
        asked = protocol.SamplingParams(**params)
        request = protocol.Generate(request_id=protocol.RequestId(7), prompt=protocol.Text("x"), params=asked)
        return Answer(Sequence(request, [9]), SamplerState(asked, [9]))

    return make


def chances(token: int) -> TokenChances:
    return TokenChances(TokenChance(token, "", -0.5), (TokenChance(token, "", -0.5), TokenChance(END, "", -1.5)))


def test_a_token_goes_out_with_its_text_and_chances(make):
    answer = make()
    piece, reason = answer.take(1, chances(1), FewWords())
    assert (piece.text, piece.token_ids, reason) == ("Hi", (1,), None)
    assert piece.chances[0].chosen == TokenChance(1, "Hi", -0.5)
    assert piece.chances[0].top[1].text == "<end>"
    assert answer.sequence.known == [9, 1]


def test_half_a_character_waits_for_its_other_half_with_its_chances(make):
    answer = make()
    assert answer.take(3, chances(3), FewWords()) == (None, None)
    piece, _reason = answer.take(4, chances(4), FewWords())
    assert (piece.text, piece.token_ids) == ("é", (3, 4))
    assert [one.chosen.token_id for one in piece.chances] == [3, 4]


def test_what_was_held_back_comes_at_the_end(make):
    answer = make(stop=("there!",))
    piece, _reason = answer.take(2, None, FewWords())
    assert piece.text == " "
    assert answer.rest().text == "there"
    assert answer.rest() is None


@pytest.mark.parametrize(
    ("params", "tokens", "expected"),
    [
        ({}, [1, END], StopReason.END_OF_TEXT),
        ({"max_tokens": 2}, [1, 2], StopReason.MAX_TOKENS),
        ({"stop": ("###",)}, [1, 5], StopReason.STOP_STRING),
        ({"max_tokens": 2, "ignore_eos": True}, [END, END], StopReason.MAX_TOKENS),
    ],
)
def test_every_end_has_its_reason(make, params, tokens, expected):
    answer = make(**params)
    reasons = [answer.take(token, None, FewWords())[1] for token in tokens]
    assert reasons == [None, expected]


def test_the_end_of_the_text_joins_no_sequence(make):
    answer = make()
    answer.take(END, None, FewWords())
    assert answer.sequence.known == [9]


def test_half_a_character_shows_as_a_mark():
    assert with_texts(chances(3), FewWords()).chosen.text == "\ufffd"
