"""Tries the packages in dist/ where nothing of this machine helps them: a bare Debian, an ordinary user, no network.

Installs, starts, misleads, upgrades and removes the program and says for each step whether it held. `make package-test`
runs it as root. Knows what a person would see, and nothing of the code.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import bootstrap
import chroot
import linux_package
import stage

_PERSON = chroot.Person("ola", "/home/ą b")
_INSTALL = ("apt-get", "install", "-y", "--no-install-recommends", "--no-install-suggests")
_WORD_LIMIT = 300
_ENGINE = f"{linux_package.PREFIX}/engines/llama-cpu/"
# What changes by itself whenever packages come and go.
_NOT_COMPARED = re.compile(
    r"^/(proc|sys|dev|run|tmp|home|root|var/(cache|log|lib/(apt|dpkg)))(/|$)|^/etc/ld\.so\.cache$"
)
_FAKES = ("llama_cpp", "msgspec", "numpy", "sqlite3", "app", "PySide6", "sitecustomize", "usercustomize")
_VARIABLES = (
    *("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONSTARTUP", "QT_PLUGIN_PATH", "QT_QPA_PLATFORM_PLUGIN_PATH"),
    *("LD_LIBRARY_PATH", "LLAMA_CPP_LIB_PATH"),
)
_COLD_RUNS, _WARM_RUNS = 1, 3


class StepError(Exception):
    """A step did not hold; the text says what was seen."""


class Rehearsal:
    """One bare system, and what is done in it.

    Attributes:
        system: the system.
        failures: how many steps did not hold.
    """

    def __init__(self, system: chroot.Chroot, deb: Path, run: Path) -> None:
        self.system = system
        self.failures = 0
        self._deb, self._run = f"/opt/{deb.name}", f"/opt/{run.name}"
        for path in (deb, run):
            shutil.copyfile(path, system.inside(f"/opt/{path.name}"))

    def steps(self) -> None:
        """Do everything in order; the first install must hold, of the rest each is tried."""
        if not self._step("the .deb installs with what it depends on", self._install):
            return
        self._step("selftest, as an ordinary user, offline", self._selftest)
        self._step("hostile variables, modules and libraries change nothing", self._mislead)
        self._step("one ggml in the engine's process, the installed one", self._one_ggml)
        self._step("the window opens", self._first_paint)
        self._step("a model file is known by its content", self._file_type)
        self._step("every file is as it was packed", self._verify)
        self._step("reinstall, remove and purge leave nothing", self._remove)
        self._step("an older version is replaced whole", self._upgrade)
        self._step("the .run installs for one person, offline", self._run_install)
        self._step("the .run leaves the home folder as it was", self._run_uninstall)
        self._step("a damaged .run installs nothing", self._run_damaged)

    def _step(self, name: str, work: Callable[[], str]) -> bool:
        began_s = time.monotonic()
        try:
            seen, word = work(), "ok    "
        except StepError as failure:
            seen, word = str(failure), "failed"
            self.failures += 1
        sys.stdout.write(f"{word}  {name}: {seen} ({time.monotonic() - began_s:.0f} s)\n")
        sys.stdout.flush()
        return word != "failed"

    # ---------------------------------------------------------------------------------------- the .deb

    def _install(self) -> str:
        self._must(self.system.run(["apt-get", "update"]), "apt-get update")
        before = self._packages()
        self._must(self.system.run([*_INSTALL, self._deb]), "apt-get install")
        self.system.add_person(_PERSON)
        return f"with {len(self._packages() - before) - 1} packages of Debian"

    def _selftest(self, command: str = "cutaway") -> str:
        return self._checks(self._as_person([command, "selftest", "--json"]))

    def _checks(self, result: subprocess.CompletedProcess[str]) -> str:
        """Return what the self-test found; raises StepError unless all of it passed."""
        lines = result.stdout.splitlines()
        if "{" not in lines:
            raise StepError(f"cutaway selftest ended with {result.returncode}: {_short(result.stdout)}")
        checks = json.loads("\n".join(lines[lines.index("{") :]))["checks"]
        failed = [f"{check['name']}: {check['reason']}" for check in checks if not check["passed"]]
        if failed or result.returncode != 0:
            noise = _short("\n".join(lines[: lines.index("{")]))
            raise StepError("; ".join([*failed, noise]))
        reasons = [check["reason"] for check in checks]
        if not any("CPU variant" in reason for reason in reasons):
            raise StepError(f"no variant of the engine is told: {reasons}")
        return "; ".join(reasons)

    def _mislead(self) -> str:
        folder = self.system.inside("/opt/hostile")
        packages = self.system.inside(f"{_PERSON.home}/.local/lib/python3.11/site-packages")
        for place in (folder, packages):
            place.mkdir(parents=True, exist_ok=True)
            for name in _FAKES:
                (place / f"{name}.py").write_text("raise SystemExit('a hostile module was loaded')\n", encoding="utf-8")
        for name in ("libggml.so.0", "libllama.so", "libssl.so.3", "libpython3.11.so.1.0", "libQt6Core.so.6"):
            (folder / name).write_text("no library", encoding="utf-8")
        (folder / "platforms").mkdir()
        (folder / "platforms" / "libqoffscreen.so").write_text("no library", encoding="utf-8")
        here = "/opt/hostile"
        result = self._as_person(["/usr/bin/cutaway", "selftest", "--json"], dict.fromkeys(_VARIABLES, here), here)
        self._checks(result)
        shutil.rmtree(self.system.inside(f"{_PERSON.home}/.local"))
        return f"{len(_VARIABLES)} variables, {len(_FAKES)} modules"

    def _one_ggml(self) -> str:
        command = ["cutaway", "chat", "--prompt", "Count from one to one thousand.", "--max-tokens", "400"]
        chat = self.system.start_as(_PERSON, command)
        try:
            loaded = self._engine_libraries(chat)
        finally:
            output = _stop(chat)
        names = sorted(path.rpartition("/")[2] for path in loaded)
        kinds = [re.sub(r"-cpu-\w+", "-cpu", name) for name in names]
        if kinds != ["libggml-base.so.0", "libggml-cpu.so", "libggml.so.0", "libllama.so.0"]:
            raise StepError(f"the engine's process holds {names}; the program said: {_short(output)}")
        if not all(_ENGINE in path for path in loaded):
            raise StepError(f"the engine's libraries are not the installed ones: {sorted(loaded)}")
        return ", ".join(names)

    def _engine_libraries(self, chat: subprocess.Popen[str]) -> set[str]:
        """Return the engine's libraries that any process of the system has mapped, once ggml has chosen."""
        until_s = time.monotonic() + 60
        while time.monotonic() < until_s and chat.poll() is None:
            for maps in Path("/proc").glob("[0-9]*/maps"):
                try:
                    if not (maps.parent / "root").samefile(self.system.root):
                        continue
                    text = maps.read_text(encoding="utf-8", errors="replace")
                except OSError:
                    continue  # it ended meanwhile
                found = {
                    line.split(maxsplit=5)[5] for line in text.splitlines() if re.search(r"/lib(ggml|llama)", line)
                }
                if any("-cpu-" in path for path in found):
                    return found
            time.sleep(0.05)
        return set()

    def _first_paint(self) -> str:
        with _display() as display:
            environment = {"DISPLAY": display} if display else {"QT_QPA_PLATFORM": "offscreen"}
            cold = [self._paint_s(environment, is_cold=True) for _ in range(_COLD_RUNS)]
            warm = [self._paint_s(environment, is_cold=False) for _ in range(_WARM_RUNS)]
        on = "an X server" if display else "no screen"
        load = os.getloadavg()[0]
        return f"first paint {cold[0]:.2f} s cold, {sorted(warm)[1]:.2f} s warm, on {on}, load average {load:.1f}"

    def _paint_s(self, environment: dict[str, str], *, is_cold: bool) -> float:
        if is_cold:
            _forget_files(self.system.inside(linux_package.PREFIX))
        window = self.system.start_as(_PERSON, ["cutaway"], environment={**environment, "CUTAWAY_TIMING": "1"})
        lines: list[str] = []
        assert window.stdout is not None
        try:
            for line in window.stdout:
                lines.append(line)
                if match := re.match(r"first_paint_s=([\d.]+)", line):
                    return float(match[1])
        finally:
            _stop(window)
        raise StepError(f"nothing was painted: {_short(''.join(lines))}")

    def _file_type(self) -> str:
        self._must(self.system.run([*_INSTALL, "shared-mime-info", "desktop-file-utils", "libglib2.0-bin"]), "apt-get")
        file = self.system.inside("/opt/a model without a name")
        file.write_bytes(b"GGUF\x03\0\0\0")
        told = self._must(
            self.system.run(["gio", "info", "-a", "standard::content-type", "/opt/a model without a name"])
        )
        handler = self._must(self.system.run(["gio", "mime", "application/vnd.gguf"]))
        if "application/vnd.gguf" not in told or "cutaway.desktop" not in handler:
            raise StepError(f"{_short(told)} {_short(handler)}")
        return "application/vnd.gguf, opened by Cutaway"

    def _verify(self) -> str:
        changed = self._must(self.system.run(["dpkg", "--verify", "cutaway"])).strip()
        if changed:
            raise StepError(_short(changed))
        return "dpkg finds no change after use"

    def _remove(self) -> str:
        chats = self.system.inside(f"{_PERSON.home}/.local/share/cutaway/chats.sqlite3")
        self._must(self.system.run(["apt-get", "purge", "-y", "cutaway"]), "apt-get purge")
        before = self._files()
        kept = self._home()
        self._must(self.system.run([*_INSTALL, self._deb]), "apt-get install")
        self._must(self.system.run([*_INSTALL, "--reinstall", self._deb]), "apt-get install --reinstall")
        self._must(self._as_person(["cutaway", "--help"]), "cutaway --help")
        self._must(self.system.run(["apt-get", "remove", "-y", "cutaway"]), "apt-get remove")
        _same(before, self._files())
        self._must(self.system.run([*_INSTALL, self._deb]), "apt-get install")
        self._must(self.system.run(["apt-get", "purge", "-y", "cutaway"]), "apt-get purge")
        _same(before, self._files())
        if not kept <= self._home() or not chats.is_file():
            raise StepError("something of the person's went with the package")
        return f"{len(before)} files before and after; chats stayed"

    def _upgrade(self) -> str:
        with tempfile.TemporaryDirectory() as temporary:
            old = _old_package(Path(temporary))
            shutil.copyfile(old, self.system.inside("/opt/old.deb"))
        self._must(self.system.run(["dpkg", "--install", "/opt/old.deb"]), "dpkg --install")
        self._must(self.system.run([*_INSTALL, self._deb]), "apt-get install")
        if self.system.inside(f"{linux_package.PREFIX}/app/no_longer_there.py").exists():
            raise StepError("a file of the old version stayed")
        seen = self._selftest()
        self._must(self.system.run(["apt-get", "purge", "-y", "cutaway"]), "apt-get purge")
        return seen.partition(";")[0]

    # ---------------------------------------------------------------------------------------- the .run

    def _run_install(self) -> str:
        self._must(self.system.run([*_INSTALL, "xz-utils"]), "apt-get")  # bare systems lack it, desktops do not
        self._before = self._home()
        self._must(self._as_person(["sh", self._run]), "the .run")
        entry = self.system.inside(f"{_PERSON.home}/.local/share/applications/cutaway.desktop").read_text(
            encoding="utf-8"
        )
        if f'Exec="{_PERSON.home}/.local/opt/cutaway/bin/cutaway" %F' not in entry:
            raise StepError(f"the menu entry starts something else: {_short(entry)}")
        return self._selftest(f"{_PERSON.home}/.local/bin/cutaway")

    def _run_uninstall(self) -> str:
        self._must(self._as_person(["sh", self._run]), "the .run, again")
        said = self._must(self._as_person(["sh", f"{_PERSON.home}/.local/opt/cutaway/uninstall.sh"]), "uninstall.sh")
        _same(self._before, self._home())
        return said.strip().splitlines()[-1]

    def _run_damaged(self) -> str:
        file = self.system.inside(self._run)
        with file.open("r+b") as content:
            content.seek(-1000, os.SEEK_END)
            content.write(b"damage")
        result = self._as_person(["sh", self._run])
        if result.returncode == 0 or "damaged" not in result.stdout:
            raise StepError(_short(result.stdout))
        _same(self._before, self._home())
        return result.stdout.strip()

    # ------------------------------------------------------------------------------------ small things

    def _as_person(
        self, command: Sequence[str], environment: dict[str, str] | None = None, folder: str = ""
    ) -> subprocess.CompletedProcess[str]:
        return self.system.run_as(_PERSON, command, environment=environment, folder=folder)

    def _must(self, result: subprocess.CompletedProcess[str], name: str = "") -> str:
        """Return what a command said; raises StepError if it failed."""
        if result.returncode != 0:
            raise StepError(f"{name or result.args[-1]} ended with {result.returncode}: {_short(result.stdout)}")
        return result.stdout

    def _packages(self) -> set[str]:
        return set(self._must(self.system.run(["dpkg-query", "--show", "--showformat", "${Package}\n"])).split())

    def _files(self) -> set[str]:
        """Return every path of the system but for what changes by itself."""
        root = str(self.system.root)
        every = [f"{at}/{name}" for at, folders, files in os.walk(root) for name in (*folders, *files)]
        paths = [path.removeprefix(root) for path in every]
        return {path for path in paths if not _NOT_COMPARED.match(path)}

    def _home(self) -> set[str]:
        home = self.system.inside(_PERSON.home)
        return {path.relative_to(home).as_posix() for path in home.rglob("*")}


def _same(before: set[str], after: set[str]) -> None:
    if before != after:
        raise StepError(f"left behind: {sorted(after - before)[:10]}; gone: {sorted(before - after)[:10]}")


def _short(text: str) -> str:
    """Return the end of what a command said, on one line."""
    line = " | ".join(text.strip().splitlines()[-6:])
    return line if len(line) <= _WORD_LIMIT else f"…{line[-_WORD_LIMIT:]}"


def _stop(process: subprocess.Popen[str]) -> str:
    """End a process and return what else it said."""
    process.terminate()
    try:
        return process.communicate(timeout=20)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0]


def _forget_files(folder: Path) -> None:
    """Have the kernel drop these files from memory, as after a restart; of this folder only, others are at work."""
    os.sync()
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            descriptor = os.open(path, os.O_RDONLY)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(descriptor)


@contextmanager
def _display() -> Iterator[str]:
    """Give out an X server's display; "" where there is no Xvfb."""
    if shutil.which("Xvfb") is None:
        yield ""
        return
    read, write = os.pipe()
    command = ["Xvfb", "-displayfd", str(write), "-screen", "0", "1280x800x24", "-nolisten", "tcp", "-ac"]
    server = subprocess.Popen(command, pass_fds=(write,), stderr=subprocess.DEVNULL)
    os.close(write)
    try:
        with os.fdopen(read) as number:
            yield f":{number.readline().strip()}"
    finally:
        server.terminate()
        server.wait()


def _old_package(folder: Path) -> Path:
    """Make a .deb of an older version, which holds a file that the present one does not."""
    root, deb = folder / "root", folder / "old.deb"
    control = (
        "Package: cutaway\nVersion: 0.0.1\nArchitecture: amd64\nMaintainer: nobody <a@b.invalid>\nDescription: old\n"
    )
    stage.write_file(root / "DEBIAN" / "control", control.encode())
    stage.write_file(root / linux_package.PREFIX[1:] / "app" / "no_longer_there.py", b"")
    stage.write_file(root / linux_package.PREFIX[1:] / "app" / "paths.py", b"raise SystemExit('the old version')")
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", str(root), str(deb)], check=True, capture_output=True)
    return deb


def main(arguments: Sequence[str]) -> int:
    """Try the packages of this version in dist/; returns the exit code."""
    if arguments:
        sys.stderr.write("usage: try_package.py\n")
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the system that was made is removed then, too
    version = stage.program_version()
    found = [sorted(linux_package.DIST.glob(name)) for name in (f"cutaway_{version}_*.deb", f"Cutaway-{version}-*.run")]
    try:
        if not all(found):
            raise bootstrap.SetupError("There is no package to test in dist/. Make it first: make package-linux")
        chroot.check_means()
        with chroot.fresh_system() as system:
            rehearsal = Rehearsal(system, found[0][0], found[1][0])
            rehearsal.steps()
    except bootstrap.SetupError as error:
        sys.stderr.write(f"\n{error}\n")
        return 1
    bootstrap.say(f"{rehearsal.failures} steps failed" if rehearsal.failures else "the package holds")
    return 1 if rehearsal.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
