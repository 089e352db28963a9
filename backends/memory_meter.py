"""The worker's heartbeat: its own memory, ten times a second, with the age of the step in progress.

Reads the operating system's own counts, never an estimate. Knows no engine.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from backends import protocol
from backends.device_memory import DeviceMemory, find_device_memory

_STATUS = Path("/proc/self/status")

INTERVAL_S = 0.1  # ten a second: a plot of a minute has 600 points, and a reading costs 0.1 ms


@dataclass(frozen=True, slots=True)
class ProcessMemory:
    """A process's resident memory in bytes, by what backs it.

    Attributes:
        anonymous_bytes: heap, KV cache, buffers.
        file_bytes: mapped files, such as weights.
        swap_bytes: what was pushed out.
    """

    anonymous_bytes: int
    file_bytes: int
    swap_bytes: int


def read_process_memory() -> ProcessMemory:
    """Return this process's memory now."""
    if _STATUS.is_file():
        return parse_status(_STATUS.read_text(encoding="ascii", errors="replace"))
    import psutil  # where there is no /proc

    resident = psutil.Process().memory_info().rss
    return ProcessMemory(resident, 0, 0)


def parse_status(text: str) -> ProcessMemory:
    """Return the memory in the text of /proc/<pid>/status, whose values are in KiB."""
    values = dict.fromkeys(("RssAnon", "RssFile", "RssShmem", "VmSwap"), 0)
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        if name in values:
            values[name] = int(rest.split()[0]) * 1024
    return ProcessMemory(values["RssAnon"], values["RssFile"] + values["RssShmem"], values["VmSwap"])


class StepClock:
    """When the step in progress began; written by the loop, read by the meter.

    Attributes:
        state: where the worker stands.
    """

    def __init__(self) -> None:
        self.state = protocol.LifeCycle.STARTING
        self._began_s = 0.0

    def begin(self) -> None:
        """Note that a step, or a load, begins."""
        self._began_s = time.monotonic()

    def end(self) -> None:
        """Note that it ended."""
        self._began_s = 0.0

    @property
    def age_s(self) -> float:
        """Seconds since the step in progress began; 0 when there is none."""
        began_s = self._began_s
        return time.monotonic() - began_s if began_s else 0.0


class MemoryMeter:
    """A thread that offers a reading every INTERVAL_S.

    Attributes:
        _offer: takes each reading; may drop it.
    """

    def __init__(self, clock: StepClock, offer: Callable[[protocol.MemoryRead], None]) -> None:
        self._clock = clock
        self._offer = offer
        self._ended = threading.Event()
        self._device: DeviceMemory | None = None
        self._thread = threading.Thread(target=self._run, name="memory-meter", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._ended.set()
        self._thread.join(timeout=2.0)

    def read(self) -> protocol.MemoryRead:
        """Return one reading."""
        memory = read_process_memory()
        device = self._device.read() if self._device else None
        return protocol.MemoryRead(
            read_s=time.monotonic(),
            anonymous_bytes=memory.anonymous_bytes,
            file_bytes=memory.file_bytes,
            swap_bytes=memory.swap_bytes,
            device_used_bytes=device.used_bytes if device else 0,
            device_total_bytes=device.total_bytes if device else 0,
            device_name=device.name if device else "",
            step_age_s=self._clock.age_s,
            state=self._clock.state,
        )

    def _run(self) -> None:
        self._device = find_device_memory()
        while not self._ended.wait(INTERVAL_S):
            self._offer(self.read())
        if self._device:
            self._device.close()
