"""Where each program keeps models, by system, variable and settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from app.models.source_search import Search
from app.models.sources import LAYOUTS, Source, added_source, default_sources, find_candidates, hub_cache_folder
from tests.helpers.model_folders import model_bytes, write


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def _sources(home: Path, system: str, environment: dict[str, str] | None = None) -> list[Source]:
    return default_sources(environment or {}, home, home / "data", home / "install", system)


def _of(sources: list[Source], origin: str) -> list[str]:
    return [source.folder.as_posix() for source in sources if source.origin == origin]


def _here(home: Path, *names: str) -> list[str]:
    return [(home / name).as_posix() for name in names]


def test_every_program_on_linux(home: Path) -> None:
    sources = _sources(home, "linux")

    assert _of(sources, "starter") == _here(home, "install/models")
    assert _of(sources, "folder") == _here(home, "data/models")
    assert _of(sources, "huggingface") == _here(home, ".cache/huggingface/hub", ".cache/llama.cpp")
    assert _of(sources, "lm_studio") == _here(home, ".lmstudio/models", ".cache/lm-studio/models")
    assert _of(sources, "ollama") == [
        *_here(home, ".ollama/models"),
        "/usr/share/ollama/.ollama/models",
        "/var/lib/ollama/.ollama/models",
        "/var/lib/ollama/models",
        "/var/lib/ollama",
        "/var/snap/ollama/common/models",
    ]
    assert _of(sources, "jan") == _here(home, ".local/share/Jan/data", ".config/Jan/data", "jan")
    assert _of(sources, "gpt4all") == _here(home, ".local/share/nomic.ai/GPT4All")


def test_every_program_on_macos(home: Path) -> None:
    sources = _sources(home, "darwin")

    support = "Library/Application Support"
    assert _of(sources, "huggingface") == _here(home, ".cache/huggingface/hub", "Library/Caches/llama.cpp")
    assert _of(sources, "ollama") == _here(home, ".ollama/models")
    assert _of(sources, "jan") == _here(home, f"{support}/Jan/data", "jan")
    assert _of(sources, "gpt4all") == _here(home, f"{support}/nomic.ai/GPT4All")


def test_every_program_on_windows(home: Path) -> None:
    sources = _sources(home, "win32")
    assert _of(sources, "huggingface") == _here(home, ".cache/huggingface/hub", "AppData/Local/llama.cpp")
    assert _of(sources, "ollama") == _here(home, ".ollama/models")
    assert _of(sources, "jan") == _here(home, "AppData/Roaming/Jan/data", "jan")
    assert _of(sources, "gpt4all") == _here(home, "AppData/Local/nomic.ai/GPT4All")

    moved = _sources(home, "win32", {"LOCALAPPDATA": str(home / "L"), "APPDATA": str(home / "R")})
    assert _of(moved, "gpt4all") == _here(home, "L/nomic.ai/GPT4All")
    assert _of(moved, "jan") == _here(home, "R/Jan/data", "jan")


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"HF_HUB_CACHE": "/a/hub", "HF_HOME": "/b"}, "/a/hub"),
        ({"HUGGINGFACE_HUB_CACHE": "/old"}, "/old"),
        ({"HF_HOME": "/b", "XDG_CACHE_HOME": "/c"}, "/b/hub"),
        ({"XDG_CACHE_HOME": "/c"}, "/c/huggingface/hub"),
        ({"HF_HOME": "~/hf"}, "HOME/hf/hub"),
        ({"HF_HOME": "relative/hf"}, "HOME/.cache/huggingface/hub"),
        ({"HF_HOME": ""}, "HOME/.cache/huggingface/hub"),
    ],
)
def test_the_hubs_cache_is_where_its_variables_say(home: Path, environment: dict[str, str], folder: str) -> None:
    found = _of(_sources(home, "linux", environment), "huggingface")
    assert found[0] == folder.replace("HOME", home.as_posix())


def test_ollamas_variable_comes_first_and_may_stand_in_quotes(home: Path) -> None:
    assert _of(_sources(home, "darwin", {"OLLAMA_MODELS": '"/big/ollama" '}), "ollama") == [
        "/big/ollama",
        *_here(home, ".ollama/models"),
    ]


def test_lm_studio_is_where_its_pointer_and_its_settings_say(home: Path) -> None:
    elsewhere = home / "elsewhere"
    write(home / ".lmstudio-home-pointer", f"{elsewhere}\n".encode())
    write(elsewhere / "settings.json", json.dumps({"downloadsFolder": "/disk/models"}).encode())

    assert _of(_sources(home, "linux"), "lm_studio") == [
        "/disk/models",
        *_here(home, "elsewhere/models", ".lmstudio/models", ".cache/lm-studio/models"),
    ]


def test_jan_and_gpt4all_are_where_their_settings_say(home: Path) -> None:
    write(home / ".config/Jan/settings.json", json.dumps({"data_folder": "/disk/jan"}).encode())
    write(home / ".config/nomic.ai/GPT4All.ini", b"[General]\nchatTheme=Dark\nmodelPath=/disk/gpt4all/\n")
    sources = _sources(home, "linux")

    assert _of(sources, "jan")[0] == "/disk/jan"
    assert _of(sources, "gpt4all") == ["/disk/gpt4all", *_here(home, ".local/share/nomic.ai/GPT4All")]


@pytest.mark.parametrize("data", [b"", b"{", b"[" * 100_000, b"[1]", b'{"downloadsFolder": 3}', b"\xff\xfe", b"a\0b"])
def test_settings_and_pointers_without_sense_change_nothing(home: Path, data: bytes) -> None:
    usual = _sources(home, "linux")
    write(home / ".lmstudio" / "settings.json", data)
    write(home / ".config" / "Jan" / "settings.json", data)
    write(home / ".config" / "nomic.ai" / "GPT4All.ini", data)
    write(home / ".lmstudio-home-pointer", data)
    assert _sources(home, "linux") == usual


def test_a_folder_that_two_rules_name_is_there_once(home: Path) -> None:
    folder = home / ".ollama" / "models"
    sources = _sources(home, "linux", {"OLLAMA_MODELS": f"{folder}/"})
    assert [source for source in sources if source.folder == folder] == [Source("ollama", folder, "Ollama", "ollama")]


def test_every_layout_is_known_and_nothing_need_be_there(home: Path) -> None:
    for source in _sources(home, "linux"):
        assert source.layout in LAYOUTS
        assert not source.must_exist


def test_an_added_folder_must_be_there_and_is_looked_through(tmp_path: Path) -> None:
    path = write(tmp_path / "deep" / "m.gguf", model_bytes())
    source = added_source(tmp_path)

    assert (source.origin, source.must_exist) == ("added", True)
    assert [found.path for found in find_candidates(Search(tmp_path, source.origin), source.layout)] == [path]


@pytest.mark.parametrize(
    ("environment", "folder"),
    [
        ({"HF_HUB_CACHE": "/h/cache", "HF_HOME": "/h"}, "/h/cache"),
        ({"HUGGINGFACE_HUB_CACHE": "/h/old"}, "/h/old"),
        ({"HF_HOME": "/h"}, "/h/hub"),
        ({"XDG_CACHE_HOME": "/x"}, "/x/huggingface/hub"),
    ],
)
def test_the_folder_is_the_hub_library_s_own(environment, folder):
    assert hub_cache_folder(environment, Path.home()) == Path(folder)


def test_without_a_wish_it_lies_in_the_person_s_home():
    assert hub_cache_folder({}, Path.home()) == Path.home() / ".cache" / "huggingface" / "hub"
