"""Prompts are told apart on the wire."""

from __future__ import annotations

import msgspec
import pytest

from backends.protocol_prompts import PlainPart, Prompt, RenderedPrompt, TemplatePart, Text, TokenIds, TokenPart


@pytest.mark.parametrize(
    "prompt",
    [
        Text("a", parse_special=True),
        TokenIds((1, 2)),
        RenderedPrompt((TemplatePart("<s>"), PlainPart("<s>"), TokenPart((3,)))),
    ],
)
def test_each_kind_of_prompt_comes_back_as_what_it_was(prompt):
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(prompt), type=Prompt) == prompt
