"""Where models are: our own folders and those of other programs, on each system.

A source is a folder and how models lie in it. Nothing is changed in any of them. The rules take the environment, the
home folder and the system as values, so that each system's can be tried on any other.
References: https://huggingface.co/docs/huggingface_hub/package_reference/environment_variables,
https://docs.ollama.com/faq (where models are stored), https://lmstudio.ai/docs/app/basics/import-model
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from app.i18n import _
from app.models.source_candidate import Candidate, read_small
from app.models.source_folder import folder_candidates
from app.models.source_huggingface import hub_candidates
from app.models.source_jan import jan_candidates
from app.models.source_ollama import ollama_candidates
from app.models.source_search import Search

_SETTINGS_BYTES = 2**20
_POINTER_BYTES = 16_384
_WINDOWS, _MACOS = "win32", "darwin"
# Where Ollama's service keeps them on Linux: its installer, distributions, and the snap.
_OLLAMA_SERVICE = (
    "/usr/share/ollama/.ollama/models",
    "/var/lib/ollama/.ollama/models",
    "/var/lib/ollama/models",
    "/var/lib/ollama",
    "/var/snap/ollama/common/models",
)


@dataclass(frozen=True, slots=True)
class Source:
    """A folder that may hold models.

    Attributes:
        origin: see entry.Origin.
        folder: where it is; it need not be there.
        title: for people.
        layout: how models lie in it, a key of LAYOUTS.
        must_exist: whether it is a problem when it is not there.
    """

    origin: str
    folder: Path
    title: str
    layout: str = "folder"
    must_exist: bool = False


def _publishers(search: Search, folder: Path) -> Iterator[Candidate]:
    return folder_candidates(search, folder, is_by_publisher=True)


LAYOUTS: Mapping[str, Callable[[Search, Path], Iterator[Candidate]]] = {
    "folder": folder_candidates,
    "publishers": _publishers,
    "huggingface": hub_candidates,
    "ollama": ollama_candidates,
    "jan": jan_candidates,
}


def find_candidates(search: Search, layout: str) -> Iterator[Candidate]:
    """Yield what may be a model in the search's root.

    Raises:
        SearchLimitError: a limit was reached; what was yielded counts.
    """
    return LAYOUTS[layout](search, search.root)


def added_source(folder: Path) -> Source:
    """Return the source for a folder that the person added."""
    return Source("added", folder, str(folder), must_exist=True)


def default_sources(
    environment: Mapping[str, str], home: Path, data_folder: Path, install_folder: Path, system: str = sys.platform
) -> list[Source]:
    """Return every place that may hold models without anybody having said so; most are not there.

    Args:
        environment: the variables that the programs look at.
        home: the person's.
        data_folder: ours; its `models` is our own models folder.
        install_folder: the program's; its `models` holds the starter.
        system: as sys.platform says it.
    """
    places = _Places(environment, home, system)
    sources = [
        Source("starter", install_folder / "models", _("Cutaway")),
        Source("folder", data_folder / "models", _("Cutaway's models folder")),
        Source("huggingface", hub_cache_folder(environment, home), "Hugging Face", "huggingface"),
        *(Source("lm_studio", folder, "LM Studio", "publishers") for folder in _lm_studio_folders(places)),
        *(Source("ollama", folder, "Ollama", "ollama") for folder in _ollama_folders(places)),
        *(Source("jan", folder, "Jan", "jan") for folder in _jan_folders(places)),
        *(Source("gpt4all", folder, "GPT4All") for folder in _gpt4all_folders(places)),
        Source("huggingface", _llama_cpp_folder(places), "llama.cpp"),
    ]
    first: dict[str, Source] = {}
    for source in sources:
        first.setdefault(os.path.normpath(source.folder), source)
    return list(first.values())


@dataclass(frozen=True, slots=True)
class _Places:
    """The usual folders of one person on one system."""

    environment: Mapping[str, str]
    home: Path
    system: str

    def named(self, variable: str) -> Path | None:
        """Return the folder that a variable names; None when it is unset, or relative to who knows what."""
        return self.path(self.environment.get(variable, ""))

    def path(self, text: str) -> Path | None:
        """Return a folder that a person or a program wrote down; None when it is no absolute path."""
        text = text.strip().strip("\"'").strip()
        if not text or "\0" in text:
            return None
        if text == "~" or text.startswith(("~/", "~\\")):
            return self.home / text[2:]
        path = Path(text)
        return path if path.is_absolute() else None

    @property
    def data(self) -> Path:
        """What belongs to one person and should be kept."""
        if self.system == _WINDOWS:
            return self.named("LOCALAPPDATA") or self.home / "AppData" / "Local"
        if self.system == _MACOS:
            return self.home / "Library" / "Application Support"
        return self.named("XDG_DATA_HOME") or self.home / ".local" / "share"

    @property
    def config(self) -> Path:
        """Settings."""
        if self.system == _WINDOWS:
            return self.named("APPDATA") or self.home / "AppData" / "Roaming"
        if self.system == _MACOS:
            return self.home / "Library" / "Application Support"
        return self.named("XDG_CONFIG_HOME") or self.home / ".config"

    @property
    def cache(self) -> Path:
        """What can be made again."""
        if self.system == _WINDOWS:
            return self.named("LOCALAPPDATA") or self.home / "AppData" / "Local"
        if self.system == _MACOS:
            return self.home / "Library" / "Caches"
        return self.named("XDG_CACHE_HOME") or self.home / ".cache"


def hub_cache_folder(environment: Mapping[str, str], home: Path) -> Path:
    """Return the cache that every program with a hub library shares; it is in ~/.cache on every system."""
    places = _Places(environment, home, sys.platform)
    named = places.named("HF_HUB_CACHE") or places.named("HUGGINGFACE_HUB_CACHE")
    if named:
        return named
    top = places.named("HF_HOME") or (places.named("XDG_CACHE_HOME") or places.home / ".cache") / "huggingface"
    return top / "hub"


def _lm_studio_folders(places: _Places) -> list[Path]:
    pointer = read_small(places.home / ".lmstudio-home-pointer", _POINTER_BYTES).decode("utf-8", "replace")
    named = places.path(pointer.splitlines()[0]) if pointer.strip() else None
    homes = [*([named] if named else []), places.home / ".lmstudio", places.home / ".cache" / "lm-studio"]
    folders = []
    for top in homes:
        chosen = _setting(top / "settings.json", "downloadsFolder")
        folders += [folder for folder in (places.path(chosen), top / "models") if folder]
    return folders


def _ollama_folders(places: _Places) -> list[Path]:
    named = places.named("OLLAMA_MODELS")
    folders = [*([named] if named else []), places.home / ".ollama" / "models"]
    if places.system not in (_WINDOWS, _MACOS):
        folders += [Path(folder) for folder in _OLLAMA_SERVICE]
    return folders


def _jan_folders(places: _Places) -> list[Path]:
    """Return Jan's data folders: the one its settings name, today's, and earlier versions'."""
    tops = [places.config / "Jan"] if places.system == _WINDOWS else [places.data / "Jan", places.config / "Jan"]
    chosen = [places.path(_setting(top / "settings.json", "data_folder")) for top in tops]
    folders = [*(folder for folder in chosen if folder), *(top / "data" for top in tops), places.home / "jan"]
    return list(dict.fromkeys(folders))


def _gpt4all_folders(places: _Places) -> list[Path]:
    settings = read_small(places.config / "nomic.ai" / "GPT4All.ini", _SETTINGS_BYTES).decode("utf-8", "replace")
    found = re.search(r"^modelPath=(.*)$", settings, re.MULTILINE)
    chosen = places.path(found[1]) if found else None
    return [*([chosen] if chosen else []), places.data / "nomic.ai" / "GPT4All"]


def _llama_cpp_folder(places: _Places) -> Path:
    return places.named("LLAMA_CACHE") or places.cache / "llama.cpp"


def _setting(path: Path, key: str) -> str:
    """Return a text of a JSON file of settings; "" when there is none."""
    try:
        settings = json.loads(read_small(path, _SETTINGS_BYTES) or b"{}")
    except (ValueError, RecursionError):
        return ""
    value = settings.get(key) if isinstance(settings, dict) else None
    return value if isinstance(value, str) else ""
