"""Cards are read through their drivers; where none answers there is no reading."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

from backends.device_memory import DeviceReading, find_device_memory


class FakeNvml(SimpleNamespace):
    """What pynvml offers, with one card of 24 GB."""

    class NVMLError(Exception):
        pass

    answers = True

    def nvmlInit(self) -> None:
        if not self.answers:
            raise self.NVMLError("driver not loaded")

    def nvmlShutdown(self) -> None:
        self.is_shut = True

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetName(self, _handle: int) -> bytes:
        return b"RTX 4090"

    def nvmlDeviceGetMemoryInfo(self, _handle: int) -> SimpleNamespace:
        if not self.answers:
            raise self.NVMLError("gone")
        return SimpleNamespace(used=5, total=24)


def amd_card(folder: Path, name: str = "") -> Path:
    device = folder / "card0" / "device"
    device.mkdir(parents=True)
    (device / "mem_info_vram_used").write_text("7\n")
    (device / "mem_info_vram_total").write_text("16\n")
    if name:
        (device / "product_name").write_text(name + "\n")
    return folder


def test_an_nvidia_card_is_read_through_nvml(monkeypatch, tmp_path) -> None:
    nvml = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    memory = find_device_memory(tmp_path)
    assert memory is not None
    assert memory.read() == DeviceReading("RTX 4090", 5, 24)
    nvml.answers = False
    assert memory.read() is None
    memory.close()
    assert nvml.is_shut


def test_an_amd_card_is_read_from_sysfs(monkeypatch, tmp_path) -> None:
    nvml = FakeNvml()
    nvml.answers = False
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    memory = find_device_memory(amd_card(tmp_path, "Radeon RX 7900 XTX"))
    assert memory is not None
    assert memory.read() == DeviceReading("Radeon RX 7900 XTX", 7, 16)
    (tmp_path / "card0" / "device" / "mem_info_vram_used").unlink()
    assert memory.read() is None
    memory.close()


def test_without_a_card_there_is_no_reader(monkeypatch, tmp_path) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert find_device_memory(tmp_path) is None
