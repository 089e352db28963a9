"""What there is to fit a model into, now: the computer's memory, and the cards that an engine here can use.

Reads the system's own counts, so cheaply that a screen may ask every second. Knows no model. A container's memory limit
(cgroup) counts as the computer's memory: beyond it the system ends the engine.
References: https://docs.kernel.org/admin-guide/cgroup-v2.html#memory and cgroup-v1/memory.html.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import psutil

from app.i18n import _
from app.models.fit_types import Device, Machine

# What a worker takes before any model, with its engine's library loaded: the anonymous and file pages of its first
# reading. So the total that the meter shows after a load is this, the engine's buffers, and its tables (vocabulary,
# graph). Measured on Linux with Python 3.11, llama-cpp-python 0.3.36 and torch 2.13 (transformers and the classes of a
# model imported); earlier loads on this machine know better.
KNOWN_FLOOR_BYTES: Mapping[str, int] = {"llama_cpp": 46 * 2**20, "torch": 330 * 2**20, "echo": 21 * 2**20}

# What is left to everything else; on a small computer a share of what there is.
_RESERVE_BYTES = 512 * 2**20
_RESERVE_SHARE = 1 / 8

_CGROUP_FILE = Path("/proc/self/cgroup")
_CGROUP_MOUNT = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class MemoryLimit:
    """A limit on the memory of a group of processes that this one belongs to.

    Attributes:
        limit_bytes: what the group may take.
        free_bytes: what it can still take; pages of files that were not used lately are given back first.
    """

    limit_bytes: int
    free_bytes: int


def read_machine(
    floor_bytes: Mapping[str, int] | None = None,
    bandwidth_bytes_per_s: float = 0.0,
    held_bytes: int = 0,
    gpu_devices: Callable[[], Sequence[Device]] = tuple,
) -> Machine:
    """Return what there is to fit into now.

    Args:
        floor_bytes: what a worker took before its model in earlier loads here, by backend; it goes before what is known
            of other machines.
        bandwidth_bytes_per_s: measured read bandwidth of the computer's memory; 0 when it was not measured.
        held_bytes: what the engine in use would give back, since a load ends it first.
        gpu_devices: returns the cards that an engine here can really use. The llama.cpp that comes with the program
            uses none, and a fit on a card nobody can use would be a lie: so by default there are none.
    """
    memory = psutil.virtual_memory()
    total_bytes, free_bytes = int(memory.total), int(memory.available)
    for limit in memory_limits():
        total_bytes = min(total_bytes, limit.limit_bytes)
        free_bytes = min(free_bytes, limit.free_bytes)
    computer = Device(
        name="CPU",
        title=_("This computer"),
        total_bytes=total_bytes,
        free_bytes=min(total_bytes, free_bytes + max(0, held_bytes)),
        read_bytes_per_s=bandwidth_bytes_per_s,
    )
    measured = {backend: size_bytes for backend, size_bytes in (floor_bytes or {}).items() if size_bytes > 0}
    return Machine(
        devices=(computer, *gpu_devices()),
        floor_bytes={**KNOWN_FLOOR_BYTES, **measured},
        reserve_bytes=min(_RESERVE_BYTES, int(total_bytes * _RESERVE_SHARE)),
    )


def memory_limits(cgroup_file: Path = _CGROUP_FILE, mount: Path = _CGROUP_MOUNT) -> list[MemoryLimit]:
    """Return the limits that hold for this process: its own group's and those of the groups around it.

    Args:
        cgroup_file: lists the groups of this process.
        mount: where the kernel shows the groups as folders.
    """
    try:
        lines = cgroup_file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # another system, or none of this
        return []
    limits: list[MemoryLimit] = []
    for line in lines:
        _number, _colon, rest = line.partition(":")
        controllers, _colon, group = rest.partition(":")
        if not controllers:  # version 2 has one tree for everything
            limits += _limits_of(mount, group, _read_v2)
        elif "memory" in controllers.split(","):
            limits += _limits_of(mount / "memory", group, _read_v1)
    return limits


def _limits_of(root: Path, group: str, read: Callable[[Path], MemoryLimit | None]) -> list[MemoryLimit]:
    """Return the limits of a group and of all around it.

    In a container the folders of the groups outside are not there, and the mount shows the container's own.
    """
    parts = [part for part in PurePosixPath(group).parts if part not in ("/", "..")]
    folders = [root.joinpath(*parts[:depth]) for depth in range(len(parts), -1, -1)]
    return [limit for folder in folders if (limit := read(folder)) is not None]


def _read_v2(folder: Path) -> MemoryLimit | None:
    return _limit(folder, "memory.max", "memory.current", "inactive_file")


def _read_v1(folder: Path) -> MemoryLimit | None:
    return _limit(folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def _limit(folder: Path, limit_name: str, used_name: str, reclaimable_name: str) -> MemoryLimit | None:
    """Return a group's limit; None when it has none. No limit is the word "max", or a number beyond all memory."""
    try:
        limit_bytes = int((folder / limit_name).read_text(encoding="ascii"))
        used_bytes = int((folder / used_name).read_text(encoding="ascii"))
        statistics = (folder / "memory.stat").read_text(encoding="ascii", errors="replace")
    except (OSError, ValueError):
        return None
    if limit_bytes <= 0:
        return None
    reclaimable_bytes = 0
    for line in statistics.splitlines():
        name, _space, value = line.partition(" ")
        if name == reclaimable_name and value.strip().isdigit():
            reclaimable_bytes = int(value)
    return MemoryLimit(limit_bytes, max(0, limit_bytes - max(0, used_bytes - reclaimable_bytes)))
