"""llama.cpp's own log: kept for the memory split and for the reason of a failure, and written to stderr.

llama.cpp reports its buffers and its load errors in log lines only; the functions that would return them are C++.
Debug lines are dropped: there are thousands a load.
"""

from __future__ import annotations

import contextlib
import ctypes
import re
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import llama_cpp as llama

from backends import protocol

_LEVEL_DEBUG, _LEVEL_WARN, _LEVEL_ERROR, _LEVEL_CONTINUED = 1, 3, 4, 5
_METADATA_LINE = "llama_model_loader: - kv"
_BUFFER_LINE = re.compile(
    r":\s+(?P<device>\S+)\s+(?P<what>model|KV|RS|compute|output)\s+buffer size =\s+(?P<mib>[\d.]+) MiB"
)
# The size of a whole cache. Under no_alloc its buffers are dummies of 0 MiB, and only this line tells.
_CACHE_LINE = re.compile(
    r"(?P<what>llama_kv_cache|llama_memory_recurrent)\S*: size =\s+(?P<mib>[\d.]+) MiB \(\s*\d+ cells"
)
_NO_ALLOC_LINE = re.compile(r": no_alloc\s+= 1$")
_KEPT_LINES = 2000


@dataclass(frozen=True, slots=True)
class BufferLine:
    """A buffer that llama.cpp says it holds.

    Attributes:
        device: where it lies, such as "CPU" or "Vulkan0".
        what: "model", "KV", "RS", "compute" or "output".
        size_bytes: rounded by llama.cpp to 0.01 MiB.
    """

    device: str
    what: str
    size_bytes: int


class EngineLog:
    """Collects llama.cpp's log lines.

    Class attributes:
        _installed: the one that llama.cpp writes to; it must outlive every call into the library.

    Attributes:
        _lines: (level, text) of the newest lines at INFO and above.
        _is_held: lines go to nobody for now.
    """

    _installed: ClassVar[EngineLog | None] = None

    def __init__(self) -> None:
        self._lines: deque[tuple[int, str]] = deque(maxlen=_KEPT_LINES)
        self._level = 0
        self._is_held = False
        self._callback = llama.llama_log_callback(self._on_line)

    def install(self) -> None:
        """Send llama.cpp's log here, and no longer to another."""
        llama.llama_log_set(self._callback, ctypes.c_void_p(0))
        EngineLog._installed = self

    def clear(self) -> None:
        """Forget the lines so far."""
        self._lines.clear()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Forget the lines of what is done meanwhile, unless it raises: what llama.cpp calls an error may be wanted."""
        lines = self._lines.copy()
        self._is_held = True
        try:
            yield
        finally:
            self._is_held = False
        self._lines = lines

    def problems(self) -> list[str]:
        """Return the warnings and errors since the last clear, oldest first."""
        return [text for level, text in self._lines if level >= _LEVEL_WARN]

    def events(self) -> list[protocol.LogRecorded]:
        """Return the lines since the last clear as events; the dump of the file's metadata is left out."""
        names = {_LEVEL_WARN: "warning", _LEVEL_ERROR: "error"}
        return [
            protocol.LogRecorded(names.get(level, "info"), text)
            for level, text in self._lines
            if not text.startswith(_METADATA_LINE)
        ]

    def buffers(self) -> list[BufferLine]:
        """Return the buffers reported since the last clear."""
        return parse_buffers([text for _, text in self._lines])

    def says_no_alloc(self) -> bool:
        """Say whether the model read since the last clear takes no memory: its buffers are dummies."""
        return any(_NO_ALLOC_LINE.search(text) for _, text in self._lines)

    def _on_line(self, level: int, text: bytes, _user_data: object) -> None:
        # A continued line has the level of the line it continues.
        self._level = self._level if level == _LEVEL_CONTINUED else level
        if self._level <= _LEVEL_DEBUG:
            return
        line = text.decode(errors="replace").rstrip()
        if line and line != ".":
            self._lines.append((self._level, line))
            if not self._is_held and (self._level >= _LEVEL_WARN or _BUFFER_LINE.search(line)):
                sys.stderr.write(f"llama.cpp: {line}\n")


def parse_buffers(lines: list[str]) -> list[BufferLine]:
    """Return the buffers named in llama.cpp's log lines; a cache whose buffers are dummies has its whole size."""
    found: list[BufferLine] = []
    for line in lines:
        if match := _BUFFER_LINE.search(line):
            size_bytes = round(float(match["mib"]) * 1024 * 1024)
            found.append(BufferLine(match["device"], match["what"], size_bytes))
        elif match := _CACHE_LINE.search(line):
            what = "KV" if match["what"] == "llama_kv_cache" else "RS"
            if found and found[-1].what == what and not found[-1].size_bytes:
                size_bytes = round(float(match["mib"]) * 1024 * 1024)
                found[-1] = BufferLine(found[-1].device, what, size_bytes)
    return found


def memory_split(buffers: list[BufferLine], weights_bytes: int) -> protocol.MemorySplit:
    """Return the buffers by owner; the device is the one that really holds most of the weights."""
    by_owner = dict.fromkeys(("model", "KV", "RS", "compute", "output"), 0)
    by_device: dict[str, int] = {}
    for buffer in buffers:
        by_owner[buffer.what] += buffer.size_bytes
        if buffer.what == "model":
            device = buffer.device.partition("_")[0]  # CPU_Mapped and CPU_REPACK are the CPU
            by_device[device] = by_device.get(device, 0) + buffer.size_bytes
    return protocol.MemorySplit(
        weights_bytes=max(weights_bytes, by_owner["model"]),
        kv_reserved_bytes=by_owner["KV"] + by_owner["RS"],
        compute_bytes=by_owner["compute"],
        output_bytes=by_owner["output"],
        device=max(by_device, key=lambda name: by_device[name]) if by_device else "CPU",
    )
