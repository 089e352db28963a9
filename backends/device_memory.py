"""Memory of the graphics card, from the driver: NVIDIA by its management library, AMD by sysfs.

Where there is no card, or its driver does not answer, there is no reading, and the window says "system memory".
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

_SYSFS_CARDS = Path("/sys/class/drm")


@dataclass(frozen=True, slots=True)
class DeviceReading:
    """A card's memory in bytes.

    Attributes:
        name: the card's name.
        used_bytes: used by all processes.
        total_bytes: what the card has.
    """

    name: str
    used_bytes: int
    total_bytes: int


class DeviceMemory(Protocol):
    """Something that can read a card's memory."""

    def read(self) -> DeviceReading | None:
        """Return the memory now, None when the driver does not answer."""

    def close(self) -> None:
        """Let go of the driver."""


class NvidiaMemory:
    """The first NVIDIA card, through NVML (nvidia-ml-py)."""

    def __init__(self, nvml: Any) -> None:
        self._nvml = nvml
        self._handle = nvml.nvmlDeviceGetHandleByIndex(0)
        name = nvml.nvmlDeviceGetName(self._handle)
        self._name = name.decode() if isinstance(name, bytes) else str(name)

    def read(self) -> DeviceReading | None:
        """Return the memory now."""
        try:
            memory = self._nvml.nvmlDeviceGetMemoryInfo(self._handle)
        except self._nvml.NVMLError:
            return None
        return DeviceReading(self._name, int(memory.used), int(memory.total))

    def close(self) -> None:
        """Let go of the driver."""
        self._nvml.nvmlShutdown()


class AmdMemory:
    """An AMD card, through the kernel's sysfs files."""

    def __init__(self, folder: Path) -> None:
        self._used = folder / "mem_info_vram_used"
        self._total = folder / "mem_info_vram_total"
        name = folder / "product_name"
        self._name = (name.read_text().strip() if name.is_file() else "") or "AMD GPU"

    def read(self) -> DeviceReading | None:
        """Return the memory now."""
        try:
            return DeviceReading(self._name, int(self._used.read_text()), int(self._total.read_text()))
        except (OSError, ValueError):
            return None

    def close(self) -> None:
        """Nothing is held."""


def find_device_memory(cards: Path = _SYSFS_CARDS) -> DeviceMemory | None:
    """Return a reader of the first card whose driver answers, or None."""
    return _find_nvidia() or _find_amd(cards)


def _find_nvidia() -> DeviceMemory | None:
    try:
        import pynvml
    except ImportError:
        return None
    try:
        pynvml.nvmlInit()
        return NvidiaMemory(pynvml)
    except pynvml.NVMLError:
        return None


def _find_amd(cards: Path) -> DeviceMemory | None:
    for folder in sorted(cards.glob("card[0-9]*/device")):
        if (folder / "mem_info_vram_total").is_file():
            return AmdMemory(folder)
    return None
