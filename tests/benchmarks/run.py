"""Runs the benchmarks and prints their figures; `--write` puts them into RESULTS.md.

    python tests/benchmarks/run.py [--quick] [--all] [--write] [NAME ...]

Measure on a quiet machine: everything but the ratios moves with what else runs. Nothing here is a test, and no test
asserts a time.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import os
import signal
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.benchmarks import figures, measure  # noqa: E402 - found only once the tree is on sys.path

RESULTS = Path(__file__).resolve().parent / "RESULTS.md"
BEGIN, END = "<!-- figures begin: written by run.py --write -->", "<!-- figures end -->"
NAMES = (
    *("first_paint", "rest", "token_to_paint", "frame_gap", "null_sink"),
    *("stop_latency", "message_view", "store", "plots", "fit", "download", "download_window", "torch_prefix"),
    *("compare",),
)


def main() -> int:
    """Run what is asked for and return the exit code."""
    parser = argparse.ArgumentParser(description="Measure Cutaway.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; none runs all")
    parser.add_argument("--quick", action="store_true", help="very short runs, whose figures mean nothing")
    parser.add_argument("--all", action="store_true", help="print every value, not only the rows of the table")
    parser.add_argument("--write", action="store_true", help="replace the figures in RESULTS.md; needs all of them")
    asked = parser.parse_args()
    unknown = set(asked.names) - set(NAMES)
    if unknown:
        parser.error(f"there is no benchmark {', '.join(sorted(unknown))}")
    if asked.write and (asked.quick or asked.names):
        parser.error("--write takes a whole and full run")
    signal.signal(signal.SIGTERM, lambda *_arguments: sys.exit(143))  # so that the children and the screen end with us
    load_before = _load()
    found, failed = _run(asked.names or NAMES, is_quick=asked.quick)
    print("\n" + _section(found, load_before))
    if asked.all:
        print("\n".join(f"{key} = {value:.6g}" for key, value in sorted(found.items())))
    if asked.write and not failed:
        _write(_section(found, load_before))
        print(f"\nWritten to {RESULTS.name}.")
    return 1 if failed else 0


def _run(names: tuple[str, ...] | list[str], *, is_quick: bool) -> tuple[measure.Figures, list[str]]:
    """Run benchmarks one after the other; returns their figures and the names of those that failed."""
    found: measure.Figures = {}
    failed = []
    with measure.bench(is_quick=is_quick) as bench:
        for name in names:
            began_s = time.monotonic()
            try:
                found |= importlib.import_module(f"tests.benchmarks.{name}").measure(bench)
            except (RuntimeError, TimeoutError, measure.subprocess.TimeoutExpired) as error:
                failed.append(name)
                print(f"{name} failed: {error}", file=sys.stderr)
            print(f"{name}: {time.monotonic() - began_s:.0f} s", file=sys.stderr, flush=True)
    return found, failed


def _section(found: measure.Figures, load_before: float) -> str:
    """Return the figures with the conditions that they were measured under."""
    lines = [
        f"Measured on {datetime.datetime.now().astimezone():%Y-%m-%d}: {measure.machine()}.",
        f"The system's load before the run was {load_before:.1f}."
        + (" That is not a quiet machine: trust the ratios only." if load_before > measure.usable_cores() / 2 else ""),
    ]
    if "null_sink.decode_to_bare" in found and "null_sink.decode_to_peer" not in found:
        lines.append("llama-bench was not built there: see build_peers.sh.")
    tables = [figures.table(found), figures.load_table(found)]
    return "\n".join(lines) + "\n\n" + "\n\n".join(table for table in tables if table)


def _load() -> float:
    """Return how many processes wanted a core in the last minute; 0 where the system does not tell."""
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0


def _write(section: str) -> None:
    """Replace what stands between the markers of RESULTS.md."""
    before, begin, rest = RESULTS.read_text(encoding="utf-8").partition(BEGIN)
    _old, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{RESULTS.name} has lost its markers.")
    RESULTS.write_text(f"{before}{BEGIN}\n\n{section}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
