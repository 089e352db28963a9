"""`cutaway compare` with the real model: killed in each phase and gone on with; everything is asserted from outside.

The starter's own weights with a smaller KV cache stand against themselves, so that no other model is needed.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.helpers.program import ROOT, can_mount, command_line, is_gone, report, small_disk, stretched, wait_for

pytestmark = [pytest.mark.drill, pytest.mark.timeout(1800)]

PHASE_S = 120.0  # on a machine that does nothing else each takes a few seconds
RUN = "Q4_1-kv-q8_0"


class Comparison:
    """A `cutaway compare` that runs, its folder beside it; what it said stays in files."""

    def __init__(self, folder: Path, said: Path, *arguments: str) -> None:
        self.folder = folder
        self.said = said
        with said.open("wb") as out, said.with_suffix(".stderr").open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "app", "compare", *arguments],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
            )

    def wait_file(self, name: str) -> Path:
        """Wait until a file of the folder is there; fails when the program ends before."""

        def look() -> Path | None:
            assert self.process.poll() is None, self.errors
            found = self.folder / name
            return found if found.exists() else None

        return wait_for(look, name, stretched(PHASE_S))

    def worker(self) -> psutil.Process:
        """Return the worker that runs now."""

        def look() -> psutil.Process | None:
            children = psutil.Process(self.process.pid).children(recursive=True)
            return next((one for one in children if "worker.py" in " ".join(command_line(one))), None)

        return wait_for(look, "a worker", stretched(PHASE_S))

    def wait(self) -> int:
        """Wait for the end and return the exit code."""
        return self.process.wait(stretched(3 * PHASE_S))

    def kill(self) -> None:
        """End the program as the system would, and see its worker go with it."""
        worker = self.worker()
        self.process.kill()
        self.process.wait()
        wait_for(lambda: is_gone(worker), "the worker is gone")

    @property
    def errors(self) -> str:
        """What it said on standard error."""
        return self.said.with_suffix(".stderr").read_text(encoding="utf-8", errors="replace")


@contextlib.contextmanager
def comparing(folder: Path, said: Path, *arguments: str) -> Iterator[Comparison]:
    """Run a comparison; whatever happens, nothing of it is left."""
    running = Comparison(folder, said, *arguments)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait()


def begun(folder: Path, model: Path) -> tuple[str, ...]:
    """Return the arguments of a new comparison in this folder."""
    return (
        "--reference",
        str(model),
        "--kv-type",
        "q8_0",
        "--amount",
        "quick",
        "--context",
        "2048",
        "--out",
        str(folder),
    )


def found_in(folder: Path) -> dict[str, Any]:
    """Return what comparison.json says."""
    return dict(json.loads((folder / "comparison.json").read_bytes()))


def stamps(folder: Path, run_id: str) -> dict[str, int]:
    """Return when each scored window of a run was written."""
    return {path.name: path.stat().st_mtime_ns for path in (folder / "runs" / run_id).glob("window-*.npz")}


def test_killed_in_every_phase_it_goes_on_where_it_was(tmp_path, starter_model) -> None:
    folder = tmp_path / "comparison"
    with comparing(folder, tmp_path / "1", *begun(folder, starter_model)) as running:
        running.wait_file("reference/window-0001.cwin")
        running.kill()  # the program, while the reference is scored
    first = stamps(folder, "Q4_1")
    with comparing(folder, tmp_path / "2", "--resume", str(folder)) as running:
        running.wait_file(f"runs/{RUN}/window-0001.npz")
        running.worker().kill()  # the worker, while the candidate is scored
        assert running.wait() == 0
    found = found_in(folder)
    (candidate,) = found["candidates"]
    assert (found["state"], round(found["self_check"], 4)) == ("done", 0.0)
    assert "The system ended the engine" in candidate["failure"]
    assert "The system ended the engine" in running.errors
    assert (folder / "reference" / "window-0002.cwin").is_file()  # another attempt needs it
    second = stamps(folder, RUN)
    assert "window-0001.npz" in second
    with comparing(folder, tmp_path / "3", "--resume", str(folder)) as running:
        running.wait_file(f"runs/{RUN}/memory.json")
        running.kill()  # the program, between the speed rounds
    with comparing(folder, tmp_path / "4", "--resume", str(folder)) as running:
        assert running.wait() == 0, running.errors
    found = found_in(folder)
    (candidate,) = found["candidates"]
    assert (found["state"], candidate["failure"]) == ("done", "")
    assert 0 < candidate["kl_mean"] < 0.05
    assert candidate["result"]["quality"]["tokens"] == 510
    assert len(candidate["result"]["speed"]["decode_tokens_per_s"]["values"]) == 2
    assert candidate["memory"]["total_bytes"] < found["reference"]["memory"]["total_bytes"]
    assert first.items() <= stamps(folder, "Q4_1").items()  # what was measured before was not measured again
    assert second.items() <= stamps(folder, RUN).items()
    assert list((folder / "reference").iterdir()) == []
    assert (tmp_path / "4").read_text().startswith("Q4_1 · KV q8_0: ")
    report(f"took {found['took_s']} s in four attempts; KL {candidate['kl_mean']:.4f}")


@pytest.mark.skipif(not can_mount(), reason="only root can mount a small disk")
def test_a_disk_that_fills_up_is_told_and_the_comparison_goes_on_once_there_is_room(tmp_path, starter_model) -> None:
    with small_disk(tmp_path / "disk", 128 * 1024) as disk:
        folder = disk / "comparison"
        with comparing(folder, tmp_path / "1", *begun(folder, starter_model)) as running:
            running.wait_file("reference/window-0001.cwin")
            with (disk / "ballast").open("wb") as ballast, contextlib.suppress(OSError):
                while True:
                    ballast.write(bytes(2**20))
                    ballast.flush()
            assert running.wait() == 1
        assert "No space left on device" in running.errors
        assert f"--resume {folder}" in running.errors
        (disk / "ballast").unlink()
        kept = (folder / "reference" / "window-0001.cwin").stat().st_mtime_ns
        with comparing(folder, tmp_path / "2", "--resume", str(folder)) as running:
            running.wait_file(f"runs/{RUN}/window-0001.npz")
            os.kill(running.process.pid, signal.SIGINT)
            assert running.wait() == 130
        assert "Everything that was measured is kept." in running.errors
        assert (folder / "reference" / "window-0001.cwin").stat().st_mtime_ns == kept
        assert found_in(folder)["state"] == "stopped"
