"""The check before any worker sees a model: is its backend there, does it take such models, can the header be true.

trust.md S-02: a file that cannot be true reaches no engine. Knows headers and the registry; starts nothing.
"""

from __future__ import annotations

from pathlib import Path

from app.engines.backend_choice import check_backend
from app.models.byte_source import HeaderError
from app.models.safetensors_header import read_safetensors
from app.models.split_set import read_set
from backends.errors import EngineError, ErrorCode
from backends.registry import BACKENDS, FOLDER, GGUF

_WEIGHTS = (".safetensors", ".safetensors.index.json")


def checked_path(path: Path, backend: str) -> Path:
    """Return what an engine is to open: of a split GGUF the first part, of safetensors their folder.

    Raises:
        EngineError: why no engine may see it.
    """
    if not BACKENDS[backend].loads:  # its models are scripts of ours, or nothing at all
        return path
    kind = kind_of(path)
    check_backend(backend, str(path), kind)
    try:
        return _checked_folder(path) if kind == FOLDER else read_set(path).parts[0]
    except HeaderError as error:
        raise EngineError(error.code, path=str(path), detail=str(error)) from error


def kind_of(path: Path) -> str:
    """Return the kind of model that lies at a path, going by its name and whether it is a folder."""
    return FOLDER if path.name.lower().endswith(_WEIGHTS) or path.is_dir() else GGUF


def _checked_folder(path: Path) -> Path:
    model = read_safetensors(path)
    if model.runs_code:
        raise EngineError(ErrorCode.RUNS_CODE, path=str(path), detail=model.runs_code)
    return path if path.is_dir() else path.parent
