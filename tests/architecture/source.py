"""The tree as the architecture rules see it: parsed source files, their imports, and the folders they lie in.

Knows no rule. A rule's self-test builds a SourceFile from a small text instead of a file.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
LAYERS = ("ui", "app", "backends")
# Never part of the tree, in git or not.
_SKIPPED = {
    ".git",
    ".venv",
    ".mypy_cache",
    ".ruff_cache",
    ".pytest_cache",
    "__pycache__",
    "build",
    "dist",
    "screenshots",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Import:
    """One imported name: `module` as written with its alias joined on (`from a import b` is `a.b`), and its line."""

    module: str
    line: int


@dataclass(frozen=True)
class SourceFile:
    """A Python file: its path in the tree with forward slashes, and its text."""

    path: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """The parsed text."""
        return ast.parse(self.text, self.path)

    @property
    def layer(self) -> str:
        """The top-level folder."""
        return self.path.split("/")[0]

    @property
    def module(self) -> str:
        """The dotted name: `app/chat/store.py` is `app.chat.store`, `app/__init__.py` is `app`."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the tree."""
        return list(ast.walk(self.tree))

    @cached_property
    def functions(self) -> list[Function]:
        """Every function and method, nested ones too."""
        return [node for node in self.nodes if isinstance(node, Function)]

    @cached_property
    def imports(self) -> list[Import]:
        """Every import at any depth, those by a literal name (`import_module("x")`) included."""
        found = []
        for node in self.nodes:
            if isinstance(node, ast.Import):
                found += [Import(alias.name, node.lineno) for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                base = self._absolute(node)
                found += [Import(f"{base}.{alias.name}", node.lineno) for alias in node.names]
            elif isinstance(node, ast.Call) and name_of(node.func) in {"import_module", "__import__"}:
                literals = [arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant)]
                found += [Import(str(literal), node.lineno) for literal in literals]
        return found

    @cached_property
    def strings(self) -> list[ast.Constant]:
        """Every string literal that is no docstring."""
        docstrings = {id(node.value) for node in self.nodes if isinstance(node, ast.Expr)}
        return [
            node
            for node in self.nodes
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
        ]

    def _absolute(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.path.split("/")[: -node.level]
        return ".".join([*parts, node.module] if node.module else parts)


def name_of(node: ast.AST) -> str:
    """Return the last part of a name or an attribute: `a.b.c` is `c`; "" for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


def walk_files(folder: Path) -> Iterator[Path]:
    """Yield every file below a folder but for what is never part of the tree."""
    for path in sorted(folder.iterdir()):
        if path.name in _SKIPPED:
            continue
        if path.is_dir() and not path.is_symlink():
            yield from walk_files(path)
        elif path.is_file():
            yield path


def python_files(*folders: str) -> list[SourceFile]:
    """Return the Python files below these top-level folders."""
    paths = [path for folder in folders if (ROOT / folder).is_dir() for path in walk_files(ROOT / folder)]
    return [
        SourceFile(path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8"))
        for path in paths
        if path.suffix == ".py"
    ]


def tree_files() -> list[Path]:
    """Return every file that git would commit, or every file where there is no git."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        names = subprocess.run(command, capture_output=True, check=True).stdout.decode().split("\0")
    except (OSError, subprocess.CalledProcessError):  # an unpacked archive is no repository
        return list(walk_files(ROOT))
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]
