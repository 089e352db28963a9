"""The set-up script: what it finds missing, how it keeps the wheel, and what it says when it cannot go on."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture
def bootstrap(monkeypatch, tmp_path):
    """The script as a module, with a cache folder of its own."""
    # packaging/ is no Python package (it would hide the one of that name), so the script is loaded by its path.
    spec = importlib.util.spec_from_file_location("cutaway_bootstrap", ROOT / "packaging" / "bootstrap.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return module


def fake_wheel(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "llama_cpp_python-0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("llama_cpp/__init__.py", "")
    return path


def test_every_dependency_of_the_project_is_pinned(bootstrap):
    for requirement in bootstrap.declared_dependencies("test"):
        name = requirement.split("=")[0].split("<")[0].split(">")[0]
        assert bootstrap.pinned_version(name)


def test_the_tests_need_everything_that_a_run_needs(bootstrap):
    run, test = bootstrap.declared_dependencies("run"), bootstrap.declared_dependencies("test")
    assert test[: len(run)] == run
    assert len(test) > len(run)


def test_an_unpinned_package_is_refused_in_words(bootstrap):
    with pytest.raises(bootstrap.SetupError, match="does not pin no-such-package"):
        bootstrap.pinned_version("no-such-package")


def test_without_root_the_exact_line_is_said_and_nothing_is_run(bootstrap, monkeypatch):
    monkeypatch.setattr(bootstrap.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(bootstrap.subprocess, "run", lambda *_args, **_kwargs: pytest.fail("ran a command"))
    with pytest.raises(bootstrap.SetupError) as caught:
        bootstrap.install_system_packages(["libegl1", "xvfb"])
    assert str(caught.value).endswith("    sudo apt-get install -y --no-install-recommends libegl1 xvfb")


def test_as_root_the_missing_packages_are_installed_after_an_update(bootstrap, monkeypatch):
    commands = []

    def record(command, **_kwargs):
        commands.append(command[:2])
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(bootstrap.os, "geteuid", lambda: 0)
    monkeypatch.setattr(bootstrap.subprocess, "run", record)
    bootstrap.install_system_packages(["libegl1"])
    assert commands == [["apt-get", "update"], ["apt-get", "install"]]


def test_a_system_without_dpkg_is_asked_for_nothing(bootstrap, monkeypatch):
    monkeypatch.setattr(bootstrap.shutil, "which", lambda _name: None)
    assert bootstrap.missing_packages("test", needs_compiler=True) == []


def test_only_what_dpkg_and_the_path_lack_is_missing(bootstrap, monkeypatch):
    monkeypatch.setattr(bootstrap, "installed_packages", lambda names: set(names) - {"libegl1", "xvfb"})
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: None if name in {"c++", "git"} else f"/bin/{name}")
    monkeypatch.setattr(bootstrap, "venv_is_usable", lambda: True)
    assert bootstrap.missing_packages("run", needs_compiler=False) == ["libegl1"]
    assert bootstrap.missing_packages("run", needs_compiler=True) == ["build-essential", "libegl1"]
    assert bootstrap.missing_packages("test", needs_compiler=False) == ["git", "libegl1", "xvfb"]


def test_a_python_without_venv_brings_its_package(bootstrap, monkeypatch):
    monkeypatch.setattr(bootstrap, "find_python", lambda: ("/usr/bin/python3.11", False))
    monkeypatch.setattr(bootstrap, "probe", lambda _python: ["3.11", "False", "/usr"])
    assert bootstrap.missing_python_packages() == ["python3.11-venv"]


def test_a_python_that_does_not_start_is_passed_over(bootstrap, tmp_path):
    broken = tmp_path / "python3.12"
    broken.write_text("#!/bin/sh\nexit 127\n", encoding="utf-8")
    broken.chmod(0o755)
    assert bootstrap.probe(str(broken)) == []
    assert bootstrap.probe(str(tmp_path / "missing")) == []
    assert bootstrap.probe(sys.executable)[0] == f"{sys.version_info[0]}.{sys.version_info[1]}"


def test_another_processor_or_build_option_has_another_wheel(bootstrap, monkeypatch):
    here = bootstrap.wheel_folder()
    monkeypatch.setattr(bootstrap, "cpu_features", lambda: "sse2")
    elsewhere = bootstrap.wheel_folder()
    monkeypatch.setenv("CMAKE_ARGS", "-DGGML_CUDA=on")
    assert len({here, elsewhere, bootstrap.wheel_folder()}) == 3


def test_a_cached_wheel_is_used_without_a_build(bootstrap, monkeypatch, tmp_path):
    monkeypatch.setattr(bootstrap, "build_wheel", lambda _folder: pytest.fail("built again"))
    wheel = fake_wheel(tmp_path / "wheels" / "key")
    assert bootstrap.engine_wheel(wheel.parent) == wheel


def test_a_damaged_wheel_is_built_again(bootstrap, monkeypatch, tmp_path):
    monkeypatch.setattr(bootstrap, "build_wheel", fake_wheel)
    wheel = fake_wheel(tmp_path / "wheels" / "key")
    wheel.write_bytes(wheel.read_bytes()[:20])
    assert bootstrap.cached_wheel(wheel.parent) is None
    assert bootstrap.engine_wheel(wheel.parent) == wheel
    assert zipfile.is_zipfile(wheel)


def test_a_build_that_fails_leaves_nothing_in_the_cache(bootstrap, monkeypatch, tmp_path):
    def fail(folder):
        (folder / "half.whl").write_bytes(b"PK")
        raise bootstrap.SetupError("no compiler")

    monkeypatch.setattr(bootstrap, "build_wheel", fail)
    folder = tmp_path / "wheels" / "key"
    with pytest.raises(bootstrap.SetupError):
        bootstrap.engine_wheel(folder)
    assert list(folder.parent.iterdir()) == []


def test_a_failed_build_says_which_tools_are_missing(bootstrap, monkeypatch):
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: None if name in {"c++", "cmake"} else f"/bin/{name}")
    assert bootstrap.build_hint("") == (
        "These are missing: build-essential, cmake. Install them and repeat the command."
    )


@pytest.mark.parametrize(
    ("log", "word"),
    [
        ("write: No space left on device", "disk"),
        ("c++: fatal error: Killed signal", "memory"),
        ("error: x", "compiler"),
    ],
)
def test_a_failed_build_is_explained_from_its_log(bootstrap, monkeypatch, log, word):
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: f"/bin/{name}")
    assert word in bootstrap.build_hint(log)


def test_an_error_is_a_sentence_and_a_failing_exit_code(bootstrap, monkeypatch, capsys):
    def fail(_mode):
        raise bootstrap.SetupError("No Python here.")

    monkeypatch.setattr(bootstrap, "prepare", fail)
    assert bootstrap.main(["run"]) == 1
    assert capsys.readouterr().err == "\nNo Python here.\n\n"


def test_an_unknown_mode_is_refused(bootstrap, capsys):
    assert bootstrap.main(["fly"]) == 2
    assert "usage" in capsys.readouterr().err


def test_a_stamp_of_other_pins_does_not_count(bootstrap, monkeypatch, tmp_path):
    monkeypatch.setattr(bootstrap, "VENV", tmp_path)
    monkeypatch.setattr(bootstrap, "venv_is_usable", lambda: True)
    monkeypatch.setattr(bootstrap, "missing_packages", lambda *_args, **_kwargs: [])
    assert not bootstrap.is_prepared("run")
    bootstrap.stamp("run").write_text(bootstrap.fingerprint("run"), encoding="utf-8")
    assert bootstrap.is_prepared("run")
    assert not bootstrap.is_prepared("test")
    bootstrap.stamp("run").write_text("an older fingerprint", encoding="utf-8")
    assert not bootstrap.is_prepared("run")


def test_the_tests_are_not_prepared_without_their_second_model(bootstrap, monkeypatch, tmp_path):
    monkeypatch.setattr(bootstrap, "VENV", tmp_path)
    monkeypatch.setattr(bootstrap, "venv_is_usable", lambda: True)
    monkeypatch.setattr(bootstrap, "missing_packages", lambda *_args, **_kwargs: [])
    bootstrap.stamp("test").write_text(bootstrap.fingerprint("test"), encoding="utf-8")
    assert not bootstrap.is_prepared("test")
    bootstrap.gemma_path().parent.mkdir(parents=True)
    bootstrap.gemma_path().write_bytes(b"GGUF")
    assert bootstrap.is_prepared("test")


def test_the_second_model_is_kept_in_the_cache_by_its_version(bootstrap, tmp_path):
    assert bootstrap.gemma_path() == tmp_path / "cache" / "cutaway" / "inputs" / "gemma-3-270m-q4_k_m-1.0.0.gguf"


@pytest.mark.parametrize(("mode", "is_fetched"), [("run", False), ("test", True)])
def test_only_the_tests_get_the_second_model(bootstrap, monkeypatch, tmp_path, mode, is_fetched):
    ran = []
    monkeypatch.setattr(bootstrap, "VENV", tmp_path)
    monkeypatch.setattr(bootstrap, "run", lambda command, _sentence: ran.append(Path(command[1]).name))
    for name in ("make_venv", "install_engine", "install_packages", "install_system_packages", "write_launcher"):
        monkeypatch.setattr(bootstrap, name, lambda *_args: None)
    monkeypatch.setattr(bootstrap, "missing_packages", lambda *_args, **_kwargs: [])
    monkeypatch.setattr(bootstrap, "engine_wheel", lambda _folder: None)
    bootstrap.prepare(mode)
    assert ran == (["gemma.py"] if is_fetched else [])
