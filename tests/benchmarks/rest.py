"""What the window's process holds while nothing happens: a model is loaded, plots folded away and open.

The process is the whole program as a person runs it; its worker, which holds the model, is a process of its own and is
not counted. RSS counts shared libraries whole, USS only what would come back if the program ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil

from tests.benchmarks.measure import Bench, Figures, tell

_SETTLE_S = 3.0
_MB = 1e6


def measure(bench: Bench) -> Figures:
    """Return RSS and USS in MB, folded and open, and whether the hub client is imported."""
    return bench.child("rest")


def by_owner() -> Figures:
    """Return this process's RSS by where it comes from, in MB: whose library's files, the heap, other memory."""
    owners = {
        "qt": ("PySide6", "shiboken6"),
        "numpy": ("numpy", "openblas"),
        "python": ("python",),
        "heap": ("[heap]",),
    }
    held: dict[str, float] = {}
    owner = ""
    for line in Path("/proc/self/smaps").read_text(encoding="utf-8", errors="replace").splitlines():
        name, _colon, rest = line.partition(":")
        if "-" in name.partition(" ")[0] and " " in name:  # a mapping begins
            fields = line.split(maxsplit=5)
            path = fields[5] if len(fields) > 5 else ""
            owner = next((key for key, marks in owners.items() if any(mark in path for mark in marks)), "")
            owner = owner or ("anonymous" if not path else "other")
        elif name == "Rss":
            held[owner] = held.get(owner, 0.0) + int(rest.split()[0]) * 1024 / _MB
    return {f"rest.rss_of_{key}_mb": value for key, value in sorted(held.items())}


def _child() -> None:
    import sys

    from tests.benchmarks import window

    found: Figures = {}

    def note(state: str) -> None:
        memory = psutil.Process().memory_full_info()
        found[f"rest.{state}_rss_mb"] = memory.rss / _MB
        found[f"rest.{state}_uss_mb"] = memory.uss / _MB

    def scenario(stage: window.Stage) -> Iterator[window.Wait]:
        yield stage.is_ready
        stage.fold(True)
        yield _SETTLE_S
        note("folded")
        stage.fold(False)
        yield _SETTLE_S
        note("open")
        found.update(by_owner())
        stage.fix_params(64)
        yield from stage.answer()
        yield _SETTLE_S
        note("after_answer")
        found["rest.hub_imported"] = float("huggingface_hub" in sys.modules)

    window.run(scenario)
    tell(found)


if __name__ == "__main__":
    _child()
