"""The engine takes what it may use and not more."""

from __future__ import annotations

import os

import psutil
import pytest

from backends.processors import physical_cores


@pytest.mark.parametrize(
    ("physical", "allowed", "expected"), [(8, 16, 8), (8, 2, 2), (None, 4, 4), (1, 1, 1), (4, 4, 4)]
)
def test_the_smaller_of_what_there_is_and_what_is_allowed(monkeypatch, physical, allowed, expected):
    monkeypatch.setattr(psutil, "cpu_count", lambda logical: physical)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(allowed)), raising=False)
    assert physical_cores() == expected


def test_a_system_that_does_not_tell_what_is_allowed(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    monkeypatch.setattr(psutil, "cpu_count", lambda logical: None)
    assert physical_cores() == 1
