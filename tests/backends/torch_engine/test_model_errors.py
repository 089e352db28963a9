"""What libraries raise over a lying model becomes one worded error; our own mistakes stay what they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers import Tokenizer

from backends.errors import EngineError, ErrorCode
from backends.torch_engine.model_errors import ForeignErrors, short_reason

MODEL = Path("/models/one")


@pytest.mark.parametrize("error", [KeyError("x"), ValueError("bad\nvalue"), ZeroDivisionError(), OSError(2, "no")])
def test_a_librarys_error_keeps_its_reason_on_one_line(error) -> None:
    with pytest.raises(EngineError) as caught, ForeignErrors(MODEL, "its config is odd"):
        raise error
    assert caught.value.code is ErrorCode.LOAD_FAILED
    detail = str(caught.value.parameters["detail"])
    assert detail.startswith("its config is odd: ")
    assert "\n" not in detail


def test_what_tokenizers_raises_is_caught_although_it_is_exception_itself() -> None:
    with pytest.raises(EngineError), ForeignErrors(MODEL, "its tokenizer is odd"):
        Tokenizer.from_str("{}")


def test_memory_is_told_apart() -> None:
    for error in (MemoryError(), RuntimeError("can't allocate memory: you tried to allocate 9 bytes")):
        with pytest.raises(EngineError) as caught, ForeignErrors(MODEL, "x"):
            raise error
        assert caught.value.code is ErrorCode.OUT_OF_MEMORY


def test_an_engine_error_and_a_stop_pass() -> None:
    for error in (EngineError(ErrorCode.NO_MODEL), KeyboardInterrupt(), StopIteration()):
        with pytest.raises(type(error)) as caught, ForeignErrors(MODEL, "x"):
            raise error
        assert caught.value is error


def test_a_reason_is_short_and_plain() -> None:
    assert len(short_reason(ValueError("ä" * 1_000))) <= 200
    assert short_reason(ValueError("ä" * 1_000)).isascii() or short_reason(ValueError("ä" * 1_000)).endswith("…")
    assert short_reason(ValueError()) == "ValueError"
