"""What a child process asks of the system about itself.

Die with the parent, leave no core file, be the first to go when memory runs out. Best effort: each step is skipped
where the system does not know it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def die_with_parent(parent_pid: int) -> None:
    """Ask Linux to kill this process when the thread that started it ends; end now if it is gone already.

    The signal follows the *thread* that forked, so clients start children from a thread that lives as long as they do.
    """
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if parent_pid and os.getppid() != parent_pid:
        os._exit(0)


def leave_no_core() -> None:
    """Write no core file: it would hold a person's words."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def guard_worker(parent_pid: int) -> None:
    """Do all of it for a worker, which alone may be ended by the system when memory runs out."""
    die_with_parent(parent_pid)
    leave_no_core()
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
