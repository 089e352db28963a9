"""The child that reads a grammar says what is wrong, and nothing for a sound one."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest

from backends.errors import EngineError
from backends.torch_engine import grammar_check
from backends.torch_engine.grammar import check_grammar


def checked(text: str, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """Run the child's main in this process, with its bounds left out, which could not be lifted again."""
    told = io.BytesIO()
    monkeypatch.setattr(grammar_check, "_be_modest", lambda: None)
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=told))
    assert grammar_check.main() == 0
    return told.getvalue()


def test_a_sound_grammar_gives_no_word(monkeypatch) -> None:
    assert checked("start: /[a-z]/ x\nx: /é/", monkeypatch) == b""


def test_what_is_wrong_is_told(monkeypatch) -> None:
    assert b"nowhere" in checked("start: nowhere", monkeypatch)


def test_the_child_works_by_itself_and_its_words_are_passed_on() -> None:
    check_grammar("start: /a/", 60)
    with pytest.raises(EngineError) as caught:
        check_grammar("start: nowhere", 60)
    assert "nowhere" in str(caught.value.parameters["detail"])
