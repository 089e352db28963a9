"""Libraries for tests: folders for one, models to put in them, and rows that were never on a disk."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from app.models import library_places
from app.models.entry import FoundModel
from app.models.library import Library
from app.models.shape import LayerShape, ModelShape

MIB = 2**20


class Places:
    """Folders for one library of a person without other programs, and models to put in them.

    Attributes:
        data: the person's data folder. install: the tree's root. elsewhere: where people keep files.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.data, self.install, self.elsewhere = root / "data", root / "install", root / "elsewhere"
        self.models = self.data / "models"
        for folder in (self.models, self.install / "models", self.elsewhere):
            folder.mkdir(parents=True)
        self.environment = {"HOME": str(root / "home")}

    def library(self, **variables: str) -> Library:
        return Library(self.data, self.install, {**self.environment, **variables})

    @property
    def database(self) -> Path:
        return self.data / "library.sqlite3"

    @property
    def list_path(self) -> Path:
        return self.data / "library.json"


def without_starter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the starter model of this machine."""
    monkeypatch.setattr(library_places, "_STARTER_PACKAGE", "no_such_package_here")


def keys(library: Library) -> list[str]:
    """Return the keys of all entries."""
    return [found.key for found in library.entries()]


def found_model(number: int = 1, **fields: object) -> FoundModel:
    """Return what a scan would find of a model that is on no disk."""
    path = fields.get("path", f"/models/model-{number}.gguf")
    layers = tuple(LayerShape(kv_heads=8, key_length=128, value_length=128, weights_bytes=number) for _ in range(32))
    values: dict[str, object] = {
        "path": path,
        "origin": "lm_studio",
        "parts": (path,),
        "name": f"Model-{number}",
        "owner": "acme",
        "quantization": "Q4_K_M",
        "architecture": "llama",
        "size_bytes": 4 * MIB + number,
        "stamp": f"stamp-{number}",
        "identity": f"provisional:{number:064x}",
        "shape": ModelShape(architecture="llama", context_tokens=8192, layers=layers),
    }
    return FoundModel(**{**values, **fields})


def sql(path: Path, query: str, values: tuple = ()) -> list[tuple]:
    """Run one statement on a database past the program; return its rows."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        return connection.execute(query, values).fetchall()
