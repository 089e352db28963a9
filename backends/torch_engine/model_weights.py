"""Weights that are read one by one, when the model asks for each: no second copy of a model is ever in memory.

transformers takes such weights in the place of tensors: it asks for `weight[...]` and moves what comes to the model's
device and number format. Every weight is checked on its way: a file that became shorter, and numbers that are none.
Files are read, never mapped: a file that is cut short meanwhile gives an error, where a mapping would end the process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import torch

from backends import protocol
from backends.engine import Report
from backends.errors import EngineError, ErrorCode
from backends.torch_engine.folder_config import damaged
from backends.torch_engine.folder_headers import FileTensor

_PROGRESS_INTERVAL_S = 0.05
_CHECK_ELEMENTS = 2**24  # one piece of a weight, so that the check takes little memory

DTYPES: Mapping[str, torch.dtype] = MappingProxyType(
    {
        "F64": torch.float64,
        "F32": torch.float32,
        "F16": torch.float16,
        "BF16": torch.bfloat16,
        "I64": torch.int64,
        "I32": torch.int32,
        "I16": torch.int16,
        "I8": torch.int8,
        "U8": torch.uint8,
        "BOOL": torch.bool,
    }
)
DTYPE_NAMES: Mapping[torch.dtype, str] = MappingProxyType({dtype: name for name, dtype in DTYPES.items()})


class LoadProgress:
    """Says how far a load is, a few times a second.

    Attributes:
        total_bytes: of all weights in the file.
    """

    def __init__(self, total_bytes: int, report: Report) -> None:
        self.total_bytes = max(total_bytes, 1)
        self._report = report
        self._done_bytes = 0
        self._reported_s = 0.0

    def add(self, size_bytes: int) -> None:
        """Count the bytes of a weight that was read."""
        self._done_bytes += size_bytes
        now_s = time.monotonic()
        if now_s - self._reported_s > _PROGRESS_INTERVAL_S:
            self._reported_s = now_s
            self._say(self._done_bytes / self.total_bytes)

    def finish(self) -> None:
        """Say that everything is read."""
        self._say(1.0)

    def _say(self, done: float) -> None:
        self._report(protocol.Progress(phase="load", done=min(done, 1.0), total=1.0))


@dataclass(frozen=True)
class LazyWeight:
    """A weight that is read when it is asked for.

    Attributes:
        name: for the error when its numbers are none.
        shape: [..], of the tensor that comes.
        dtype: of that tensor, in safetensors' words.
        model: the model's path, for the error.
        read: returns the tensor.
        size_bytes: what it takes in the file.
        progress: told when it was read.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    model: Path
    read: Callable[[], torch.Tensor]
    size_bytes: int
    progress: LoadProgress

    def __getitem__(self, _key: object) -> torch.Tensor:
        """Return the tensor, read now; transformers always asks for the whole.

        Raises:
            EngineError: HEADER_INVALID or FILE_UNREADABLE.
        """
        tensor = self.read()
        if not is_finite(tensor):
            raise damaged(self.model, f"the weights of {self.name[:80]!a} hold numbers that are none (NaN or infinity)")
        self.progress.add(self.size_bytes)
        return tensor

    def get_shape(self) -> list[int]:
        """Return the shape, as a slice of safetensors does."""
        return list(self.shape)

    def get_dtype(self) -> str:
        """Return the dtype, as a slice of safetensors does."""
        return self.dtype


def folder_weights(tensors: Mapping[str, FileTensor], model: Path, progress: LoadProgress) -> dict[str, LazyWeight]:
    """Return the weights of a folder's files by name."""

    def lazy(name: str, tensor: FileTensor) -> LazyWeight:
        return LazyWeight(
            name, tensor.shape, tensor.dtype, model, lambda: read_tensor(tensor), tensor.size_bytes, progress
        )

    return {name: lazy(name, tensor) for name, tensor in tensors.items()}


def read_tensor(tensor: FileTensor) -> torch.Tensor:
    """Return a tensor of a safetensors file in memory of its own.

    Raises:
        EngineError: FILE_UNREADABLE; the file is gone, or shorter than it was.
    """
    made = torch.empty(tensor.shape, dtype=DTYPES[tensor.dtype])
    if tensor.size_bytes:
        read_into(tensor.path, tensor.offset, made.reshape(-1).view(torch.uint8).numpy().data)
    return made


def read_into(path: Path, offset: int, target: memoryview) -> None:
    """Fill a piece of memory from a place in a file.

    Raises:
        EngineError: FILE_UNREADABLE; the file is gone, or shorter than it was.
    """
    try:
        with path.open("rb", buffering=0) as file:
            file.seek(offset)
            done = 0
            while done < len(target):
                count = file.readinto(target[done:])
                if not count:
                    raise EngineError(
                        ErrorCode.FILE_UNREADABLE, path=str(path), detail="it became shorter while it was read"
                    )
                done += count
    except FileNotFoundError as error:
        raise EngineError(ErrorCode.FILE_MISSING, path=str(path)) from error
    except OSError as error:
        raise EngineError(ErrorCode.FILE_UNREADABLE, path=str(path), detail=error.strerror or str(error)) from error


def is_finite(tensor: torch.Tensor) -> bool:
    """Return whether every number of a tensor is one; whole numbers always are."""
    if not tensor.is_floating_point() or not tensor.numel():
        return True
    flat = tensor.reshape(-1)
    for begin in range(0, len(flat), _CHECK_ELEMENTS):
        least, most = torch.aminmax(flat[begin : begin + _CHECK_ELEMENTS])  # NaN is passed on
        if not bool(torch.isfinite(least) & torch.isfinite(most)):
            return False
    return True
