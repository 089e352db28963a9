"""A Debian system in a folder, for installing a package where nothing of this machine helps it. Needs root.

Every command runs in mounts of its own, which are gone when it ends; nothing stays mounted over the folder. Knows
nothing of the program.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import bootstrap

_RELEASE = "bookworm"
_COMMANDS = {"debootstrap": "debootstrap", "unshare": "util-linux", "tar": "tar"}
_SOURCES = (Path("/etc/apt/sources.list"), *sorted(Path("/etc/apt/sources.list.d").glob("*")))
_MIRROR = re.compile(r"^(?:deb\s+(?:\[.*?\]\s+)?|URIs:\s+)(https?://\S*/debian)/?(?:\s|$)", re.MULTILINE)
_X11_SOCKETS = "/tmp/.X11-unix"  # the X server's own place
# $1 is the folder, the rest is the command.
_ENTER = f"""
root=$1; shift
mount --rbind /dev "$root/dev"
mount -t proc proc "$root/proc"
if [ -d {_X11_SOCKETS} ]; then
    mkdir -p "$root{_X11_SOCKETS}"
    mount --bind {_X11_SOCKETS} "$root{_X11_SOCKETS}"
fi
exec chroot "$@"
"""
_ROOT_ENVIRONMENT = {
    "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/",
    "LANG": "C.UTF-8",
    "DEBIAN_FRONTEND": "noninteractive",
}


@dataclass(frozen=True, slots=True)
class Person:
    """An ordinary user of the system in the folder.

    Attributes:
        name: the user's name.
        home: the home folder, as the system sees it.
    """

    name: str
    home: str


@dataclass(frozen=True, slots=True)
class Chroot:
    """The system in a folder.

    Attributes:
        root: the folder.
    """

    root: Path

    def run(self, command: Sequence[str], *, limit_s: float = 600) -> subprocess.CompletedProcess[str]:
        """Run a command as root, with the network; returns what it said, on both streams."""
        return _finish(self.popen(command, _ROOT_ENVIRONMENT), limit_s)

    def run_as(
        self,
        person: Person,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        folder: str = "",
        limit_s: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as a person, without any network; returns what it said, on both streams."""
        return _finish(self.start_as(person, command, environment=environment, folder=folder), limit_s)

    def start_as(
        self,
        person: Person,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        folder: str = "",
    ) -> subprocess.Popen[str]:
        """Start a command as a person, without any network, and return its process: the command's own."""
        whole = {"PATH": "/usr/bin:/bin", "HOME": person.home, "USER": person.name, "LANG": "C.UTF-8"}
        inside = ["env", f"--chdir={folder or person.home}", *command]
        return self.popen(inside, {**whole, **(environment or {})}, person, network=False)

    def popen(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        person: Person | None = None,
        *,
        network: bool = True,
    ) -> subprocess.Popen[str]:
        """Start a command in the system; both its streams are one pipe."""
        enter = ["unshare", "--mount", "--propagation", "private", *([] if network else ["--net"])]
        enter += ["sh", "-ec", _ENTER, "sh", str(self.root)]
        enter += [f"--userspec={person.name}:{person.name}"] if person else []
        # Cleared inside, since what is hostile to the program may be hostile to these commands too.
        inside = ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in environment.items())]
        return subprocess.Popen(
            [*enter, str(self.root), *inside, *command],
            env=_ROOT_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )

    def add_person(self, person: Person) -> None:
        """Make an ordinary user with this home folder."""
        # Debian's own tools refuse a home folder that is not plain ASCII; people's directories do not.
        passwd, group = self.root / "etc/passwd", self.root / "etc/group"
        passwd.write_text(f"{passwd.read_text()}{person.name}:x:1234:1234::{person.home}:/bin/sh\n", encoding="utf-8")
        group.write_text(f"{group.read_text()}{person.name}:x:1234:\n", encoding="utf-8")
        home = self.inside(person.home)
        home.mkdir(parents=True)
        os.chown(home, 1234, 1234)

    def inside(self, path: str) -> Path:
        """Return where a path of the system lies on this one."""
        return self.root / path.lstrip("/")


def _finish(process: subprocess.Popen[str], limit_s: float) -> subprocess.CompletedProcess[str]:
    try:
        output, _ = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
        output += f"\nIt did not end within {limit_s:.0f} s."
    return subprocess.CompletedProcess(process.args, process.returncode, output, "")


def check_means() -> None:
    """Raise SetupError, which says what is missing, unless a system can be made here."""
    if os.geteuid() != 0:
        raise bootstrap.SetupError(
            "The package is tested in a Debian system of its own, which only root can make. "
            "Repeat the command as root: sudo make package-test"
        )
    missing = sorted({package for command, package in _COMMANDS.items() if shutil.which(command) is None})
    if missing and shutil.which("apt-get") is None:
        raise bootstrap.SetupError(f"These are missing: {', '.join(missing)}. Install them and repeat the command.")
    bootstrap.install_system_packages(missing)
    if subprocess.run(["unshare", "--mount", "--net", "true"], capture_output=True, check=False).returncode != 0:
        raise bootstrap.SetupError("This system lets nobody make mounts and networks of their own (unshare failed).")


def mirror() -> str:
    """Return where this machine takes Debian from; raises SetupError if that cannot be read."""
    given = os.environ.get("CUTAWAY_DEBIAN_MIRROR", "")
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in _SOURCES if path.is_file()]
    found = given or next((match.group(1) for text in texts if (match := _MIRROR.search(text))), "")
    if not found:
        raise bootstrap.SetupError("Set CUTAWAY_DEBIAN_MIRROR to the address that Debian's packages are taken from.")
    return found


def cache() -> Path:
    """Return where the bare system and the packages it was given are kept."""
    return bootstrap.cache_folder() / "chroots"


def bare_system() -> Path:
    """Return an archive of a bare Debian system, made now if need be; raises SetupError."""
    archive = cache() / f"{_RELEASE}.tar"
    if archive.is_file():
        return archive
    bootstrap.say(f"Making a bare Debian system ({_RELEASE}), once")
    cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".making-", dir=cache()) as temporary:
        root, unfinished = Path(temporary) / "root", Path(temporary) / "system.tar"
        command = ["debootstrap", "--variant=minbase", _RELEASE, str(root), mirror()]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            tail = "\n".join(result.stdout.splitlines()[-5:])
            raise bootstrap.SetupError(f"{tail}\nThe bare Debian system could not be made. Is {mirror()} reachable?")
        subprocess.run(["tar", "-C", str(root), "--exclude=./dev/*", "-cf", str(unfinished), "."], check=True)
        unfinished.rename(archive)
    return archive


@contextmanager
def fresh_system() -> Iterator[Chroot]:
    """Unpack a bare system in a folder, give it out, and remove it; packages it downloads are kept for the next."""
    archive = bare_system()
    kept = cache() / "packages"
    kept.mkdir(exist_ok=True)
    root = Path(tempfile.mkdtemp(prefix=".testing-", dir=cache()))
    try:
        root.chmod(0o755)
        subprocess.run(["tar", "-C", str(root), "-xf", str(archive)], check=True)
        shutil.copyfile("/etc/resolv.conf", root / "etc/resolv.conf")
        packages = root / "var/cache/apt/archives"
        for path in kept.glob("*.deb"):
            shutil.copy2(path, packages)
        yield Chroot(root)
        for path in packages.glob("*.deb"):
            shutil.copy2(path, kept)
    finally:
        # Whatever was mounted was mounted for one command only; and even so no other file system is entered.
        subprocess.run(["rm", "-rf", "--one-file-system", str(root)], check=False)
