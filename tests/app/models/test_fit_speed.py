"""Speed from bandwidth, and measured speed before it; never a number that is none."""

from __future__ import annotations

import math

import pytest

from app.models.fit_speed import measured_speed, predicted_speed, weights_read
from app.models.fit_types import Measured
from backends.protocol import MemorySplit
from tests.helpers.fit_models import llama_8b


def record(speed, kv_type="f16", device="CPU", backend="llama_cpp"):
    return Measured(backend, device, 8192, kv_type, 512, "chat", 1, MemorySplit(), decode_tokens_per_s=speed)


def test_a_token_takes_what_is_read_by_the_bandwidth():
    assert predicted_speed([(5_000_000_000, 20e9)]) == 4.0


def test_devices_read_one_after_the_other():
    assert predicted_speed([(2_000_000_000, 200e9), (1_000_000_000, 20e9)]) == pytest.approx(1 / 0.06)


@pytest.mark.parametrize("bandwidth", [0, -1, math.nan, math.inf])
def test_without_a_bandwidth_nobody_can_tell(bandwidth):
    assert predicted_speed([(100, bandwidth)]) is None
    assert predicted_speed([(100, 1e9), (5, bandwidth)]) is None


def test_nothing_to_read_has_no_speed():
    assert predicted_speed([]) is None
    assert predicted_speed([(0, 0.0), (-5, 1e9)]) is None


def test_the_latest_load_with_the_same_kv_type_goes_first():
    history = [record(5.0, "q8_0"), record(7.0), record(9.0)]
    assert measured_speed(history, "llama_cpp", "CPU", "f16") == 7.0
    assert measured_speed(history, "llama_cpp", "CPU", "q4_0") == 5.0


def test_loads_on_other_devices_or_without_an_answer_do_not_count():
    history = [record(0.0), record(5.0, device="CUDA0"), record(5.0, backend="torch"), record(math.nan)]
    assert measured_speed(history, "llama_cpp", "CPU", "f16") is None


def test_where_the_reads_are_unknown_all_weights_are_read():
    assert weights_read(llama_8b(read_bytes=0)) == llama_8b().weights_bytes
    assert weights_read(llama_8b()) == llama_8b().read_bytes
