"""The engine runs out of memory: by a refused allocation or by the system's killer, and the window lives (S-42)."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.helpers.program import (
    LONG_ANSWER,
    SHORT_ANSWER,
    DrivenProgram,
    caught_loading,
    stretched,
    wait_for,
    write_settings,
)

pytestmark = pytest.mark.drill

MIB = 2**20
CGROUP_V1 = Path("/sys/fs/cgroup/memory")


@contextlib.contextmanager
def memory_group() -> Iterator[Path]:
    """A control group of one's own for memory; skips the test where there is none to be had."""
    group = CGROUP_V1 / f"cutaway-drill-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group for memory can be made here: {error.strerror}")
    try:
        yield group
    finally:
        wait_for(lambda: not (group / "cgroup.procs").read_text().split(), "the group is empty")
        group.rmdir()


def test_a_load_that_gets_no_memory_is_told_and_repeated(own_home, starter_model):
    """The limit is RLIMIT_AS, set from outside once the file is mapped: the KV cache is what does not fit any more."""
    write_settings(own_home)
    with DrivenProgram(own_home) as program:
        program.wait_ready()
        worker = caught_loading(program, starter_model)
        limit_bytes = worker.memory_info().vms + 16 * MIB
        worker.rlimit(psutil.RLIMIT_AS, (limit_bytes, limit_bytes))
        worker.resume()
        state = program.wait(lambda s: s["notices"], "a notice", stretched(15.0))
        assert "There is not enough memory" in state["notices"][0]
        assert program.ask("press", state["buttons"][0]) == {"pressed": True}  # Try again, or Restart if it died of it
        program.wait_ready()
        program.ask("send", SHORT_ANSWER)
        program.wait_answered()
        assert program.state()["notices"] == []
        assert program.quit() == 0


def test_an_engine_killed_for_memory_while_loading_is_told_and_the_next_prompt_starts_another(own_home, starter_model):
    """A real kill by the system, where it comes: a load touches all the memory that it reserves, an answer takes none.

    For a kill in the middle of an answer the stand-in is the SIGKILL of test_worker_death.
    """
    write_settings(own_home)
    with DrivenProgram(own_home) as program, memory_group() as group:
        program.wait_ready()
        worker = caught_loading(program, starter_model)
        (group / "memory.limit_in_bytes").write_text(str(8 * MIB))
        (group / "cgroup.procs").write_text(str(worker.pid))
        program.worst_gap_s = 0.0
        worker.resume()
        program.wait_notice("The system ended the engine, probably out of memory.", stretched(20.0))
        assert program.worst_gap_s < stretched(0.5)
        program.ask("new")
        program.ask("send", LONG_ANSWER)
        program.wait_writing()
        assert program.quit() == 0
