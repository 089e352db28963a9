"""Rules about the tree: which files and folders there are, and what no text in it may hold."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tests.architecture.source import SourceFile

# Source file -> why it has no test file of its own.
UNMIRRORED = {
    "app/__main__.py": "starts the program: tests/end_to_end",
    "ui/main.py": "starts the window: tests/end_to_end",
}
# A folder so named would hide the library of that name from Python.
SHADOWING_FOLDERS = {"torch", "transformers", "llama_cpp"}
# Written in pieces, so that this file holds none of them. Paths of one machine, and hosts of package registries.
_MACHINE_PATHS = tuple(f"/{name}/" for name in ("work", "root"))
_REGISTRY_HOSTS = tuple(
    ".".join(parts)
    for parts in (
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("registry", "npmjs", "org"),
        ("deb", "debian", "org"),
        ("proxy", "golang", "org"),
    )
)
# A path starts where no word, dot or brace stands before it: `{home}/work/` is somebody's own folder.
_FOREIGN_TEXT = re.compile(
    "|".join([*(rf"(?<![\w.}}~/-]){re.escape(path)}" for path in _MACHINE_PATHS), *map(re.escape, _REGISTRY_HOSTS)])
)
_HEX_COLOUR = re.compile(r"#[0-9a-fA-F]{3,8}\b")


def missing_test_file(sources: Iterable[str], tests: Iterable[str]) -> list[str]:
    """`app/chat/store.py` is tested by `tests/app/chat/test_store.py`; paths in, lines out."""
    present = set(tests)
    wanted = {path: _mirror(path) for path in sources if not path.endswith("__init__.py") and path not in UNMIRRORED}
    return [f"{path} has no {test}" for path, test in sorted(wanted.items()) if test not in present]


def _mirror(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"tests/{folder}/test_{name}"


def code_in_init(file: SourceFile) -> list[str]:
    """An `__init__.py` needs no test, so it holds nothing that could fail: no function, no class."""
    if not file.path.endswith("__init__.py") or not file.functions:
        return []
    return [f"{file.path} defines {', '.join(node.name for node in file.functions)}"]


def misplaced_init(paths: Iterable[str]) -> list[str]:
    """packaging/ would hide PyPI's package of that name, and tests/ is imported by path."""
    return [path for path in paths if re.match(r"(packaging|tests)/(.*/)?__init__\.py$", path)]


def shadowing_folder(paths: Iterable[str]) -> list[str]:
    """No folder is named like a library that an engine imports."""
    return [path for path in paths if SHADOWING_FOLDERS & set(path.split("/")[:-1])]


def foreign_text(path: str, text: str) -> list[str]:
    """No file names a machine's own folders or a package registry's host."""
    return [
        f"{path}:{number} {line.strip()[:100]}"
        for number, line in enumerate(text.splitlines(), 1)
        if _FOREIGN_TEXT.search(line)
    ]


def colour_in_stylesheet(path: str, text: str) -> list[str]:
    """A style sheet is a template over the theme's roles."""
    return [f"{path} {found}" for found in _HEX_COLOUR.findall(text)]


def lines(offences: Sequence[str]) -> str:
    """Return the offences one a line, for the message of an assertion."""
    return "\n" + "\n".join(offences)
