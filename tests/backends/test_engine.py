"""The contract's defaults: an engine without requests has none to discard, and need not tell of memory."""

from __future__ import annotations

import pytest

from backends import protocol
from backends.echo_engine import EchoEngine
from backends.engine import Engine
from backends.errors import EngineError, ErrorCode


def test_an_engine_must_implement_every_method() -> None:
    with pytest.raises(TypeError):
        Engine()


def test_by_default_there_is_nothing_to_discard() -> None:
    assert Engine.discard_requests(EchoEngine()) == ()


def test_by_default_an_engine_cannot_tell_what_a_load_would_take() -> None:
    command = protocol.ProbeMemory(request_id=protocol.RequestId(1), model_path="m")
    with pytest.raises(EngineError) as caught:
        Engine.probe_memory(EchoEngine(), command, lambda _event: None)
    assert caught.value.code is ErrorCode.UNSUPPORTED_COMMAND
    assert caught.value.parameters == {"command": "ProbeMemory", "backend": "echo"}
