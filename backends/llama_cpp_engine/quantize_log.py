"""What llama.cpp's log tells while it quantizes: which tensor it is at, what that becomes, and why it gave up.

llama_model_quantize has no progress callback and returns no sizes; its log lines name every tensor. Sizes in them are
rounded, so they are computed again from the shapes and types that the same lines name.
"""

from __future__ import annotations

import ctypes
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import llama_cpp as llama

_LEVEL_WARN, _LEVEL_ERROR, _LEVEL_CONTINUED = 3, 4, 5
# "[   2/ 272]  blk.0.attn_k.weight  - [  576,   192,     1,     1], type =   q4_1, "
_TENSOR = re.compile(
    r"\[ *(?P<number>\d+)/ *(?P<count>\d+)\] +(?P<name>\S+) +- \[(?P<dims>[\d, ]+)\], type = +(?P<type>\S+),"
)
_BECOMES = re.compile(r"MiB -> .*MiB \((?P<type>\S+)\)")  # of a dry run
_FALLBACKS = re.compile(r"WARNING: (\d+) of \d+ tensor\(s\) required fallback")
_FAILED = re.compile(r"failed to quantize: (?P<reason>.*)", re.DOTALL)
_NEEDS_IMPORTANCE = "will require an imatrix"


@dataclass(slots=True)
class TensorLine:
    """One tensor as a log line names it.

    Attributes:
        name: of it.
        dims: its four dimensions, columns first.
        type_name: how it is stored in the source, in lower case.
        new_type_name: how it will be stored.
    """

    name: str
    dims: tuple[int, ...]
    type_name: str
    new_type_name: str

    @property
    def is_converted(self) -> bool:
        """Whether its weights are stored anew, after a dry run."""
        return self.new_type_name != self.type_name

    @property
    def elements(self) -> int:
        """How many weights it has."""
        product = 1
        for dim in self.dims:
            product *= dim
        return product


class QuantizeLog:
    """Reads llama.cpp's log while it quantizes; install() it, and another log afterwards.

    Attributes:
        tensors: those that were named so far, in order; new_type_name is right after a dry run only.
        fallback_tensors: how many are stored in another type than the quantization gives them.
        needs_importance: whether a dry run said that this quantization needs an importance matrix.
        reason: why it gave up; "" when it did not.
        problems: warnings and errors, one a line.
    """

    def __init__(self, on_tensor: Callable[[int], None]) -> None:
        """Make a log.

        Args:
            on_tensor: told how many tensors are done, whenever the next one begins.
        """
        self.tensors: list[TensorLine] = []
        self.fallback_tensors = 0
        self.needs_importance = False
        self.reason = ""
        self.problems: list[str] = []
        self._on_tensor = on_tensor
        self._level = 0
        self._callback = llama.llama_log_callback(self._on_line)

    def install(self) -> None:
        """Send llama.cpp's log here."""
        llama.llama_log_set(self._callback, ctypes.c_void_p(0))

    def _on_line(self, level: int, text: bytes, _user_data: object) -> None:
        self._level = self._level if level == _LEVEL_CONTINUED else level
        self.read(self._level, text.decode(errors="replace"))

    def read(self, level: int, line: str) -> None:
        """Take one line, or a piece of one."""
        if match := _TENSOR.search(line):
            self._on_tensor(len(self.tensors))
            dims = tuple(int(dim) for dim in match["dims"].split(","))
            self.tensors.append(TensorLine(match["name"], dims, match["type"], match["type"]))
        elif (match := _BECOMES.search(line)) and self.tensors:
            self.tensors[-1].new_type_name = match["type"]
        elif match := _FALLBACKS.search(line):
            self.fallback_tensors = int(match[1])
        elif _NEEDS_IMPORTANCE in line:
            self.needs_importance = True
        elif match := _FAILED.search(line):
            self.reason = match["reason"].strip()
        if level >= _LEVEL_WARN and (line := line.strip()):
            self.problems.append(line)
            if level >= _LEVEL_ERROR:
                sys.stderr.write(f"llama.cpp: {line}\n")


def type_numbers(type_name: Callable[[int], bytes | None], count: int) -> Mapping[str, int]:
    """Return ggml's types by their names in log lines.

    Args:
        type_name: ggml_type_name.
        count: how many types there are; some numbers are not in use.
    """
    names = ((number, type_name(number)) for number in range(count))
    return {name.decode(): number for number, name in names if name}
