"""How fast this machine reads its memory: what the speed of writing is predicted from.

To write a token an engine reads every weight once, so its speed is at most the bandwidth over the bytes that a token
reads (Williams et al. 2009, the roofline model). The bandwidth is measured by a short-lived child, once a machine;
whoever asks keeps the answer under machine_key().
"""

from __future__ import annotations

import math
import os
import platform
import subprocess
import sys
from pathlib import Path

import psutil

from backends.client import child_environment

_CHILD = Path(__file__).resolve().parent / "bandwidth_child.py"
_CPU_INFO = Path("/proc/cpuinfo")

# Many times the caches, yet no burden; less where less is free.
_MOST_BYTES = 256 * 2**20
_LEAST_BYTES = 32 * 2**20
_SHARE_OF_FREE = 1 / 16
# It takes a second; on a machine that is busy or swaps, no answer is better than a late one.
LIMIT_S = 10.0


def measure_bandwidth(limit_s: float = LIMIT_S, child: Path = _CHILD) -> float:
    """Return the read bandwidth of this machine's memory in bytes/s, all cores together; blocks for about a second.

    Args:
        limit_s: how long it may take.
        child: the script that measures.

    Returns:
        0 when there is too little free memory to measure in, or the child gave no answer in time.
    """
    free_bytes = int(psutil.virtual_memory().available * _SHARE_OF_FREE)
    if free_bytes < _LEAST_BYTES:
        return 0.0
    sizes = (str(min(_MOST_BYTES, free_bytes)), str(physical_cores()))
    try:
        answer = subprocess.run(
            (sys.executable, "-I", str(child), *sizes),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=child_environment(),
            timeout=limit_s,
            check=True,
        )
        measured = float(answer.stdout)
    except (OSError, ValueError, subprocess.SubprocessError):
        return 0.0
    return measured if math.isfinite(measured) and measured > 0 else 0.0


def decode_bandwidth(read_bytes: int, tokens_per_s: float) -> float:
    """Return the bytes/s that writing really read: what an answer's measured speed says about this machine.

    Args:
        read_bytes: weights read for one token, and the KV cache where it counts.
        tokens_per_s: as measured.
    """
    return read_bytes * tokens_per_s


def physical_cores() -> int:
    """Return how many physical cores this process may use, as an engine does."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(psutil.cpu_count(logical=False) or allowed, allowed))


def machine_key() -> str:
    """Return a name for this machine under which a measurement holds: its processor, cores and memory."""
    return f"{processor_name()} · {physical_cores()} cores · {psutil.virtual_memory().total} bytes"


def processor_name(cpu_info: Path = _CPU_INFO) -> str:
    """Return the processor's name as it calls itself; the architecture where it does not say."""
    try:
        lines = cpu_info.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        name, _colon, value = line.partition(":")
        if name.strip() in {"model name", "Model", "Hardware"} and value.strip():
            return value.strip()
    return platform.processor() or platform.machine()
