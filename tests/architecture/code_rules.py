"""Rules about the code of one file: its size, its manners, its words. Each returns a line for each offence.

References: design.md sections 3 and 5, style.md section 4.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator

from tests.architecture.source import Function, SourceFile, name_of

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60
MAX_PARAMETERS = 7  # without self and cls
# (file, function) whose signature a foreign library dictates.
DICTATED_SIGNATURES: set[tuple[str, str]] = set()
# (file, function) -> why anything at all may be caught there, and how it is reported. Three, once each.
WALLS = {
    ("backends/worker.py", "_guarded_turn"): "the worker's loop: whatever a command raises becomes an EngineFailed",
    ("ui/tasks.py", "_attempt"): "background work: whatever it raises is logged and reaches its caller",
    ("ui/main.py", "on_exception"): "the excepthook: whatever reaches Qt's loop is logged and said",
}
BROAD = {"Exception", "BaseException"}
PRINTERS = {"app/cli.py"}
# The glossary of design.md binds our own nouns. Layer -> words that name another concept's synonym.
FORBIDDEN_WORDS = {
    "": {"checkpoint", "daemon", "provider", "conversation", "experiment", "trial", "artifact", "prefs", "datum"},
    "backends": {"tick", "iteration", "job", "network"},
    "app": {"job"},
    "ui": {"job"},
}
# A dialogue is a chat; `thread` alone is Python's.
FORBIDDEN_NAMES = {"thread_id", "chat_thread", "message_thread", "assistant_model"}
_UNNUMBERED = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b(?!\s*\(?#\d+)")
_HEX_COLOUR = re.compile(r"(?<![\w&])#(?:[0-9a-fA-F]{8}|[0-9a-fA-F]{6}|[0-9a-fA-F]{3,4})\b(?![\w-])")
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def long_file(file: SourceFile) -> list[str]:
    """A file has at most 400 lines."""
    lines = len(file.text.splitlines())
    return [f"{file.path} has {lines} lines"] if lines > MAX_FILE_LINES else []


def long_function(file: SourceFile) -> list[str]:
    """A function has at most 60 lines, its docstring included."""
    lengths = ((node, (node.end_lineno or node.lineno) - node.lineno + 1) for node in file.functions)
    return [f"{_at(file, node)} {node.name} has {lines} lines" for node, lines in lengths if lines > MAX_FUNCTION_LINES]


def wide_signature(file: SourceFile) -> list[str]:
    """A function has at most 7 parameters."""
    return [
        f"{_at(file, node)} {node.name} has {len(_parameters(node))} parameters"
        for node in file.functions
        if len(_parameters(node)) > MAX_PARAMETERS and (file.path, node.name) not in DICTATED_SIGNATURES
    ]


def broad_except(file: SourceFile) -> list[str]:
    """Anything at all is caught at the walls only, once in each."""
    offences, seen = [], set()
    for node in filter(_is_broad, file.nodes):
        wall = (file.path, _enclosing_function(file, node))
        if wall not in WALLS or wall in seen:
            offences.append(f"{_at(file, node)} catches anything")
        seen.add(wall)
    return offences


def _enclosing_function(file: SourceFile, node: ast.AST) -> str:
    around = [function for function in file.functions if node in ast.walk(function)]
    return max(around, key=lambda function: function.lineno).name if around else ""


def _is_broad(node: ast.AST) -> bool:
    if isinstance(node, ast.ExceptHandler):
        return node.type is None or any(name_of(part) in BROAD for part in _parts(node.type))
    is_suppress = isinstance(node, ast.Call) and name_of(node.func) == "suppress"
    return is_suppress and any(name_of(part) in BROAD for part in node.args)


def _parts(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def stray_print(file: SourceFile) -> list[str]:
    """Only the command line prints."""
    if file.path in PRINTERS:
        return []
    calls = [node for node in file.nodes if isinstance(node, ast.Call)]
    return [
        f"{_at(file, node)} prints" for node in calls if isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def global_statement(file: SourceFile) -> list[str]:
    """No function changes a module's variable; gettext's `_` may be."""
    statements = [node for node in file.nodes if isinstance(node, ast.Global)]
    return [f"{_at(file, node)} global {name}" for node in statements for name in node.names if name != "_"]


def unnumbered_todo(file: SourceFile) -> list[str]:
    """What is left to do has an issue: `TODO(#12)`."""
    tokens = tokenize.generate_tokens(io.StringIO(file.text).readline)
    comments = [token for token in tokens if token.type == tokenize.COMMENT]
    return [f"{file.path}:{token.start[0]} {token.string}" for token in comments if _UNNUMBERED.search(token.string)]


def missing_docstring(file: SourceFile) -> list[str]:
    """Modules and public classes, functions and methods say what they are."""
    offences = [] if ast.get_docstring(file.tree) else [f"{file.path}:1 the module"]
    public = _public_definitions(file.tree)
    return offences + [f"{_at(file, node)} {node.name}" for node in public if not ast.get_docstring(node)]


def _public_definitions(parent: ast.Module | ast.ClassDef) -> Iterator[Function | ast.ClassDef]:
    """Yield what others may use; special methods, setters and overloads are described elsewhere."""
    for node in parent.body:
        if not isinstance(node, Function | ast.ClassDef) or node.name.startswith("_"):
            continue
        decorators = {name_of(part) for part in node.decorator_list}
        if not decorators & {"setter", "overload", "override"}:
            yield node
        if isinstance(node, ast.ClassDef):
            yield from _public_definitions(node)


def missing_annotation(file: SourceFile) -> list[str]:
    """Every parameter and every return value has a type."""
    offences = []
    for node in file.functions:
        names = [argument.arg for argument in _parameters(node) if argument.annotation is None]
        names += [] if node.returns is not None else ["return"]
        offences += [f"{_at(file, node)} {node.name}: {name}" for name in names]
    return offences


def colour_literal(file: SourceFile) -> list[str]:
    """Colours come from the theme's roles: no hex text, no QColor of constants, no named colour of Qt."""
    offences = [f"{_at(file, node)} {node.value!r}" for node in file.strings if _HEX_COLOUR.search(str(node.value))]
    for node in file.nodes:
        if isinstance(node, ast.Call) and name_of(node.func) in {"QColor", "fromRgb", "fromRgbF"}:
            is_constant = bool(node.args) and all(isinstance(arg, ast.Constant) for arg in node.args)
            offences += [f"{_at(file, node)} {ast.unparse(node)}"] if is_constant else []
        elif isinstance(node, ast.Attribute) and name_of(node.value) == "GlobalColor" and node.attr != "transparent":
            offences.append(f"{_at(file, node)} {ast.unparse(node)}")
    return offences


def forbidden_word(file: SourceFile) -> list[str]:
    """Our own names use the glossary's word for each concept."""
    forbidden = FORBIDDEN_WORDS[""] | FORBIDDEN_WORDS.get(file.layer, set())
    offences = []
    for name, line in _defined_names(file):
        words = {word.lower() for word in _WORDS.findall(name)}
        words |= {word.removesuffix("s") for word in words}
        if words & forbidden or name.strip("_") in FORBIDDEN_NAMES:
            offences.append(f"{file.path}:{line} {name}")
    return offences


def _defined_names(file: SourceFile) -> Iterator[tuple[str, int]]:
    """Yield the names that this file makes; those it uses may be foreign."""
    yield file.path.rpartition("/")[2].removesuffix(".py"), 1
    for node in file.nodes:
        if isinstance(node, Function | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and name_of(node.value) == "self":
            yield node.attr, node.lineno  # `timer.daemon = True` sets a name that is not ours


def _parameters(node: Function) -> list[ast.arg]:
    """Return the parameters without self and cls."""
    given = node.args
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
    return [argument for argument in named if argument.arg not in {"self", "cls"}]


def _at(file: SourceFile, node: ast.AST) -> str:
    return f"{file.path}:{getattr(node, 'lineno', 1)}"
