"""The contract's one default: an engine without requests has none to discard."""

from __future__ import annotations

import pytest

from backends.echo_engine import EchoEngine
from backends.engine import Engine


def test_an_engine_must_implement_every_method() -> None:
    with pytest.raises(TypeError):
        Engine()


def test_by_default_there_is_nothing_to_discard() -> None:
    assert Engine.discard_requests(EchoEngine()) == ()
