"""A small tree is staged twice to the same bytes, and the launcher starts its Python in a clean environment."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import bootstrap
import pytest
import stage
import tree

needs_compiler = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")

WHEEL = {
    "small/__init__.py": "VALUE = {'a', 'b', 'c'}\n",
    "small/__init__.pyi": "VALUE: set[str]\n",
    "small/tests/test_small.py": "",
    "small-1.data/purelib/extra.py": "",
    "small-1.data/scripts/small": "#!python",
    "small-1.dist-info/METADATA": "Name: small\n",
    "small-1.dist-info/RECORD": "",
}


def make_wheel(path: Path) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in WHEEL.items():
            archive.writestr(name, content)
    return path


def make_source(root: Path) -> Path:
    for name in ("app/paths.py", "ui/main.py", "backends/a.py", "resources/style.qss", "resources/a/x.po"):
        stage.write_file(root / name, b"a = 1\n")
    stage.write_file(root / "app/__pycache__/paths.pyc", b"old")
    stage.write_file(root / "app/paths.py.orig", b"old")
    return root


def make_python(root: Path) -> Path:
    """Put this Python, as a tree has its own, into a toy tree."""
    python = root / "runtime" / "bin" / "python3"
    stage.write_file(python, f'#!/bin/sh\nexec "{sys.executable}" "$@"\n'.encode())
    python.chmod(0o755)
    return python


def names(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in tree.walk(folder) if path.is_file()]


def test_a_wheel_gives_its_packages_and_neither_scripts_nor_tests(tmp_path):
    stage.unpack_wheel(make_wheel(tmp_path / "small.whl"), tmp_path / "packages")
    assert names(tmp_path / "packages") == ["extra.py", "small-1.dist-info/METADATA", "small/__init__.py"]


def test_the_program_is_copied_without_what_was_made_from_it(tmp_path):
    stage.copy_program(make_source(tmp_path / "source"), tmp_path / "target")
    assert names(tmp_path / "target") == ["app/paths.py", "backends/a.py", "resources/style.qss", "ui/main.py"]


def test_a_small_tree_is_the_same_to_the_byte_when_it_is_staged_again(tmp_path):
    wheel, source = make_wheel(tmp_path / "small.whl"), make_source(tmp_path / "source")
    digests = []
    for number in range(2):
        target = tmp_path / f"target {number}"
        make_python(target)
        stage.unpack_wheel(wheel, target / "app_packages")
        stage.copy_program(source, target)
        stage.compile_python(target, "/usr/lib/x")
        tree.normalise(target, 1_700_000_000)
        digests.append(tree.digest(target))
        assert len(list(target.rglob("*.pyc"))) == 5
    assert digests[0] == digests[1]


@needs_compiler
def test_the_launcher_starts_its_own_python_in_a_clean_environment(tmp_path):
    root = tmp_path / "ą b"
    stage.build_launcher(root / "bin" / "cutaway")
    python = root / "runtime" / "bin" / "python3"
    told = "import json, os, sys; print(json.dumps([sys.argv[1:], dict(os.environ)]))"
    stage.write_file(python, f'#!/bin/sh\nexec "{sys.executable}" -I -c \'{told}\' "$@"\n'.encode())
    python.chmod(0o755)
    hostile = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "QT_PLUGIN_PATH", "LD_LIBRARY_PATH", "LLAMA_CPP_LIB_PATH")
    link = tmp_path / "command"
    link.symlink_to(root / "bin" / "cutaway")
    environment = {"PATH": "/usr/bin:/bin", "HOME": "/home/x", **dict.fromkeys(hostile, str(tmp_path))}
    done = subprocess.run([link, "chat", "--prompt", "a b"], env=environment, capture_output=True, check=True)
    arguments, seen = json.loads(done.stdout)
    assert arguments == ["-I", "-B", "-m", "app", "chat", "--prompt", "a b"]
    assert set(hostile) & set(seen) == set()
    kept = {name: seen.get(name) for name in ("HOME", "PATH", "PYTHONNOUSERSITE", "PYTHONSAFEPATH")}
    assert kept == {"HOME": "/home/x", "PATH": "/usr/bin:/bin", "PYTHONNOUSERSITE": "1", "PYTHONSAFEPATH": "1"}


@needs_compiler
def test_a_launcher_without_its_python_says_so(tmp_path):
    stage.build_launcher(tmp_path / "bin" / "cutaway")
    done = subprocess.run([tmp_path / "bin" / "cutaway"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "runtime/bin/python3 cannot be started" in done.stderr


def test_the_version_is_the_one_of_the_project():
    assert f'version = "{stage.program_version()}"' in (bootstrap.ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_nothing_is_prepared_in_an_empty_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert not stage.is_prepared()
