"""Models that Jan keeps: folders with a `model.yml` that says where the file is.

Reads three keys of `model.yml` line by line and nothing else of it; what has no such file is found by its name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from app.i18n import _
from app.models.model_name import file_name
from app.models.source_candidate import Candidate, is_file, is_folder, is_link, read_small
from app.models.source_files import gguf_candidates, is_model_file
from app.models.source_search import Search, is_own_folder

_LIST = "model.yml"
_LIST_BYTES = 256 * 1024
_FOLDERS = (("llamacpp", "models"), ("models",))  # since 0.6 and before
_DEPTH = 6
_KEYS = ("model_path", "mmproj_path", "name")
_LINE = re.compile(r"([a-z_]+):[ \t]*(.*)")
_BLOCK = re.compile(r"[|>][+-]?[0-9]?")


def jan_candidates(search: Search, data_folder: Path) -> Iterator[Candidate]:
    """Yield the models of one data folder of Jan's."""
    for names in _FOLDERS:
        folder = data_folder.joinpath(*names)
        if is_folder(folder):
            yield from _folder_candidates(search, data_folder, folder, _DEPTH)


def _folder_candidates(search: Search, data_folder: Path, folder: Path, depth: int) -> Iterator[Candidate]:
    entries = search.entries(folder)
    files = [Path(entry.path) for entry in entries if not is_own_folder(entry)]
    known = parse_list(read_small(folder / _LIST, _LIST_BYTES)) if any(path.name == _LIST for path in files) else {}
    called = file_name(folder) if known else ""
    sound = []
    for path in files:
        if is_model_file(path.name):
            fault = search.link_fault(path) if is_link(path) else ""
            if fault:
                yield Candidate(path, search.origin, (path,), name=called, fault=fault)
            else:
                sound.append(path)
    models, lone = gguf_candidates(sound, search.origin, name=called)
    search.skipped_count += lone
    yield from models
    model_path = known.get("model_path", "")
    if model_path:
        path = data_folder / model_path
        if path not in sound and path.parent != folder:
            yield _elsewhere(
                search, path, called, data_folder / known["mmproj_path"] if "mmproj_path" in known else None
            )
        elif path not in sound and not any(path in model.parts for model in models):
            yield Candidate(path, search.origin, (path,), name=called, fault=_missing_words())
    for entry in entries:
        if is_own_folder(entry) and depth > 0 and not entry.name.startswith("."):
            yield from _folder_candidates(search, data_folder, Path(entry.path), depth - 1)


def _elsewhere(search: Search, path: Path, name: str, projector: Path | None) -> Candidate:
    """Return the model of an entry that names a file in another folder."""
    found = Candidate(path, search.origin, (path,), name=name)
    fault = search.link_fault(path)
    if fault:
        return replace(found, fault=fault if is_file(path) else _missing_words())
    is_usable = projector is not None and not search.link_fault(projector)
    return replace(found, projector=projector if is_usable else None)


def _missing_words() -> str:
    return _("Jan's entry for this model names a file that is not there. Get it again in Jan.")


def parse_list(data: bytes) -> dict[str, str]:
    """Return the keys of `model.yml` that say where the model is; keys inside others and lists are passed over."""
    found: dict[str, str] = {}
    lines = data.decode("utf-8", "replace").splitlines()
    for number, line in enumerate(lines):
        parts = _LINE.fullmatch(line)
        if parts is None or parts[1] not in _KEYS or parts[1] in found:
            continue
        value = parts[2].strip()
        if _BLOCK.fullmatch(value):
            value = _block_text(lines[number + 1 :])
        text = _scalar(value)
        if text and "\0" not in text:
            found[parts[1]] = text
    return found


def _block_text(lines: list[str]) -> str:
    """Return the words of a folded text: the indented lines that follow, joined."""
    words = []
    for line in lines:
        if not line.startswith((" ", "\t")):
            break
        words.append(line.strip())
    return json.dumps(" ".join(words))


def _scalar(value: str) -> str:
    """Return a YAML scalar's text; "" for one that is no plain or quoted text on one line."""
    if value.startswith('"'):
        try:
            text = json.loads(value)
        except (ValueError, RecursionError):
            return ""
        return text if isinstance(text, str) else ""
    if value.startswith("'"):
        return value[1:-1].replace("''", "'") if value.endswith("'") and len(value) > 1 else ""
    if value.startswith(("[", "{", "&", "*", "!", "|", ">")):
        return ""
    return value.partition(" #")[0].strip()
