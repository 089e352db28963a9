"""What compiled files ask of the system, and what is said when nobody has it."""

from __future__ import annotations

import re
import shutil

import bootstrap
import elf
import pytest

pytestmark = pytest.mark.skipif(shutil.which("readelf") is None, reason="there is no readelf")


@pytest.fixture
def asks(monkeypatch):
    """Files by name and the libraries they ask for."""
    table: dict[str, list[str]] = {}
    monkeypatch.setattr(elf, "needed_libraries", lambda path: table[path.name])
    monkeypatch.setattr(elf, "glibc_version", lambda _folder: (2, 36))
    return table


def add(folder, name):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x7fELF")


def test_a_real_program_asks_for_the_c_library(tmp_path):
    shutil.copy("/bin/true", tmp_path)
    assert "libc.so.6" in elf.needed_libraries(tmp_path / "true")
    (package,) = elf.debian_packages(tmp_path)
    assert re.fullmatch(r"libc6 \(>= 2\.\d+\)", package)


def test_the_tree_s_own_libraries_are_asked_of_nobody(tmp_path, asks):
    add(tmp_path, "runtime/bin/python3")
    add(tmp_path, "runtime/lib/libz.so.1")
    asks |= {"python3": ["libz.so.1", "libc.so.6"], "libz.so.1": ["libc.so.6"]}
    assert elf.debian_packages(tmp_path) == ["libc6 (>= 2.36)"]


def test_a_library_of_another_part_of_the_tree_is_not_found_by_the_loader(tmp_path, asks):
    add(tmp_path, "runtime/lib/libz.so.1")
    add(tmp_path, "app_packages/PySide6/Qt/lib/libQt6Core.so.6")
    asks |= {"libz.so.1": [], "libQt6Core.so.6": ["libz.so.1"]}
    assert elf.debian_packages(tmp_path) == ["libc6 (>= 2.36)", "zlib1g"]


def test_a_library_that_was_forgotten_is_named_with_who_wants_it(tmp_path, asks):
    add(tmp_path, "app_packages/a.so")
    asks["a.so"] = ["libforgotten.so.1"]
    with pytest.raises(bootstrap.SetupError, match=r"libforgotten\.so\.1 \(for app_packages/a\.so\)"):
        elf.debian_packages(tmp_path)


def test_every_library_of_the_x11_window_has_its_package():
    from app import display

    shared = {name: package for name, package in display._LIBRARIES.items() if name in elf.DEBIAN_PACKAGES}
    assert shared == {name: elf.DEBIAN_PACKAGES[name] for name in shared}
    assert set(display._X11_LIBRARIES) <= set(elf.DEBIAN_PACKAGES)
