"""The code keeps its sizes, manners and words; and each rule can fail."""

from __future__ import annotations

import pytest

from tests.architecture import code_rules as rules
from tests.architecture.source import LAYERS, SourceFile, python_files
from tests.architecture.tree_rules import lines

EVERYWHERE = (*LAYERS, "packaging", "tests")
# Rule -> the folders whose files it binds.
RULES = {
    rules.long_file: EVERYWHERE,
    rules.unnumbered_todo: EVERYWHERE,
    rules.global_statement: EVERYWHERE,
    rules.long_function: (*LAYERS, "packaging"),
    rules.wide_signature: (*LAYERS, "packaging"),
    rules.missing_docstring: (*LAYERS, "packaging"),
    rules.missing_annotation: (*LAYERS, "packaging"),
    rules.broad_except: (*LAYERS, "packaging"),
    rules.stray_print: LAYERS,
    rules.colour_literal: LAYERS,
    rules.forbidden_word: LAYERS,
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_code_keeps_the_rule(rule):
    offences = [offence for file in python_files(*RULES[rule]) for offence in rule(file)]
    assert offences == [], lines(offences)


LONG = "def f() -> None:\n" + "    x = 1\n" * 60
WIDE = "def f(a, b, c, d, *e, f, g, **h): ..."
HANDLER = "try:\n    f()\nexcept {}:\n    pass\n"

# Each case: the rule, the text that breaks it, how many offences it must find.
BROKEN = [
    (rules.long_file, "x = 1\n" * 401, 1),
    (rules.long_function, LONG, 1),
    (rules.long_function, "class A:\n    async " + LONG.replace("\n", "\n    "), 1),
    (rules.wide_signature, WIDE, 1),
    (rules.wide_signature, "class A:\n    def f(self, a, b, c, d, e, f, g, h): ...", 1),
    (rules.broad_except, HANDLER.format("Exception"), 1),
    (rules.broad_except, HANDLER.format("(OSError, BaseException) as error"), 1),
    (rules.broad_except, HANDLER.format("").replace(" :", ":"), 1),
    (rules.broad_except, "with contextlib.suppress(Exception):\n    f()", 1),
    (rules.stray_print, "def f():\n    print('x')", 1),
    (rules.global_statement, "def f():\n    global a, b\n    a = b = 1", 2),
    (rules.unnumbered_todo, "x = 1  # TODO: later", 1),
    (rules.unnumbered_todo, "# FIXME 12", 1),
    (rules.missing_docstring, "x = 1", 1),
    (rules.missing_docstring, "'''Doc.'''\nclass A:\n    def f(self): ...\ndef g(): ...", 3),
    (rules.missing_annotation, "def f(a, *b, c: int, **d) -> None: ...", 3),
    (rules.missing_annotation, "class A:\n    def __init__(self): ...", 1),
    (rules.missing_annotation, "def f() -> None:\n    def g(a: int): ...", 1),
    (rules.colour_literal, "a = '#ff8800'\nb = 'color: #FFF; x'\nc = f'{x} #11223344'", 3),
    (rules.colour_literal, "QColor('red')\nQtGui.QColor(1, 2, 3)\nQt.GlobalColor.red", 3),
    (rules.forbidden_word, "checkpointPath = 1", 1),
    (rules.forbidden_word, "class ConversationList: ...", 1),
    (rules.forbidden_word, "def f(providers): ...", 1),
    (rules.forbidden_word, "self.thread_id = 1", 1),
    (rules.forbidden_word, "for daemon_pid in x: ...", 1),
]


@pytest.mark.parametrize(("rule", "text", "count"), BROKEN)
def test_a_broken_rule_is_found(rule, text, count):
    assert len(rule(SourceFile("app/a.py", text))) == count


KEPT = [
    (rules.long_file, "x = 1\n" * 400),
    (rules.long_function, LONG.removesuffix("    x = 1\n")),
    (rules.wide_signature, "class A:\n    def f(self, a, b, c, d, e, f, g): ..."),
    (rules.broad_except, HANDLER.format("(OSError, ValueError)")),
    (rules.stray_print, "self.print()\n'print(1)'"),
    (rules.global_statement, "def f():\n    global _\n    _ = str"),
    (rules.unnumbered_todo, "x = 'TODO'  # TODO(#12): later, see FIXME #3"),
    (rules.missing_docstring, "'''Doc.'''\nclass _A:\n    def f(self): ...\ndef _g(): ...\n@overload\ndef h(): ..."),
    (rules.missing_docstring, "'''Doc.'''\nclass _A:\n    def __init__(self): ...\n@x.setter\ndef x(self): ..."),
    (rules.missing_annotation, "class A:\n    def f(self, a: int, *b: int) -> None:\n        return lambda c: c"),
    (rules.colour_literal, "'''See #123 and #fff.'''\na = '# heading'\nb = '&#123;'"),
    (rules.colour_literal, "QColor(role)\nQt.GlobalColor.transparent"),
    (
        rules.forbidden_word,
        "threading.Thread(daemon=True)\ntimer.daemon = x = provider.checkpoint\ntick_spacing = chat = message = 1",
    ),
]


@pytest.mark.parametrize(("rule", "text"), KEPT)
def test_a_kept_rule_is_left_alone(rule, text):
    assert rule(SourceFile("app/a.py", text)) == []


def test_a_wall_catches_anything_once():
    path, name = next(iter(rules.WALLS))
    handler = "    " + HANDLER.format("Exception").replace("\n", "\n    ")
    wall = f"class A:\n  def {name}(self):\n{handler}"
    assert rules.broad_except(SourceFile(path, wall)) == []
    assert rules.broad_except(SourceFile(path, f"{wall}\n{handler}")) == [f"{path}:10 catches anything"]
    assert rules.broad_except(SourceFile("app/a.py", wall)) == ["app/a.py:5 catches anything"]
    assert rules.broad_except(SourceFile(path, wall.replace(name, "other"))) == [f"{path}:5 catches anything"]


def test_only_the_command_line_prints():
    assert rules.stray_print(SourceFile("app/cli.py", "print(1)")) == []


def test_words_are_forbidden_by_layer():
    assert rules.forbidden_word(SourceFile("backends/a.py", "tick = 1")) == ["backends/a.py:1 tick"]
    assert rules.forbidden_word(SourceFile("ui/a.py", "tick = 1")) == []


def test_a_module_name_is_a_word_too():
    assert rules.forbidden_word(SourceFile("app/job.py", "")) == ["app/job.py:1 job"]
