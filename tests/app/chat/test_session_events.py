"""Session events are plain data."""

from __future__ import annotations

import dataclasses
import typing

from app.chat import session_events


def test_every_event_is_frozen() -> None:
    for kind in typing.get_args(session_events.SessionEvent):
        assert kind.__dataclass_params__.frozen
        assert dataclasses.is_dataclass(kind)
