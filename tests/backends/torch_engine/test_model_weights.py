"""Weights that are read when they are asked for: their bytes, their lies, and how far a load is."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import save_file

from backends.errors import EngineError, ErrorCode
from backends.torch_engine.folder_headers import read_header
from backends.torch_engine.model_weights import DTYPES, LoadProgress, folder_weights, is_finite, read_into, read_tensor

TENSORS = {
    "a": torch.arange(12, dtype=torch.float32).reshape(3, 4),
    "b": torch.randn(5, 7).bfloat16(),
    "c": torch.randn(2, 3, 4).half(),
    "d": torch.tensor(7, dtype=torch.int64),
    "e": torch.zeros(0, 4),
    "f": torch.tensor([True, False]),
}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file(TENSORS, path)
    return path


def tensors_of(file):
    data = file.read_bytes()
    return read_header(file, len(data), data, file.parent)


def test_tensors_are_what_was_saved(file) -> None:
    reported = []
    placed = tensors_of(file)
    weights = folder_weights(
        placed, file.parent, LoadProgress(sum(one.size_bytes for one in placed.values()), reported.append)
    )
    for name, expected in TENSORS.items():
        assert torch.equal(weights[name][...], expected)
        assert weights[name].get_shape() == list(expected.shape)
        assert DTYPES[weights[name].get_dtype()] is expected.dtype
    assert 0 < reported[0].done <= 1


def test_numbers_that_are_none_are_named(tmp_path) -> None:
    for number in (float("nan"), float("inf"), -float("inf")):
        for dtype in (torch.float32, torch.bfloat16, torch.float16):
            path = tmp_path / "model.safetensors"
            bad = torch.zeros(1_000, dtype=dtype)
            bad[777] = number
            save_file({"model.norm.weight": bad}, path)
            weight = folder_weights(tensors_of(path), tmp_path, LoadProgress(1, lambda _event: None))[
                "model.norm.weight"
            ]
            with pytest.raises(EngineError) as caught:
                weight[...]
            assert caught.value.code is ErrorCode.HEADER_INVALID
            assert "model.norm.weight" in str(caught.value.parameters["detail"])


def test_every_piece_is_looked_at(monkeypatch) -> None:
    monkeypatch.setattr("backends.torch_engine.model_weights._CHECK_ELEMENTS", 10)
    numbers = torch.zeros(35)
    assert is_finite(numbers)
    numbers[34] = float("nan")
    assert not is_finite(numbers)
    assert is_finite(torch.zeros(0))
    assert is_finite(torch.tensor([5]))


def test_a_file_that_became_shorter_or_went_away_says_so(file) -> None:
    placed = tensors_of(file)
    file.write_bytes(file.read_bytes()[:-40])
    last = max(placed.values(), key=lambda one: one.offset + one.size_bytes)
    with pytest.raises(EngineError) as caught:
        read_tensor(last)
    assert caught.value.code is ErrorCode.FILE_UNREADABLE
    file.unlink()
    with pytest.raises(EngineError) as caught:
        read_tensor(last)
    assert caught.value.code is ErrorCode.FILE_MISSING
    with pytest.raises(EngineError) as caught:
        read_into(file.parent, 0, memoryview(bytearray(4)))
    assert caught.value.code is ErrorCode.FILE_UNREADABLE


def test_progress_goes_up_to_one_and_not_beyond() -> None:
    reported = []
    progress = LoadProgress(100, reported.append)
    progress.add(500)
    progress.finish()
    assert [one.done for one in reported] == [1.0, 1.0]
    assert {one.phase for one in reported} == {"load"}
