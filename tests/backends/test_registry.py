"""Backends are found by name; nothing heavy is imported by looking."""

from __future__ import annotations

import subprocess
import sys

import pytest

from backends import registry
from backends.echo_engine import EchoEngine
from tests.conftest import ROOT


def test_an_engine_is_made_by_its_name() -> None:
    assert isinstance(registry.create_engine("echo"), EchoEngine)


def test_an_unknown_name_is_an_error() -> None:
    with pytest.raises(KeyError):
        registry.create_engine("nothing")


def test_every_line_names_itself() -> None:
    assert all(name == backend.name for name, backend in registry.BACKENDS.items())


def test_the_version_is_the_installed_library_s() -> None:
    assert registry.BACKENDS["llama_cpp"].version == "0.3.36"
    missing = registry.Backend("x", "x", "x", "X", "no-such-distribution")
    assert missing.version == ""


def test_reading_the_table_imports_no_engine() -> None:
    source = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r}); import backends.registry; print('llama_cpp' in sys.modules)"
    )
    assert (
        subprocess.run([sys.executable, "-c", source], check=False, capture_output=True, text=True).stdout == "False\n"
    )


def test_a_backend_says_what_it_loads_and_how_before_anything_is_loaded() -> None:
    llama, torch, echo = (registry.BACKENDS[name] for name in ("llama_cpp", "torch", "echo"))
    assert llama.loads == {registry.GGUF}
    assert torch.loads == {registry.GGUF, registry.FOLDER}
    assert not echo.loads
    assert (llama.can_store("q8_0"), torch.can_store("q8_0"), echo.can_store("anything")) == (True, False, True)
    assert all(backend.packages for backend in registry.BACKENDS.values() if backend is torch)


def test_a_library_that_is_not_there_is_known() -> None:
    assert registry.BACKENDS["llama_cpp"].is_installed
    assert not registry.Backend("x", "x", "x", "X", "no-such-distribution").is_installed
