"""How many processors an engine may use."""

from __future__ import annotations

import os

import psutil


def physical_cores() -> int:
    """Return how many physical cores this process may use; more threads than that slow decoding down."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(psutil.cpu_count(logical=False) or allowed, allowed))
