"""Models in any folder: looked for at every depth, with the caches of other programs understood where they are met.

Knows names and places; opens nothing but the short lists that those caches keep.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app.i18n import _
from app.models.model_name import plain_name, plain_owner, without_format
from app.models.source_candidate import Candidate, is_folder
from app.models.source_files import gguf_candidates, is_model_file, safetensors_candidate
from app.models.source_huggingface import is_hub_folder, repository_candidates
from app.models.source_ollama import is_ollama_folder, ollama_candidates
from app.models.source_search import Search, is_own_folder

_SYSTEM_NAMES = frozenset({"lost+found", "$RECYCLE.BIN", "System Volume Information", "__pycache__", "node_modules"})


@dataclass(frozen=True, slots=True)
class _Visit:
    """A folder to be listed: where it is, its real path, and the names of the folders between it and the root."""

    path: Path
    real: str
    names: tuple[str, ...]


def folder_candidates(search: Search, folder: Path, *, is_by_publisher: bool = False) -> Iterator[Candidate]:
    """Yield the models in a folder and all folders below it.

    Args:
        search: keeps the bounds.
        folder: where to begin.
        is_by_publisher: whether models lie at publisher/model/file, so that the folders name them.
    """
    walk = _Walk(search, is_by_publisher)
    yield from walk.visit(_Visit(folder, os.path.realpath(folder), ()))


class _Walk:
    """One walk; a folder that two links lead to is visited once.

    Attributes:
        _visited: real paths of folders.
        _count: how many models were yielded.
    """

    def __init__(self, search: Search, is_by_publisher: bool) -> None:
        self._search = search
        self._is_by_publisher = is_by_publisher
        self._visited: set[str] = set()
        self._count = 0

    def visit(self, here: _Visit) -> Iterator[Candidate]:
        """Yield the models of one folder, then those of the folders in it."""
        if here.real in self._visited:
            return
        self._visited.add(here.real)
        entries = self._search.entries(here.path)
        folders = [entry for entry in entries if is_own_folder(entry)]
        names = {entry.name for entry in folders}
        if is_hub_folder(here.path.name, names):
            yield from self._counted(repository_candidates(self._search, here.path))
            return
        if is_ollama_folder(names):
            yield from self._counted(ollama_candidates(self._search, here.path))
            return
        files = [entry for entry in entries if not is_own_folder(entry)]
        yield from self._counted(self._models_of(here, files))
        if len(here.names) >= self._search.limits.depth or any(entry.name == "model_index.json" for entry in files):
            return
        for entry in folders:
            yield from self._enter(here, entry.name, os.path.join(here.real, entry.name))  # noqa: PTH118
        for entry in files:
            if entry.is_symlink() and is_folder(Path(entry.path)):
                yield from self._follow(here, entry)

    def _models_of(self, here: _Visit, files: Sequence[os.DirEntry[str]]) -> Iterator[Candidate]:
        owner, name = self._publication(here)
        candidates: list[Candidate] = []
        paths = []
        for entry in files:
            if not is_model_file(entry.name):
                continue
            path = here.path / entry.name
            fault = self._search.link_fault(path) if entry.is_symlink() else ""
            if fault:
                candidates.append(Candidate(path, self._search.origin, (path,), owner=owner, fault=fault))
            elif not (entry.is_symlink() and is_folder(path)):
                paths.append(path)
        models, lone = gguf_candidates(paths, self._search.origin, owner=owner, name=name)
        self._search.skipped_count += lone
        yield from models
        yield from candidates
        inside = {entry.name for entry in files if not entry.is_symlink() or self._is_sound(here.path / entry.name)}
        folder_model = safetensors_candidate(here.path, inside, self._search.origin)
        if folder_model is not None:
            yield replace(folder_model, owner=owner, name=name)

    def _is_sound(self, link: Path) -> bool:
        return not self._search.link_fault(link)

    def _publication(self, here: _Visit) -> tuple[str, str]:
        """Return who published what lies in this folder, and as what; "" for what the folders do not tell."""
        if not self._is_by_publisher or len(here.names) < 2:
            return "", ""
        return plain_owner(here.names[0]), plain_name(without_format(here.names[1]))

    def _enter(self, here: _Visit, name: str, real: str) -> Iterator[Candidate]:
        if name.startswith(".") or name in _SYSTEM_NAMES or not self._search.may_enter(real):
            return
        before = self._count
        yield from self.visit(_Visit(here.path / name, real, (*here.names, name)))
        if is_model_file(name) and self._count == before:
            words = _("This is a folder, not a model file.")
            yield from self._counted([Candidate(here.path / name, self._search.origin, (), fault=words)])

    def _follow(self, here: _Visit, entry: os.DirEntry[str]) -> Iterator[Candidate]:
        path = here.path / entry.name
        real = os.path.realpath(path)
        if not self._search.is_inside(real):
            if not is_model_file(entry.name):  # that one is listed with its fault
                self._search.note_foreign(path)
            return
        yield from self._enter(here, entry.name, real)

    def _counted(self, candidates: Iterator[Candidate] | Sequence[Candidate]) -> Iterator[Candidate]:
        for candidate in candidates:
            self._count += 1
            self._search.count_model(self._count)
            yield candidate
