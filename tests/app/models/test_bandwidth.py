"""The bandwidth comes from a child that is given little memory and little time."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from app.models import bandwidth
from app.models.bandwidth import (
    decode_bandwidth,
    machine_key,
    measure_bandwidth,
    physical_cores,
    processor_name,
)

MIB = 2**20


@pytest.fixture
def free(monkeypatch):
    """How much memory the system says is available; little, so that nothing here takes long."""
    memory = SimpleNamespace(total=1024 * MIB, available=1024 * MIB)
    monkeypatch.setattr(bandwidth.psutil, "virtual_memory", lambda: memory)
    return memory


def child(tmp_path, source: str):
    path = tmp_path / "child.py"
    path.write_text(source)
    return path


def test_this_machine_is_measured(free) -> None:
    # Between the slowest memory of this century and the fastest of the next.
    assert 1e8 < measure_bandwidth() < 1e13


def test_the_child_gets_a_share_of_what_is_free_and_every_core(free, tmp_path) -> None:
    script = child(tmp_path, "import sys\nsys.stdout.write(sys.argv[1])")
    assert measure_bandwidth(child=script) == 64 * MIB
    free.available = 2**40
    assert measure_bandwidth(child=script) == 256 * MIB
    script = child(tmp_path, "import sys\nsys.stdout.write(sys.argv[2])")
    assert measure_bandwidth(child=script) == physical_cores()


def test_with_little_memory_nothing_is_measured(free, tmp_path) -> None:
    free.available = 500 * MIB
    assert measure_bandwidth(child=child(tmp_path, "raise SystemExit('never run')")) == 0.0


@pytest.mark.parametrize(
    "source",
    ["", "print('nan')", "print('inf')", "print(-5)", "print('fast')", "raise SystemExit(1)", "import os; os.abort()"],
)
def test_a_child_that_says_nothing_sensible_measured_nothing(free, tmp_path, source) -> None:
    assert measure_bandwidth(child=child(tmp_path, source)) == 0.0


def test_a_child_that_takes_too_long_is_killed(free, tmp_path) -> None:
    assert measure_bandwidth(0.2, child=child(tmp_path, "import threading; threading.Event().wait()")) == 0.0


def test_the_child_inherits_no_secret(free, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret")
    script = child(tmp_path, "import os\nprint(3 if 'HF_TOKEN' in os.environ else 4)")
    assert measure_bandwidth(child=script) == 4.0


def test_an_answer_s_speed_tells_what_was_read() -> None:
    assert decode_bandwidth(96_576_768, 131.5) == 96_576_768 * 131.5


def test_a_measurement_holds_for_this_processor_and_memory(free, monkeypatch) -> None:
    monkeypatch.setattr(bandwidth, "processor_name", lambda: "Some CPU")
    key = machine_key()
    assert key == f"Some CPU · {physical_cores()} cores · {1024 * MIB} bytes"
    free.total += 1
    assert machine_key() != key


def test_a_processor_names_itself(tmp_path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("processor\t: 0\nmodel name\t: AMD EPYC 7B13\ncache size\t: 512 KB\n")
    assert processor_name(info) == "AMD EPYC 7B13"
    info.write_text("processor\t: 0\nmodel name\t:\nHardware\t: BCM2835\n")
    assert processor_name(info) == "BCM2835"
    assert processor_name(tmp_path / "none")
