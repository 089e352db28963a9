"""How many bytes the header of a GGUF will take that does not exist yet: the source's, with what quantizing changes.

Built with ggml's own functions in memory, as llama.cpp builds it when it writes, so that a dry run tells the exact size
of a file. Reads headers and no weights.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from backends.errors import EngineError, ErrorCode
from backends.llama_cpp_engine.ggml_calls import InitParams, ggml_calls
from backends.llama_cpp_engine.repacking import split_parts

_U32, _STRING = 4, 8  # gguf_type
_QUANTIZATION_VERSION: Final = 2  # GGML_QNT_VERSION
_SPLIT_KEYS: Final = ("split.no", "split.count", "split.tensors.count")


class GgufDraft:
    """The header of a model file, of a split set all of them; used as a context manager."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._calls = ggml_calls()
        self._headers: list[int] = []
        self._contexts: list[ctypes.c_void_p] = []

    def __enter__(self) -> GgufDraft:
        """Open the files; raises EngineError, LOAD_FAILED."""
        for part in split_parts(self._path):
            context = ctypes.c_void_p()
            header = self._calls["gguf_init_from_file"](os.fsencode(part), InitParams(True, ctypes.pointer(context)))
            if not header:
                self._close()
                raise EngineError(ErrorCode.LOAD_FAILED, path=str(part), detail="its header cannot be read")
            self._headers.append(header)
            self._contexts.append(context)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Free everything."""
        self._close()

    def number(self, key: str, absent: int = -1) -> int:
        """Return an unsigned number of 32 bits of the metadata."""
        place = self._find(key, _U32)
        return absent if place < 0 else int(self._calls["gguf_get_val_u32"](self._headers[0], place))

    def text(self, key: str) -> str:
        """Return a text of the metadata; "" when there is none."""
        place = self._find(key, _STRING)
        if place < 0:
            return ""
        raw: bytes = self._calls["gguf_get_val_str"](self._headers[0], place)
        return raw.decode(errors="replace")

    def header_bytes(self, file_type: int, values: Mapping[str, str | int]) -> int:
        """Return what the header of the new file takes, its padding included.

        Args:
            file_type: llama.cpp's number of the quantization.
            values: what is set besides, over what is there.
        """
        call = self._calls
        draft = call["gguf_init_empty"]()
        try:
            call["gguf_set_kv"](draft, self._headers[0])
            call["gguf_set_val_u32"](draft, b"general.quantization_version", _QUANTIZATION_VERSION)
            call["gguf_set_val_u32"](draft, b"general.file_type", file_type)
            for key in _SPLIT_KEYS:
                call["gguf_remove_key"](draft, key.encode())
            for key, value in values.items():
                if isinstance(value, str):
                    call["gguf_set_val_str"](draft, key.encode(), value.encode())
                else:
                    call["gguf_set_val_u32"](draft, key.encode(), value)
            for context in self._contexts:
                self._add_tensors(draft, context)
            return int(call["gguf_get_meta_size"](draft))
        finally:
            call["gguf_free"](draft)

    def _add_tensors(self, draft: Any, context: ctypes.c_void_p) -> None:
        tensor = self._calls["ggml_get_first_tensor"](context)
        while tensor:
            self._calls["gguf_add_tensor"](draft, tensor)
            tensor = self._calls["ggml_get_next_tensor"](context, tensor)

    def _find(self, key: str, kind: int) -> int:
        """Return where a value of this kind stands; -1 when there is none, or one of another kind."""
        place = int(self._calls["gguf_find_key"](self._headers[0], key.encode()))
        is_there = place >= 0 and self._calls["gguf_get_kv_type"](self._headers[0], place) == kind
        return place if is_there else -1

    def _close(self) -> None:
        for header in self._headers:
            self._calls["gguf_free"](header)
        for context in self._contexts:
            self._calls["ggml_free"](context)
        self._headers, self._contexts = [], []
