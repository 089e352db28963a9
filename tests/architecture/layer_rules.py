"""Rules about who may import whom. Each takes source files and returns a line for each offence.

References: design.md section 3; ARCHITECTURE.md draws the picture.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tests.architecture.source import LAYERS, SourceFile

QT = {"PySide6", "PySide2", "PyQt5", "PyQt6", "qtpy", "shiboken6", "pyqtgraph", "qtawesome"}
# Library -> the one folder that may import it.
ENGINE_LIBRARIES = {
    "torch": "backends/torch_engine/",
    "transformers": "backends/torch_engine/",
    "llama_cpp": "backends/llama_cpp_engine/",
}
# The face that backends/ shows to the program, app/ and ui/ alike; the rest of it runs in child processes only.
FACE = {
    f"backends.{name}"
    for name in ("protocol", "wire", "errors", "client", "renderer_client", "registry", "reference_window")
}
# What the face itself may be made of, so that the window stays light.
FACE_LIBRARIES = {"msgspec", "numpy"}
# (file, module): the one import that goes up, by name and only when a window is wanted.
UPWARD_EXCEPTIONS = {("app/__main__.py", "ui.main")}


def top(module: str) -> str:
    """Return the first part of a dotted name."""
    return module.split(".", maxsplit=1)[0]


def known_module(name: str, modules: set[str]) -> str:
    """Return the longest start of a dotted name that is a module: `app.paths.home` is `app.paths`."""
    while name and name not in modules:
        name = name.rpartition(".")[0]
    return name


def qt_outside_ui(files: Sequence[SourceFile]) -> list[str]:
    """Only ui/ knows Qt."""
    return [
        f"{file.path}:{found.line} imports {found.module}"
        for file in files
        for found in file.imports
        if top(found.module) in QT and file.layer != "ui"
    ]


def engine_library_outside_its_folder(files: Sequence[SourceFile]) -> list[str]:
    """torch, transformers and llama_cpp are imported in their engine's folder only."""
    return [
        f"{file.path}:{found.line} imports {found.module}"
        for file in files
        for found in file.imports
        if top(found.module) in ENGINE_LIBRARIES and not file.path.startswith(ENGINE_LIBRARIES[top(found.module)])
    ]


def upward_import(files: Sequence[SourceFile]) -> list[str]:
    """Imports flow down: ui, app, the face of backends. Tests and packaging are imported by nobody."""
    return [
        f"{file.path}:{found.line} imports {found.module}"
        for file in files
        for found in file.imports
        if not _flows_down(file, found.module)
    ]


def _flows_down(file: SourceFile, module: str) -> bool:
    target = top(module)
    if (file.path, module) in UPWARD_EXCEPTIONS:
        return True
    if target in {"tests", "packaging"}:
        return False
    if target not in LAYERS or target == file.layer:
        return True
    if file.layer == "ui" and target == "app":
        return True
    return file.layer in {"ui", "app"} and ".".join(module.split(".")[:2]) in FACE


def heavy_face(files: Sequence[SourceFile]) -> list[str]:
    """The face of backends/, with all that it imports in turn, needs the standard library, msgspec and numpy."""
    by_module = {file.module: file for file in files}
    todo, seen = [name for name in sorted(FACE) if name in by_module], set()
    offences = []
    while todo:
        file = by_module[todo.pop()]
        if file.module in seen:
            continue
        seen.add(file.module)
        for found in file.imports:
            inner = known_module(found.module, set(by_module))
            if inner:
                todo.append(inner)
            elif top(found.module) not in FACE_LIBRARIES | set(sys.stdlib_module_names):
                offences.append(f"{file.path}:{found.line} imports {found.module}")
    return offences


def import_cycle(files: Sequence[SourceFile]) -> list[str]:
    """No module reaches itself through imports, lazy and type-checking ones included."""
    modules = {file.module for file in files}
    graph = {
        file.module: {known_module(found.module, modules) for found in file.imports} - {"", file.module}
        for file in files
    }
    reached = {module: _reachable(graph, module) for module in graph}
    circles = {frozenset(other for other in reached[module] if module in reached[other]) for module in graph}
    return sorted("cycle: " + ", ".join(sorted(circle)) for circle in circles if circle)


def _reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    todo, seen = list(graph[start]), set()
    while todo:
        module = todo.pop()
        if module not in seen:
            seen.add(module)
            todo += graph[module]
    return seen
