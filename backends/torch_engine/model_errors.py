"""What other libraries raise over a model that lies, put into one EngineError.

transformers, tokenizers and torch answer a config that cannot be true with whatever their code stumbles over. The
kinds are listed here one by one; what is not in the list is a mistake of ours and stays what it is.
"""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from huggingface_hub.errors import StrictDataclassError

from backends.errors import EngineError, ErrorCode

_MAX_DETAIL = 200
_KINDS = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    OSError,
    StrictDataclassError,  # a config's field of another type
    RuntimeError,  # NotImplementedError and RecursionError too
    TypeError,
    ValueError,
)
# The tokenizers library raises Exception itself, and a panic of its Rust code is a kind of its own.
_RUST_PANIC = "pyo3_runtime"
_REFUSED_BYTES = "tried to allocate"


class ForeignErrors:
    """Turns what a library raises inside the block into an EngineError.

    Attributes:
        path: of the model.
        doing: what was tried, such as "its tokenizer cannot be read"; the library's reason follows it.
    """

    def __init__(self, path: Path, doing: str) -> None:
        self.path = path
        self.doing = doing

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        """Raise EngineError in the place of a library's error; an EngineError passes as it is."""
        if error is None or kind is None or isinstance(error, EngineError):
            return
        if isinstance(error, MemoryError) or _REFUSED_BYTES in str(error).lower():
            raise EngineError(ErrorCode.OUT_OF_MEMORY, needed_bytes=0, free_bytes=0) from error
        if kind is Exception or kind.__module__ == _RUST_PANIC or isinstance(error, _KINDS):
            raise EngineError(
                ErrorCode.LOAD_FAILED, path=str(self.path), detail=f"{self.doing}: {short_reason(error)}"
            ) from error


def short_reason(error: BaseException) -> str:
    """Return a library's reason on one line; it may quote the model's files."""
    text = " ".join(str(error).split()).rstrip(".") or type(error).__name__
    text = ascii(text)[1:-1]
    return text if len(text) <= _MAX_DETAIL else text[: _MAX_DETAIL - 1] + "…"
