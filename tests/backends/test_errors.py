"""An engine's error carries its code and what its sentence needs."""

from __future__ import annotations

from backends.errors import EngineError, ErrorCode, NoticeCode


def test_an_error_keeps_its_code_and_parameters() -> None:
    error = EngineError(ErrorCode.PROMPT_TOO_LONG, prompt_tokens=9, context_tokens=8)
    assert error.code is ErrorCode.PROMPT_TOO_LONG
    assert error.parameters == {"prompt_tokens": 9, "context_tokens": 8}


def test_codes_of_errors_and_notices_are_all_different() -> None:
    codes = [*ErrorCode, *NoticeCode]
    assert len({str(code) for code in codes}) == len(codes)
