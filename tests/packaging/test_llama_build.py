"""Where the engine's build is kept, and what is taken of it."""

from __future__ import annotations

import shutil
import subprocess

import llama_build
import pytest

needs_compiler = pytest.mark.skipif(
    any(shutil.which(command) is None for command in ("c++", "cc", "strip", "readelf")), reason="there is no compiler"
)


@needs_compiler
def test_the_place_says_what_was_built_and_how(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = llama_build.engine_folder("1.0")
    assert first.parent == tmp_path / "cutaway" / "engines"
    assert first.name.startswith("llama-cpu-1.0-")
    monkeypatch.setattr(llama_build, "_FLAGS", (*llama_build._FLAGS, "-DX=1"))
    assert llama_build.engine_folder("1.0") != first


@needs_compiler
def test_what_is_built_is_not_built_again(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = llama_build.engine_folder("1.0")
    folder.mkdir(parents=True)
    monkeypatch.setattr(llama_build, "_build", lambda *_arguments: pytest.fail("builds"))
    monkeypatch.setattr(llama_build.shutil, "which", lambda name: name)
    assert llama_build.built_engine(tmp_path / "none.tar.gz", "1.0") == folder


@needs_compiler
def test_each_library_is_taken_once_under_the_name_it_is_asked_for(tmp_path):
    build = tmp_path / "bin"
    build.mkdir()
    for name, soname in (("libggml.so.0.25", "libggml.so.0"), ("libggml-cpu-zen4.so", "")):
        flags = [f"-Wl,-soname,{soname}"] if soname else []
        command = ["cc", "-shared", "-xc", "/dev/null", *flags, "-o", str(build / name)]
        subprocess.run(command, check=True)
    (build / "libggml.so.0").symlink_to("libggml.so.0.25")
    (build / "libggml.so").symlink_to("libggml.so.0")
    llama_build.collect(build, tmp_path / "out")
    found = {path.name: path.is_symlink() for path in (tmp_path / "out").iterdir()}
    assert found == {"libggml.so": True, "libggml.so.0": False, "libggml-cpu-zen4.so": False}
    assert (tmp_path / "out" / "libggml.so").readlink().name == "libggml.so.0"
