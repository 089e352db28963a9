"""What there is to fit into: the system's counts, a container's limits, and no card that nobody can use."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from app.models import machine
from app.models.fit_types import Device
from app.models.machine import KNOWN_FLOOR_BYTES, MemoryLimit, memory_limits, read_machine
from app.telemetry.owners import measured_bytes
from backends import protocol
from tests.helpers.engine_client import LoggedClient

GIB = 2**30
UNLIMITED_V1 = str(2**63 - 4096)


@pytest.fixture
def system(monkeypatch):
    """A computer with 16 GiB, 10 of them free, and no container."""
    memory = SimpleNamespace(total=16 * GIB, available=10 * GIB)
    monkeypatch.setattr(machine.psutil, "virtual_memory", lambda: memory)
    limits: list[MemoryLimit] = []
    monkeypatch.setattr(machine, "memory_limits", lambda: limits)
    return SimpleNamespace(memory=memory, limits=limits)


def group(mount: Path, path: str, **files: object) -> Path:
    folder = mount / path
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name.replace("__", ".")).write_text(f"{content}\n")
    return folder


def groups_of(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "cgroup"
    file.write_text(text)
    return file


def test_the_computer_is_the_only_device_unless_a_backend_brings_another(system) -> None:
    read = read_machine(bandwidth_bytes_per_s=20e9)
    assert read.devices == (Device("CPU", "This computer", 16 * GIB, 10 * GIB, 20e9),)
    assert read.cpu.is_cpu
    card = Device("CUDA0", "RTX 4060", 8 * GIB, 7 * GIB)
    assert read_machine(gpu_devices=lambda: [card]).devices == (read_machine().cpu, card)


def test_what_the_engine_in_use_would_give_back_counts_as_free_up_to_all_there_is(system) -> None:
    assert read_machine(held_bytes=2 * GIB).cpu.free_bytes == 12 * GIB
    assert read_machine(held_bytes=100 * GIB).cpu.free_bytes == 16 * GIB
    assert read_machine(held_bytes=-5).cpu.free_bytes == 10 * GIB


def test_a_floor_that_was_measured_here_goes_before_the_known_one(system) -> None:
    assert read_machine().floor_bytes == KNOWN_FLOOR_BYTES
    read = read_machine({"llama_cpp": 7, "torch": 9, "echo": 0})
    assert read.floor_bytes == {"llama_cpp": 7, "torch": 9, "echo": KNOWN_FLOOR_BYTES["echo"]}


def test_a_small_computer_keeps_a_share_and_a_large_one_a_fixed_amount(system) -> None:
    assert read_machine().reserve_bytes == 512 * 2**20
    system.memory.total = 2 * GIB
    assert read_machine().reserve_bytes == 256 * 2**20


def test_the_tightest_limit_of_a_container_is_the_computer(system) -> None:
    system.limits += [MemoryLimit(8 * GIB, 3 * GIB), MemoryLimit(4 * GIB, 4 * GIB)]
    read = read_machine()
    assert (read.cpu.total_bytes, read.cpu.free_bytes) == (4 * GIB, 3 * GIB)
    system.limits[:] = [MemoryLimit(2**62, 2**62)]
    assert read_machine().cpu.total_bytes == 16 * GIB


def test_a_limit_of_version_2_is_read_with_what_the_system_would_take_back(tmp_path) -> None:
    mount = tmp_path / "mount"
    stat = "anon 100\nactive_file 5\ninactive_file 1073741824\nkernel 9"
    group(mount, "user.slice/app", memory__max=4 * GIB, memory__current=3 * GIB, memory__stat=stat)
    limits = memory_limits(groups_of(tmp_path, "0::/user.slice/app\n"), mount)
    assert limits == [MemoryLimit(4 * GIB, 2 * GIB)]


def test_the_groups_around_count_too_and_max_is_no_limit(tmp_path) -> None:
    mount = tmp_path / "mount"
    group(mount, "outer/inner", memory__max="max", memory__current=1, memory__stat="")
    group(mount, "outer", memory__max=2 * GIB, memory__current=GIB, memory__stat="inactive_file 0")
    assert memory_limits(groups_of(tmp_path, "0::/outer/inner\n"), mount) == [MemoryLimit(2 * GIB, GIB)]


def test_in_a_container_the_mount_is_the_group(tmp_path) -> None:
    # The kernel names the group as the outside knows it; inside, the mount shows its files at the top.
    mount = tmp_path / "mount"
    group(mount, ".", memory__max=GIB, memory__current=0, memory__stat="")
    for name in ("0::/docker/0123abcd\n", "0::/../../elsewhere\n", "0::/\n"):
        assert memory_limits(groups_of(tmp_path, name), mount) == [MemoryLimit(GIB, GIB)]


def test_a_limit_of_version_1_is_read(tmp_path) -> None:
    mount = tmp_path / "mount"
    files = {"memory__usage_in_bytes": GIB, "memory__stat": "inactive_file 5\ntotal_inactive_file 1024"}
    group(mount, "memory/docker/1", memory__limit_in_bytes=2 * GIB, **files)
    group(mount, "memory", memory__limit_in_bytes=UNLIMITED_V1, **files)
    text = "9:name=systemd:/x\n5:devices:/x\n4:cpu,memory:/docker/1\n0::/\n"
    limits = memory_limits(groups_of(tmp_path, text), mount)
    assert limits[0] == MemoryLimit(2 * GIB, GIB + 1024)
    assert limits[1].limit_bytes > 2**62  # none, so nothing becomes smaller by it


def test_more_used_than_allowed_leaves_nothing_free(tmp_path) -> None:
    mount = tmp_path / "mount"
    group(mount, "a", memory__max=GIB, memory__current=2 * GIB, memory__stat="")
    group(mount, "b", memory__max=GIB, memory__current=5, memory__stat="inactive_file 999999")
    assert memory_limits(groups_of(tmp_path, "0::/a\n"), mount) == [MemoryLimit(GIB, 0)]
    assert memory_limits(groups_of(tmp_path, "0::/b\n"), mount) == [MemoryLimit(GIB, GIB)]


@pytest.mark.parametrize("content", ["", "nonsense", "0", "-5", "\xff", "9" * 5000])
def test_a_limit_that_makes_no_sense_is_none(tmp_path, content) -> None:
    mount = tmp_path / "mount"
    group(mount, "a", memory__max=content, memory__current=1, memory__stat="")
    assert memory_limits(groups_of(tmp_path, "0::/a\n"), mount) == []


def test_lines_that_make_no_sense_and_systems_without_groups_have_no_limit(tmp_path) -> None:
    assert memory_limits(groups_of(tmp_path, "nonsense\n\n::\n1:memory\n"), tmp_path / "mount") == []
    assert memory_limits(tmp_path / "none", tmp_path / "mount") == []


def test_this_machine_is_read() -> None:
    read = read_machine()
    assert 0 < read.cpu.free_bytes <= read.cpu.total_bytes
    assert 0 < read.reserve_bytes <= read.cpu.total_bytes / 8


@pytest.mark.parametrize("backend", sorted(KNOWN_FLOOR_BYTES))
def test_the_known_floor_is_about_what_a_worker_takes_before_a_model(tmp_path, backend) -> None:
    with LoggedClient(backend, tmp_path / "log") as worker:
        floor_bytes = measured_bytes(worker.wait(protocol.MemoryRead), on_device=False)
    assert floor_bytes == pytest.approx(KNOWN_FLOOR_BYTES[backend], rel=0.3)
