"""The files that a desktop reads are well-formed, and the installers are scripts that a shell can read."""

from __future__ import annotations

import configparser
import re
import shutil
import subprocess
from xml.etree import ElementTree

import linux_package
import pytest
import stage

FILES = linux_package._FILES


def test_the_menu_entry_opens_model_files():
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str
    parser.read(FILES / "cutaway.desktop", encoding="utf-8")
    entry = parser["Desktop Entry"]
    assert (entry["Type"], entry["Exec"], entry["Icon"]) == ("Application", "cutaway %F", "cutaway")
    assert entry["MimeType"] == "application/vnd.gguf;"
    assert "Version" not in entry  # an older checker refuses newer numbers


def test_the_window_belongs_to_the_menu_entry():
    launcher = (FILES / "launcher.c").read_text(encoding="utf-8")
    name = re.search(r"^StartupWMClass=(.+)$", (FILES / "cutaway.desktop").read_text(encoding="utf-8"), re.MULTILINE)
    assert name is not None
    assert f'setenv("RESOURCE_NAME", "{name[1]}"' in launcher


def test_a_model_file_is_known_by_its_content_and_by_its_name():
    space = "{http://www.freedesktop.org/standards/shared-mime-info}"
    kind = ElementTree.parse(FILES / "cutaway.xml").getroot().find(f"{space}mime-type")
    assert kind is not None
    assert kind.get("type") == "application/vnd.gguf"
    match, glob = kind.find(f"{space}magic/{space}match"), kind.find(f"{space}glob")
    assert (match.get("type"), match.get("offset"), match.get("value")) == ("string", "0", "GGUF")
    assert glob.get("pattern") == "*.gguf"


def test_the_software_centre_s_file_names_the_menu_entry_and_the_licence():
    root = ElementTree.parse(FILES / "cutaway.metainfo.xml").getroot()
    assert root.findtext("launchable") == "cutaway.desktop"
    assert root.findtext("project_license") == "Apache-2.0"
    assert root.find("releases/release").attrib == {"version": "@VERSION@", "date": "@DATE@"}


@pytest.mark.parametrize("name", ["install.sh", "uninstall.sh"])
def test_the_scripts_are_read_by_a_plain_shell(name):
    done = subprocess.run(["sh", "-n", str(FILES / name)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(shutil.which("ar") is None, reason="there is no ar")
def test_the_run_file_holds_the_archive_of_the_deb_and_its_hash(tmp_path, monkeypatch):
    monkeypatch.setattr(linux_package, "DIST", tmp_path)
    archive = b"\xfd7zXZ\0 not really"
    stage.write_file(tmp_path / "data.tar.xz", archive)
    subprocess.run(["ar", "rcD", "a.deb", "data.tar.xz"], cwd=tmp_path, check=True)
    run = linux_package.build_run(tmp_path / "a.deb", tmp_path, "1.2.3")
    content = run.read_bytes()
    lines = int(re.search(rb"payload_lines=(\d+)", content)[1])
    assert b"\n".join(content.split(b"\n")[lines:]) == archive
    assert not re.search(rb"@[A-Z0-9]+@", content.removesuffix(archive))
    assert run.stat().st_mode & 0o111


def test_the_checksums_are_those_of_the_files(tmp_path):
    stage.write_file(tmp_path / "usr/a", b"a")
    stage.write_file(tmp_path / "DEBIAN/control", b"")
    (tmp_path / "usr/link").symlink_to("a")
    assert linux_package.md5sums(tmp_path) == "0cc175b9c0f1b6a831c399e269772661  usr/a\n"
