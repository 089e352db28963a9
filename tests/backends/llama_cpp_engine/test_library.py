"""Which llama.cpp is loaded: the installed program's where there is one, and then the best part of it."""

from __future__ import annotations

import pytest

from backends.llama_cpp_engine.library import choose_library, load_variants, loaded_variant


def test_the_tree_uses_the_package_s_own_library(tmp_path):
    environment: dict[str, str] = {}
    assert choose_library(environment, tmp_path / "engines") is None
    assert environment == {}
    assert load_variants(None) == ""


def test_an_installed_program_uses_the_library_beside_it_whatever_was_set_before(tmp_path):
    environment = {"LLAMA_CPP_LIB_PATH": "/elsewhere"}
    assert choose_library(environment, tmp_path) == tmp_path
    assert environment == {"LLAMA_CPP_LIB_PATH": str(tmp_path)}


def test_the_variant_is_the_one_that_ggml_says_it_loaded():
    lines = [
        "ggml_backend_load_best: /x/libggml-cpu-haswell.so score: 15\n",
        "load_backend: loaded CPU backend from /usr/lib/cutaway/engines/llama-cpu/libggml-cpu-zen4.so\n",
    ]
    assert loaded_variant(lines) == "zen4"
    assert loaded_variant(lines[:1]) == ""
    assert loaded_variant(["load_backend: loaded CPU backend from C:\\a b\\ggml-cpu-sse42.dll"]) == "sse42"


def test_a_folder_without_the_library_is_an_error_of_the_system(tmp_path):
    with pytest.raises(OSError, match="ggml"):
        load_variants(tmp_path)
