"""Which build of llama.cpp a worker uses: the one beside the installed program, else the Python package's own.

An installed Cutaway carries llama.cpp once, with a library for each kind of processor; ggml chooses among them when it
is asked to. From the tree the package's own build is used, which was made for this processor. Imports no llama_cpp:
the choice must be made before that is loaded.
"""

from __future__ import annotations

import ctypes
import os
import re
import sys
from collections.abc import MutableMapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path

# Where llama_cpp looks for its library instead of in its own folder.
_LIBRARY_VARIABLE = "LLAMA_CPP_LIB_PATH"
_BUNDLED_FOLDER = Path(__file__).resolve().parent.parent.parent / "engines" / "llama-cpu"

_LOG_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
_GGML_NAMES = {"win32": "ggml.dll", "darwin": "libggml.dylib"}
_LOADED_LINE = re.compile(r"loaded CPU backend from .*?ggml-cpu-(?P<variant>[a-z0-9_]+)\.")


def choose_library(
    environment: MutableMapping[str, str] | None = None, bundled_folder: Path = _BUNDLED_FOLDER
) -> Path | None:
    """Have llama_cpp load the installed program's library, if there is one; call it before llama_cpp is imported.

    Args:
        environment: what llama_cpp reads; None takes the process's own.
        bundled_folder: where an installed program keeps the library.

    Returns:
        The library's folder, None for the package's own.
    """
    environment = os.environ if environment is None else environment
    if not bundled_folder.is_dir():
        return None
    environment[_LIBRARY_VARIABLE] = str(bundled_folder)
    return bundled_folder


@cache  # once a process: what is loaded stays, also for the next model
def load_variants(folder: Path | None) -> str:
    """Have ggml load the best of its libraries for this processor from the folder, and return that one's name.

    llama_cpp never makes this call. Without it, a ggml that is built in parts knows no processor at all, and no model
    loads. The path is the one given to llama_cpp, so that the loader finds the same ggml and not a second one. ggml
    tells what it loaded in its log only; whoever wants the log afterwards asks for it after this call.

    Args:
        folder: where the libraries lie; None when the package's own library is used, which is of one piece.

    Returns:
        The processor that the loaded library was built for, such as "zen4"; "" for none.

    Raises:
        OSError: the library is not there or cannot be loaded.
    """
    if folder is None:
        return ""
    lines: list[str] = []
    ggml = ctypes.CDLL(str(folder / _GGML_NAMES.get(sys.platform, "libggml.so")))
    ggml.ggml_log_set.argtypes = [_LOG_CALLBACK, ctypes.c_void_p]
    ggml.ggml_log_set.restype = None
    ggml.ggml_backend_load_all_from_path.argtypes = [ctypes.c_char_p]
    ggml.ggml_backend_load_all_from_path.restype = None
    callback = _LOG_CALLBACK(lambda _level, text, _user_data: lines.append(text.decode(errors="replace")))
    ggml.ggml_log_set(callback, None)
    try:
        ggml.ggml_backend_load_all_from_path(os.fsencode(folder))
    finally:
        ggml.ggml_log_set(_LOG_CALLBACK(), None)  # ggml's own again: ours ends with this call
    return loaded_variant(lines)


def loaded_variant(lines: Sequence[str]) -> str:
    """Return the variant that these lines of ggml's log tell of; "" for none."""
    return next((match["variant"] for line in reversed(lines) if (match := _LOADED_LINE.search(line))), "")


def engine_variant(variant: str, system_info: str) -> str:
    """Return the build in words: "llama.cpp 0.3.36 · CPU variant zen4", or "llama.cpp 0.3.36 · AVX512".

    Args:
        variant: the processor that the library was built for; "" when there was nothing to choose from.
        system_info: llama.cpp's list of instruction sets; the widest in use is named then.
    """
    name = f"llama.cpp {metadata.version('llama-cpp-python')}"
    if variant:
        return f"{name} · CPU variant {variant}"
    flags = {name.strip().rpartition(" ")[2] for name in system_info.replace("= 1", "").split("|")}
    for widest in ("AVX512_BF16", "AVX512_VNNI", "AVX512", "AVX2", "AVX", "SSSE3", "SVE", "NEON"):
        if widest in flags:
            return f"{name} · {widest}"
    return name
