"""What is special in a prompt and what is text, for a vocabulary that cuts by words."""

from __future__ import annotations

import re

import pytest

from backends import protocol
from backends.errors import EngineError
from backends.prompt_encoder import PromptEncoder

SPECIAL = {"<s>": 1, "<end>": 2}


class Words(PromptEncoder):
    """One id a word, longer than 100; the runs that were cut are remembered."""

    def __init__(self, *, adds_bos: bool) -> None:
        self.adds_bos, self.bos, self.size = adds_bos, 1, 200
        self.runs: list[tuple[str, bool]] = []
        self._split_template = lambda text: [SPECIAL.get(part, part) for part in re.split("(<s>|<end>)", text) if part]

    def tokenize(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        part = protocol.TemplatePart(text) if parse_special else protocol.PlainPart(text)
        ids = self._encode_parts([part])
        return [self.bos, *ids] if add_special and self.adds_bos else ids

    def piece(self, token: int) -> bytes:
        return b"" if token <= 2 else b"a" * (token - 100)

    def special_text(self, token: int) -> str:
        return {number: name for name, number in SPECIAL.items()}.get(token, "")

    def _encode_run(self, text: str, *, is_first: bool) -> list[int]:
        self.runs.append((text, is_first))
        return [100 + len(word) for word in text.split()]


def rendered(*parts: object) -> protocol.RenderedPrompt:
    return protocol.RenderedPrompt(parts)


def test_what_a_person_typed_stays_text_and_what_the_template_wrote_counts():
    vocabulary = Words(adds_bos=False)
    prompt = rendered(
        protocol.TemplatePart("<s>user "), protocol.PlainPart("say <end> now"), protocol.TemplatePart("<end>")
    )
    assert vocabulary.encode(prompt) == [1, 104, 103, 105, 103, 2]


def test_text_between_special_tokens_is_cut_as_a_whole():
    vocabulary = Words(adds_bos=False)
    vocabulary.encode(rendered(protocol.TemplatePart("a"), protocol.PlainPart("b c"), protocol.TemplatePart("d<end>e")))
    assert vocabulary.runs == [("ab cd", True), ("e", False)]


def test_known_ids_stay_as_they_are():
    vocabulary = Words(adds_bos=False)
    assert vocabulary.encode(
        rendered(protocol.PlainPart("ab"), protocol.TokenPart((7, 8)), protocol.PlainPart("abc"))
    ) == [
        102,
        7,
        8,
        103,
    ]
    assert vocabulary.encode(protocol.TokenIds((5, 6))) == [5, 6]


@pytest.mark.parametrize(("adds_bos", "expected"), [(True, [1, 102]), (False, [102])])
def test_the_beginning_is_added_where_the_model_wants_it(adds_bos, expected):
    vocabulary = Words(adds_bos=adds_bos)
    assert vocabulary.encode(rendered(protocol.PlainPart("ab"))) == expected
    assert vocabulary.encode(protocol.Text("ab")) == expected
    assert vocabulary.encode(rendered(protocol.TemplatePart("<s>"), protocol.PlainPart("ab"))) == [1, 102]


def test_raw_text_is_special_only_where_that_is_asked():
    vocabulary = Words(adds_bos=False)
    assert vocabulary.encode(protocol.Text("<end>")) == [105]
    assert vocabulary.encode(protocol.Text("<end>", parse_special=True)) == [2]


def test_a_token_is_its_bytes_or_its_name():
    vocabulary = Words(adds_bos=False)

    assert vocabulary.token_bytes([103, 2, 101]) == (b"aaa", b"<end>", b"a")
    for stranger in (-1, 200):
        with pytest.raises(EngineError, match="bad_params"):
            vocabulary.token_bytes([stranger])
