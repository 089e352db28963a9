"""Models in the Hugging Face cache: `models--owner--name`, with snapshots of links into blobs.

Every blob is listed once: of a file that two snapshots hold, the one of `refs/main` counts, else the newest. Opens
`refs/main` and the first bytes of unfinished blobs only.
Reference: https://huggingface.co/docs/huggingface_hub/guides/manage-cache
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

from app.i18n import _
from app.models.bounded_file import HeaderError, open_bounded
from app.models.model_name import plain_name, plain_owner, without_format
from app.models.source_candidate import Candidate, is_folder, is_link, read_small, size_of
from app.models.source_files import by_folder, gguf_candidates, is_model_file, safetensors_candidate
from app.models.source_search import Search, is_own_folder

_PREFIX = "models--"
_DEPTH = 4  # folders inside a publication
_REVISION_BYTES = 256


def is_hub_folder(name: str, folders: Collection[str]) -> bool:
    """Whether a folder is one publication in the cache, by its name and the names of the folders in it."""
    return name.startswith(_PREFIX) and bool({"snapshots", "blobs"} & set(folders))


def hub_candidates(search: Search, hub: Path) -> Iterator[Candidate]:
    """Yield the models of a cache."""
    for entry in search.entries(hub):
        if entry.name.startswith(_PREFIX) and is_own_folder(entry):
            yield from repository_candidates(search, Path(entry.path))


def repository_candidates(search: Search, folder: Path) -> Iterator[Candidate]:
    """Yield the models of one publication."""
    owner, _separator, name = folder.name.removeprefix(_PREFIX).rpartition("--")
    owner, called = plain_owner(owner), plain_name(without_format(name))
    seen_names: set[Path] = set()
    seen_blobs: set[str] = set()
    for snapshot in _snapshots(search, folder):
        files = list(_files(search, snapshot, _DEPTH))
        for candidate in _snapshot_candidates(search, snapshot, files, (owner, called)):
            names = {part.relative_to(snapshot) for part in candidate.parts}
            blobs = {os.path.realpath(part) for part in candidate.parts}
            if names <= seen_names or blobs <= seen_blobs:
                continue
            seen_names |= names
            seen_blobs |= blobs
            yield candidate
    yield from _unfinished(search, folder, owner, called)


def _snapshots(search: Search, folder: Path) -> list[Path]:
    """Return the snapshots, the one of refs/main first, then the newest."""
    main = read_small(folder / "refs" / "main", _REVISION_BYTES).decode("ascii", "replace").strip()
    dated = []
    for entry in search.entries(folder / "snapshots") if is_folder(folder / "snapshots") else []:
        if is_own_folder(entry):
            dated.append((entry.name != main, -_changed_ns(entry), entry.path))
    return [Path(path) for _other, _age, path in sorted(dated)]


def _changed_ns(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_mtime_ns
    except OSError:
        return 0


def _files(search: Search, folder: Path, depth: int) -> Iterator[Path]:
    for entry in search.entries(folder):
        if is_own_folder(entry):
            if depth > 0:
                yield from _files(search, Path(entry.path), depth - 1)
        else:
            yield Path(entry.path)


def _snapshot_candidates(
    search: Search, snapshot: Path, files: list[Path], called: tuple[str, str]
) -> Iterator[Candidate]:
    owner, name = called
    sound: list[Path] = []
    for path in files:
        fault = search.link_fault(path) if is_link(path) else ""
        if not fault:
            sound.append(path)
        elif is_model_file(path.name):
            yield Candidate(path, search.origin, (path,), owner=owner, fault=fault)
    ggufs = [path for path in sound if is_model_file(path.name)]
    models, lone = gguf_candidates(ggufs, search.origin, owner=owner, name=name)
    search.skipped_count += lone
    yield from models
    is_for_pictures = snapshot / "model_index.json" in sound
    for folder, inside in by_folder(sound).items():
        names = {path.name for path in inside}
        candidate = None if is_for_pictures else safetensors_candidate(folder, names, search.origin)
        if candidate is not None:
            below = "" if folder == snapshot else f"-{folder.name}"
            yield replace(candidate, owner=owner, name=plain_name(name + below))


def _unfinished(search: Search, folder: Path, owner: str, name: str) -> Iterator[Candidate]:
    """Yield the largest unfinished download that begins as a GGUF does; its file's name is not known."""
    if not is_folder(folder / "blobs"):
        return
    waiting = [Path(entry.path) for entry in search.entries(folder / "blobs") if entry.name.endswith(".incomplete")]
    waiting = [path for path in waiting if _begins_as_gguf(path)]
    if waiting:
        largest = max(waiting, key=lambda path: size_of([path]))
        fault = _("The download of this model was not finished. Finish it in the program that began it.")
        yield Candidate(largest, search.origin, (largest,), name=name, owner=owner, fault=fault, is_fault_lasting=True)


def _begins_as_gguf(path: Path) -> bool:
    try:
        with open_bounded(path, 4) as file:
            return file.take(min(4, file.file_bytes)) == b"GGUF"
    except HeaderError:
        return False
