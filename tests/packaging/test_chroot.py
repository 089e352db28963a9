"""What a system of its own needs, and what is said where it cannot be made. No system is made here."""

from __future__ import annotations

import bootstrap
import chroot
import pytest


def test_without_root_it_says_who_can(monkeypatch):
    monkeypatch.setattr(chroot.os, "geteuid", lambda: 1000)
    with pytest.raises(bootstrap.SetupError, match="sudo make package-test"):
        chroot.check_means()


def test_missing_commands_are_named_where_they_cannot_be_installed(monkeypatch):
    monkeypatch.setattr(chroot.os, "geteuid", lambda: 0)
    monkeypatch.setattr(chroot.shutil, "which", lambda _name: None)
    with pytest.raises(bootstrap.SetupError, match="These are missing: debootstrap, tar, util-linux"):
        chroot.check_means()


@pytest.mark.parametrize(
    "text",
    [
        "deb http://mirror.example/debian bookworm main",
        "deb [signed-by=/x.gpg] http://mirror.example/debian/ bookworm main",
        "Types: deb\nURIs: http://mirror.example/debian\nSuites: bookworm",
        "deb http://mirror.example/debian-security x\ndeb http://mirror.example/debian bookworm main",
    ],
)
def test_debian_is_taken_from_where_this_machine_takes_it(text, monkeypatch, tmp_path):
    monkeypatch.delenv("CUTAWAY_DEBIAN_MIRROR", raising=False)
    (tmp_path / "sources.list").write_text(text, encoding="utf-8")
    monkeypatch.setattr(chroot, "_SOURCES", (tmp_path / "none", tmp_path / "sources.list"))
    assert chroot.mirror() == "http://mirror.example/debian"


def test_another_mirror_can_be_named_and_none_is_said(monkeypatch):
    monkeypatch.setattr(chroot, "_SOURCES", ())
    monkeypatch.setenv("CUTAWAY_DEBIAN_MIRROR", "http://other.example/debian")
    assert chroot.mirror() == "http://other.example/debian"
    monkeypatch.delenv("CUTAWAY_DEBIAN_MIRROR")
    with pytest.raises(bootstrap.SetupError, match="Set CUTAWAY_DEBIAN_MIRROR"):
        chroot.mirror()


def test_a_person_gets_a_home_of_any_name(tmp_path, monkeypatch):
    owners = []
    monkeypatch.setattr(chroot.os, "chown", lambda path, *ids: owners.append((path, ids)))
    for name in ("passwd", "group"):
        (tmp_path / "etc").mkdir(exist_ok=True)
        (tmp_path / "etc" / name).write_text("root:x:0:0::/root:/bin/sh\n", encoding="utf-8")
    system = chroot.Chroot(tmp_path)
    system.add_person(chroot.Person("ola", "/home/ą b"))
    assert owners == [(tmp_path / "home/ą b", (1234, 1234))]
    assert (tmp_path / "etc/passwd").read_text(encoding="utf-8").endswith("ola:x:1234:1234::/home/ą b:/bin/sh\n")
