"""Which processor computes, how much memory it has left, and how much a piece of work takes there at its peak."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import re
from collections.abc import Iterator
from pathlib import Path

import psutil
import torch

from backends.errors import EngineError, ErrorCode, NoticeCode

# What torch's allocator for the CPU says; the GPU's raises an error of its own.
_NO_MEMORY = re.compile(r"can't allocate memory(?:: you tried to allocate (\d+) bytes)?")
_RESET_PEAK = "5"  # what Linux takes in clear_refs for "forget the peak": proc(5)


def choose_device(wanted: str) -> tuple[torch.device, tuple[NoticeCode, ...]]:
    """Return the device for a name, and what a person must be told when it is another one.

    Args:
        wanted: "" for the best there is, "cpu", "gpu", or torch's own name such as "cuda:1" or "mps".

    Raises:
        EngineError: BAD_PARAMS, torch knows no such device.
    """
    best = _best_device()
    if wanted in {"", "gpu"}:
        return best, (NoticeCode.GPU_NOT_USED,) if wanted and best.type == "cpu" else ()
    try:
        device = torch.device(wanted.lower())
    except RuntimeError as error:
        raise EngineError(ErrorCode.BAD_PARAMS, detail=f"torch knows no device {wanted!r}") from error
    if device.type == "cpu":
        return torch.device("cpu"), ()
    if device.type == "cuda" and torch.cuda.is_available() and (device.index or 0) < torch.cuda.device_count():
        return torch.device("cuda", device.index or 0), ()
    if device.type == "mps" and torch.backends.mps.is_available():
        return torch.device("mps"), ()
    if device.type not in {"cuda", "mps"}:
        raise EngineError(ErrorCode.BAD_PARAMS, detail=f"{wanted!r} is no device that this engine computes on")
    return torch.device("cpu"), (NoticeCode.GPU_NOT_USED,)


def _best_device() -> torch.device:
    if torch.cuda.is_available():
        return torch.device("cuda", 0)
    return torch.device("mps") if torch.backends.mps.is_available() else torch.device("cpu")


def device_name(device: torch.device) -> str:
    """Return what people read: "CPU", "CUDA0", "MPS"."""
    return f"CUDA{device.index or 0}" if device.type == "cuda" else device.type.upper()


def free_bytes(device: torch.device) -> int:
    """Return how much memory could still be taken on a device."""
    if device.type == "cuda":
        torch.cuda.empty_cache()
        return int(torch.cuda.mem_get_info(device)[0])
    return int(psutil.virtual_memory().available)


class PeakMeter(contextlib.AbstractContextManager["PeakMeter"]):
    """Measures how much memory a piece of work takes at its peak, beyond what was taken when it began.

    On a GPU this is torch's own count. On the CPU it is what the system saw of this process, so that other threads
    count too; where the system cannot forget an earlier peak (anywhere but Linux), a lower one is not seen.

    Attributes:
        peak_bytes: the measurement, once the work is over.
    """

    def __init__(self, device: torch.device) -> None:
        self.peak_bytes = 0
        self._device = device
        self._before = 0

    def __enter__(self) -> PeakMeter:
        """Begin."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
            torch.cuda.reset_peak_memory_stats(self._device)
            self._before = torch.cuda.memory_allocated(self._device)
        else:
            _give_back_freed()
            with contextlib.suppress(OSError):
                Path("/proc/self/clear_refs").write_text(_RESET_PEAK, encoding="ascii")
            self._before = psutil.Process().memory_info().rss
        return self

    def __exit__(self, *_exception: object) -> None:
        """Read the peak."""
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
            peak = torch.cuda.max_memory_allocated(self._device)
        else:
            peak = _peak_rss_bytes()
        self.peak_bytes = max(0, peak - self._before)


def _give_back_freed() -> None:
    """Let go of memory that was freed but is still ours, which the work to be measured would use unseen."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).malloc_trim(0)  # glibc's; elsewhere there is none


def _peak_rss_bytes() -> int:
    """Return the largest resident size since the last reset, as far as the system knows it."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    memory = psutil.Process().memory_info()
    return int(getattr(memory, "peak_wset", memory.rss))  # Windows knows a peak; elsewhere it is the size now


@contextlib.contextmanager
def memory_errors(device: torch.device) -> Iterator[None]:
    """Turn torch's words for "no memory" into OUT_OF_MEMORY; whatever else it raises passes."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise EngineError(ErrorCode.OUT_OF_MEMORY, needed_bytes=0, free_bytes=free_bytes(device)) from error
    except RuntimeError as error:
        found = _NO_MEMORY.search(str(error))
        if found is None:
            raise
        needed = int(found[1] or 0)
        raise EngineError(ErrorCode.OUT_OF_MEMORY, needed_bytes=needed, free_bytes=free_bytes(device)) from error
