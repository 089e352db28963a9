"""Packs the staged tree for Linux: a .deb, and a .run that installs it for one person without root.

Both carry the same archive, which is compressed once. Knows nothing of what is in the tree but its size and what it
asks of the system. `make package-linux` runs it; the results lie in dist/.
"""

from __future__ import annotations

import datetime
import gzip
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import bootstrap
import elf
import stage
import tree

PREFIX = "/usr/lib/cutaway"
DIST = bootstrap.ROOT / "dist"
_FILES = bootstrap.ROOT / "packaging" / "linux"
_MAX_DEB_MB = 180
_MACHINES = {"x86_64": "amd64"}  # what the lock file pins packages for
# What Qt looks for by itself, so that no file of the tree asks for it.
_ASKED_FOR_AT_RUN_TIME = {"libegl1", "libgl1", "libxcb-cursor0", "libfontconfig1", "libdbus-1-3"}
_RECOMMENDED = ("fonts-dejavu-core | fonts-noto-core", "fonts-noto-cjk", "libreadline8", "shared-mime-info")
_CONTROL = """\
Package: cutaway
Version: {version}
Architecture: {architecture}
Maintainer: Cutaway contributors <cutaway@users.invalid>
Section: science
Priority: optional
Installed-Size: {installed_kib}
Depends: {depends}
Recommends: {recommends}
Description: private local chat with the engine cover off
 Cutaway chats with language models on this computer and shows what the
 engine does while it answers: memory, KV cache and tokens per second, all
 measured. Nothing leaves the computer.
 .
 A small model comes with the program, so that the first chat needs no
 download.
"""
_COPYRIGHT = """\
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: Cutaway
Comment:
 The licences of everything that comes with the program lie in
 {prefix}/licences, one folder each.

Files: *
Copyright: Cutaway contributors
License: Apache-2.0

Files: {prefix}/models/*
Copyright: Hugging Face
License: Apache-2.0

Files: {prefix}/resources/evaluation/encyclopaedia.txt
 {prefix}/resources/evaluation/calibration.txt
Copyright: 2005-2006 Open Knowledge Foundation (Open Shakespeare)
License: CC-BY-2.5

License: CC-BY-2.5
 The full text is at http://creativecommons.org/licenses/by/2.5/legalcode

License: Apache-2.0
 On Debian systems the full text is in /usr/share/common-licenses/Apache-2.0.
"""
# The tree is somebody's whole Python, which Debian's own packages would not bring.
_LINTIAN_OVERRIDES = (
    "embedded-library",
    "interpreter-in-usr-local",
    "library-not-linked-against-libc",
    "package-installs-python-pycache-dir",
    "script-not-executable",
    "shared-library-lacks-prerequisites",
    "unusual-interpreter",
)


def main(arguments: Sequence[str]) -> int:
    """Make both packages, or say with --is-prepared whether that is quick; returns the exit code."""
    if list(arguments) not in ([], ["--is-prepared"]):
        sys.stderr.write("usage: linux_package.py [--is-prepared]\n")
        return 2
    try:
        if arguments:
            return 0 if stage.is_prepared() else 1
        make_packages()
    except bootstrap.SetupError as error:
        sys.stderr.write(f"\n{error}\n")
        return 1
    return 0


def make_packages() -> None:
    """Stage, pack and check; says the sizes and times. Raises SetupError."""
    began_s = time.monotonic()
    _check_tools()
    build = bootstrap.ROOT / "build"
    build.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="package-", dir=build) as temporary:
        root = Path(temporary) / "root"
        laps_s = stage.stage(root / PREFIX[1:], PREFIX)
        add_system_files(root, stage.program_version())
        packing_s = time.monotonic()
        deb = build_deb(root, stage.program_version())
        run = build_run(deb, root, stage.program_version())
        laps_s["pack"] = time.monotonic() - packing_s
        installed_mb = tree_bytes(root) / 1e6
    for path in (deb, run):
        bootstrap.say(f"{path.relative_to(bootstrap.ROOT)}: {path.stat().st_size / 1e6:.1f} MB")
    bootstrap.say(
        f"installed {installed_mb:.0f} MB; " + ", ".join(f"{name} {lap:.0f} s" for name, lap in laps_s.items())
    )
    bootstrap.say(f"made in {time.monotonic() - began_s:.0f} s, load average {os.getloadavg()[0]:.1f}")
    if deb.stat().st_size > _MAX_DEB_MB * 1e6:
        raise bootstrap.SetupError(f"The .deb is larger than {_MAX_DEB_MB} MB. Leave something out of it.")


def _check_tools() -> None:
    if os.uname().machine not in _MACHINES:
        raise bootstrap.SetupError(f"Packages are made for {', '.join(_MACHINES)} only, and this is another processor.")
    if shutil.which("dpkg-deb") is None:
        raise bootstrap.SetupError(
            "A .deb is made with dpkg-deb, which this system does not have. Use Debian or Ubuntu."
        )
    needed = {"ar": "binutils", "xz": "xz-utils"}
    bootstrap.install_system_packages(sorted({name for tool, name in needed.items() if shutil.which(tool) is None}))


def add_system_files(root: Path, version: str) -> None:
    """Add what lies outside the program's folder: command, menu entry, icons, file type, manual, copyright."""
    time_s = tree.source_time_s()
    date = datetime.datetime.fromtimestamp(time_s, datetime.UTC).date().isoformat()
    share = root / "usr" / "share"
    places = {
        "cutaway.desktop": share / "applications",
        "cutaway.xml": share / "mime" / "packages",
        "cutaway.metainfo.xml": share / "metainfo",
        "cutaway.1": share / "man" / "man1",
        "uninstall.sh": root / PREFIX[1:],
    }
    for name, folder in places.items():
        text = (_FILES / name).read_text(encoding="utf-8").replace("@VERSION@", version).replace("@DATE@", date)
        stage.write_file(folder / name, text.encode())
    manual = share / "man" / "man1" / "cutaway.1"
    stage.write_file(manual.with_suffix(".1.gz"), gzip.compress(manual.read_bytes(), 9, mtime=0))
    manual.unlink()
    changes = gzip.compress((bootstrap.ROOT / "CHANGELOG.md").read_bytes(), 9, mtime=0)
    stage.write_file(share / "doc" / "cutaway" / "changelog.gz", changes)
    stage.write_file(share / "doc" / "cutaway" / "copyright", _COPYRIGHT.format(prefix=PREFIX).encode())
    overrides = "".join(f"cutaway: {tag}\n" for tag in _LINTIAN_OVERRIDES)
    stage.write_file(share / "lintian" / "overrides" / "cutaway", overrides.encode())
    icons = [sys.executable, str(bootstrap.ROOT / "packaging" / "icons.py"), str(share / "icons" / "hicolor")]
    bootstrap.run(icons, "The icons could not be drawn.")
    (root / "usr" / "bin").mkdir()
    (root / "usr" / "bin" / "cutaway").symlink_to("../lib/cutaway/bin/cutaway")
    run_folders = (f"{PREFIX[1:]}/bin", f"{PREFIX[1:]}/runtime/bin")
    tree.normalise(root, time_s, run_folders)
    check_desktop_files(share)


def check_desktop_files(share: Path) -> None:
    """Have the system's own checkers read what a desktop will read, where it has them; raises SetupError."""
    checks = {
        "desktop-file-validate": [str(share / "applications" / "cutaway.desktop")],
        # The program has no domain of its own, so its id is not one turned around.
        "appstreamcli": [
            "validate",
            "--no-net",
            "--override=cid-desktopapp-is-not-rdns=info",
            str(share / "metainfo" / "cutaway.metainfo.xml"),
        ],
    }
    for command, arguments in checks.items():
        if shutil.which(command) is None:
            bootstrap.say(f"{command} is not here, so it checked nothing")
            continue
        bootstrap.run([command, *arguments], f"{command} refuses a file of packaging/linux.")


def build_deb(root: Path, version: str) -> Path:
    """Pack the root folder as a .deb in dist/ and return it; raises SetupError."""
    control = _CONTROL.format(
        version=version,
        architecture=_MACHINES[os.uname().machine],
        installed_kib=round(tree_bytes(root) / 1024),
        depends=", ".join(sorted({*elf.debian_packages(root / PREFIX[1:]), *_ASKED_FOR_AT_RUN_TIME})),
        recommends=", ".join(_RECOMMENDED),
    )
    time_s = tree.source_time_s()
    stage.write_file(root / "DEBIAN" / "control", control.encode())
    stage.write_file(root / "DEBIAN" / "md5sums", md5sums(root).encode())
    for path in (root / "DEBIAN", *(root / "DEBIAN").iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)
    DIST.mkdir(exist_ok=True)
    deb = DIST / f"cutaway_{version}_{_MACHINES[os.uname().machine]}.deb"
    command = ["nice", "-n", "15", "dpkg-deb", "--root-owner-group", "-Zxz", "-z3", "--threads-max=2"]
    command += ["--build", str(root), str(deb)]
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(time_s)}
    if subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False).returncode != 0:
        raise bootstrap.SetupError("dpkg-deb could not pack the tree; its own words are above.")
    shutil.rmtree(root / "DEBIAN")
    return deb


def md5sums(root: Path) -> str:
    """Return the checksums by which dpkg --verify finds a damaged file."""
    lines = []
    for path in tree.walk(root):
        inside = path.relative_to(root).as_posix()
        if path.is_file() and not path.is_symlink() and not inside.startswith("DEBIAN/"):
            lines.append(f"{hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()}  {inside}\n")
    return "".join(lines)


def build_run(deb: Path, root: Path, version: str) -> Path:
    """Put the installer's script before the archive of the .deb, as one file in dist/, and return it."""
    archive = subprocess.run(["ar", "p", str(deb), "data.tar.xz"], capture_output=True, check=True).stdout
    text = (_FILES / "install.sh").read_text(encoding="utf-8")
    values = {
        "VERSION": version,
        "LINES": str(len(text.splitlines())),
        "SHA256": hashlib.sha256(archive).hexdigest(),
        "KIB": str(round(tree_bytes(root) / 1024 * 2.2)),  # the old program lies beside the new one for a moment
        "MACHINE": os.uname().machine,
    }
    for name, value in values.items():
        text = text.replace(f"@{name}@", value)
    run = DIST / f"Cutaway-{version}-{os.uname().machine}.run"
    run.write_bytes(text.encode() + archive)
    run.chmod(0o755)
    return run


def tree_bytes(root: Path) -> int:
    """Return the size of every file below a folder, in bytes."""
    return sum(path.lstat().st_size for path in root.rglob("*") if not path.is_dir())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
