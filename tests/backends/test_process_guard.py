"""A guarded child leaves no core file and is the first to go when memory runs out."""

from __future__ import annotations

import resource
import subprocess
import sys

from tests.conftest import ROOT

SOURCE = """
import sys; sys.path.insert(0, {root!r})
from backends import process_guard
process_guard.guard_worker({parent})
import resource
print(resource.getrlimit(resource.RLIMIT_CORE)[0], open('/proc/self/oom_score_adj').read().strip())
"""


def run(parent: str) -> subprocess.CompletedProcess[str]:
    source = SOURCE.format(root=str(ROOT), parent=parent)
    return subprocess.run([sys.executable, "-c", source], check=False, capture_output=True, text=True)


def test_a_guarded_child_writes_no_core_and_goes_first() -> None:
    assert run("__import__('os').getppid()").stdout == "0 1000\n"
    assert resource.getrlimit(resource.RLIMIT_CORE) is not None


def test_a_child_whose_parent_is_gone_already_ends_at_once() -> None:
    finished = run("999999999")
    assert (finished.returncode, finished.stdout) == (0, "")
