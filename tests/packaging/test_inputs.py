"""The lock file pins every byte that is packed, and agrees with the pins that the tree runs with."""

from __future__ import annotations

import hashlib
from importlib import metadata

import bootstrap
import inputs
import pytest
from packaging.requirements import Requirement

LOCK = inputs.LOCKS / "base-linux.txt"


def needed_by(requirement: str, found: set[str]) -> None:
    """Add the package and, by what is installed here, everything it needs."""
    wanted = Requirement(requirement)
    name = inputs.plain_name(wanted.name)
    if name in found or (wanted.marker is not None and not wanted.marker.evaluate({"extra": ""})):
        return
    found.add(name)
    for further in metadata.requires(name) or []:
        needed_by(further, found)


def test_the_lock_file_pins_what_a_run_needs_and_nothing_else():
    wanted = {inputs.plain_name(bootstrap.STARTER)}
    for requirement in bootstrap.declared_dependencies("run"):
        needed_by(requirement, wanted)
    assert {pin.name for pin in inputs.read_lock(LOCK)} == wanted


def test_the_lock_file_pins_the_versions_of_the_constraints():
    pins = inputs.read_lock(LOCK)
    assert {pin.name: pin.version for pin in pins} == {pin.name: bootstrap.pinned_version(pin.name) for pin in pins}


def test_the_lock_file_names_no_address():
    assert "/" not in LOCK.read_text(encoding="utf-8")


@pytest.mark.parametrize("line", ["a==1", "a>=1 --hash=sha256:" + "0" * 64, "a==1 --hash=md5:" + "0" * 64])
def test_a_line_that_pins_nothing_is_refused(line, tmp_path):
    path = tmp_path / "lock.txt"
    path.write_text(f"# words\n{line}\n", encoding="utf-8")
    with pytest.raises(bootstrap.SetupError, match="pins nothing: a"):
        inputs.read_lock(path)


def test_a_file_with_the_right_name_and_another_content_is_not_used(tmp_path):
    right, name = b"right", "some_package-1.0-py3-none-any.whl"
    pin = inputs.Pin("some-package", "1.0", hashlib.sha256(right).hexdigest())
    (tmp_path / name).write_bytes(b"wrong")
    assert inputs.find(pin, tmp_path) is None
    (tmp_path / name).write_bytes(right)
    assert inputs.find(pin, tmp_path) == tmp_path / name


def test_what_is_there_is_not_downloaded(tmp_path, monkeypatch):
    monkeypatch.setattr(inputs.subprocess, "run", lambda *_args, **_kwargs: pytest.fail("downloads"))
    (tmp_path / "a-1.tar.gz").write_bytes(b"a")
    pin = inputs.Pin("a", "1", hashlib.sha256(b"a").hexdigest())
    assert inputs.fetch([pin], tmp_path) == {"a": tmp_path / "a-1.tar.gz"}
