"""llama.cpp's own log: kept for the memory split and for the reason of a failure, and written to stderr.

llama.cpp reports its buffers and its load errors in log lines only; the functions that would return them are C++.
Debug lines are dropped: there are thousands a load.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections import deque
from dataclasses import dataclass

import llama_cpp as llama

from backends import protocol

_LEVEL_DEBUG, _LEVEL_WARN, _LEVEL_ERROR, _LEVEL_CONTINUED = 1, 3, 4, 5
_METADATA_LINE = "llama_model_loader: - kv"
_BUFFER_LINE = re.compile(
    r":\s+(?P<device>\S+)\s+(?P<what>model|KV|RS|compute|output)\s+buffer size =\s+(?P<mib>[\d.]+) MiB"
)
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
    """Collects llama.cpp's log lines; install once a process, keep alive as long as the library is in use.

    Attributes:
        _lines: (level, text) of the newest lines at INFO and above.
    """

    def __init__(self) -> None:
        self._lines: deque[tuple[int, str]] = deque(maxlen=_KEPT_LINES)
        self._level = 0
        self._callback = llama.llama_log_callback(self._on_line)

    def install(self) -> None:
        """Send llama.cpp's log here."""
        llama.llama_log_set(self._callback, ctypes.c_void_p(0))

    def clear(self) -> None:
        """Forget the lines so far."""
        self._lines.clear()

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

    def _on_line(self, level: int, text: bytes, _user_data: object) -> None:
        # A continued line has the level of the line it continues.
        self._level = self._level if level == _LEVEL_CONTINUED else level
        if self._level <= _LEVEL_DEBUG:
            return
        line = text.decode(errors="replace").rstrip()
        if line and line != ".":
            self._lines.append((self._level, line))
            if self._level >= _LEVEL_WARN or _BUFFER_LINE.search(line):
                sys.stderr.write(f"llama.cpp: {line}\n")


def parse_buffers(lines: list[str]) -> list[BufferLine]:
    """Return the buffers named in llama.cpp's log lines."""
    found = []
    for line in lines:
        if match := _BUFFER_LINE.search(line):
            size_bytes = round(float(match["mib"]) * 1024 * 1024)
            found.append(BufferLine(match["device"], match["what"], size_bytes))
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
