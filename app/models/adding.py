"""Adding several files and folders to the library at once: what can be added is, and what cannot is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from app.errors import AppError, Words
from app.models.entry import ModelEntry
from app.models.library import Library

# A folder with this file is one model, not a folder of models.
_MODEL_FOLDER_FILE = "config.json"


@dataclass(frozen=True, slots=True)
class Added:
    """What came of adding files and folders.

    Attributes:
        entries: the models that are in the library now.
        folders: the folders that are to be looked through; scan() does it.
        problems: why a path was not added.
    """

    entries: list[ModelEntry] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)
    problems: dict[Path, Words] = field(default_factory=dict)


def is_folder_of_models(path: Path) -> bool:
    """Say whether this is a folder that may hold many models: no model of several files, and not named as a file."""
    return path.is_dir() and path.suffix.lower() != ".gguf" and not (path / _MODEL_FOLDER_FILE).is_file()


def add_paths(library: Library, paths: Sequence[Path]) -> Added:
    """Add each of these where it lies and return what came of it; one that cannot be added keeps no other back."""
    added = Added()
    for path in paths:
        try:
            if is_folder_of_models(path):
                library.add_folder(path)
                added.folders.append(path)
            else:
                added.entries.append(library.import_path(path))
        except AppError as error:
            added.problems[path] = error.words
    return added
