"""No package is packed without its licence."""

from __future__ import annotations

import bootstrap
import licences
import pytest
import stage


def test_every_licence_file_is_copied_by_the_name_of_its_package(tmp_path):
    information = tmp_path / "packages" / "Some_Package-1.0.dist-info"
    stage.write_file(information / "licenses" / "LICENSE.txt", b"MIT")
    stage.write_file(information / "METADATA", b"")
    stage.write_file(information / "COPYING", b"more")
    licences.collect_python_licences(tmp_path / "packages", tmp_path / "out")
    found = sorted(path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.*"))
    assert found == ["some-package/licenses/LICENSE.txt"]
    assert (tmp_path / "out/some-package/COPYING").read_bytes() == b"more"


def test_a_package_without_one_is_named(tmp_path):
    stage.write_file(tmp_path / "nothing-1.dist-info" / "METADATA", b"")
    with pytest.raises(bootstrap.SetupError, match=r"nothing-1\.dist-info holds no licence"):
        licences.collect_python_licences(tmp_path, tmp_path / "out")


def test_a_package_that_only_names_its_licence_gets_the_text(tmp_path, monkeypatch):
    monkeypatch.setattr(licences, "_COMMON_LICENCES", tmp_path / "common")
    stage.write_file(tmp_path / "common" / "BSD", b"text")
    stage.write_file(tmp_path / "packages" / "nvidia_ml_py-1.dist-info" / "METADATA", b"")
    licences.collect_python_licences(tmp_path / "packages", tmp_path / "out")
    assert (tmp_path / "out/nvidia-ml-py/BSD").read_bytes() == b"text"


def test_a_missing_single_file_is_named(tmp_path):
    with pytest.raises(bootstrap.SetupError, match="The licence of python is missing"):
        licences.collect_files({"python": tmp_path / "LICENSE"}, tmp_path / "out")
