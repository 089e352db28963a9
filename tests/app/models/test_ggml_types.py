"""The tables of GGUF's types: against the facts of llama.cpp's own library where it is installed."""

from __future__ import annotations

import ctypes
import importlib.util
from pathlib import Path

import pytest

from app.models.ggml_types import FILE_TYPES, GGML_TYPES, SCALAR_TYPES


def ggml_library() -> ctypes.CDLL:
    """Return llama.cpp's base library, found without importing the package that holds it."""
    found = importlib.util.find_spec("llama_cpp")
    if found is None or not found.submodule_search_locations:
        pytest.skip("llama-cpp-python is not installed")
    folder = Path(found.submodule_search_locations[0]) / "lib"
    path = next((folder / name for name in ("libggml-base.so", "libggml-base.dylib") if (folder / name).exists()), None)
    if path is None:
        pytest.skip("llama.cpp's base library is not where it is expected")
    library = ctypes.CDLL(str(path))
    library.ggml_type_name.restype = ctypes.c_char_p
    library.ggml_type_size.restype = ctypes.c_size_t
    library.ggml_blck_size.restype = ctypes.c_int64
    return library


def test_every_type_has_the_name_and_the_block_of_llama_cpp() -> None:
    library = ggml_library()
    theirs = {
        number: (library.ggml_type_name(number).decode().upper(), library.ggml_blck_size(number))
        for number in GGML_TYPES
    }
    sizes = {number: library.ggml_type_size(number) for number in GGML_TYPES}
    assert {number: (kind.name, kind.block_elements) for number, kind in GGML_TYPES.items()} == theirs
    assert {number: kind.block_bytes for number, kind in GGML_TYPES.items()} == sizes


def test_no_type_that_llama_cpp_reads_is_missing() -> None:
    # ggml_blck_size is 0 for the numbers of removed types; 43 is GGML_TYPE_COUNT of this version.
    library = ggml_library()
    assert {number for number in range(43) if library.ggml_blck_size(number) > 0} == set(GGML_TYPES)


@pytest.mark.parametrize(
    ("number", "elements", "size_bytes"),
    [(0, 576, 2_304), (2, 64, 36), (3, 576 * 1_536, 552_960), (8, 576 * 49_152, 30_081_024), (12, 512, 288)],
)
def test_sizes_follow_from_whole_blocks(number: int, elements: int, size_bytes: int) -> None:
    assert GGML_TYPES[number].size_bytes(elements) == size_bytes


def test_file_types_are_those_people_know() -> None:
    assert (FILE_TYPES[3], FILE_TYPES[7], FILE_TYPES[15], FILE_TYPES[32]) == ("Q4_1", "Q8_0", "Q4_K_M", "BF16")


def test_the_scalar_types_leave_out_texts_and_arrays() -> None:
    assert sorted(SCALAR_TYPES) == [0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12]
