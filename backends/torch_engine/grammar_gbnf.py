"""From GBNF, llama.cpp's notation for grammars, to the notation that llguidance reads.

Every terminal of the result is one character. llguidance cuts its input into the longest terminals that fit, which
would lose texts of a grammar such as `[a-z]+ "x"`; characters cannot be prefixes of one another, so with them the two
notations mean the same texts.

Left out of GBNF: references to tokens (`<think>`, `<[1000]>`), which are refused. Allowed besides: `_` in names.

Reference: https://github.com/ggml-org/llama.cpp/blob/master/grammars/README.md
"""

from __future__ import annotations

import re
from typing import NoReturn

from backends.errors import EngineError, ErrorCode

_MAX_DEPTH = 100  # of parentheses; each takes a few frames of Python's stack
_MAX_REPETITIONS = 2000  # llama.cpp's bound
_LAST_CHARACTER = 0x10FFFF
_NAME = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"(?:[ \t]|#[^\r\n]*)*")
_BLANK_LINES = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_NUMBER = re.compile(r"[0-9]{1,9}")
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_PLAIN_ESCAPES = {"t": "\t", "r": "\r", "n": "\n", "\\": "\\", '"': '"', "[": "[", "]": "]"}


def to_lark(text: str) -> str:
    """Return the grammar in llguidance's notation; its rule `start` is GBNF's `root`.

    Raises:
        EngineError: BAD_PARAMS with the line and what is wrong there.
    """
    return _Translator(text).translate()


class _Translator:
    """One pass over a grammar's text; what was read is written at once."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._place = 0
        self._depth = 0
        self._rules: dict[str, str] = {}  # name -> its alternatives
        self._groups: list[str] = []  # what stood in parentheses: rules, too, for llguidance bounds how deep they lie
        self._uses: dict[str, int] = {}  # name -> the first place where it is used

    def translate(self) -> str:
        self._skip(_BLANK_LINES)
        while self._place < len(self._text):
            self._read_rule()
            self._skip(_BLANK_LINES)
        for name, place in self._uses.items():
            if name not in self._rules:
                self._refuse(f"the rule “{name}” is used and nowhere defined", place)
        if "root" not in self._rules:
            self._refuse("there is no rule “root”", len(self._text))
        numbers = {name: number for number, name in enumerate(self._uses | self._rules)}
        written = [f"start: {_reference('root')}", *(f"{_reference(n)}: {body}" for n, body in self._rules.items())]
        written += [f"g{number}: {body}" for number, body in enumerate(self._groups)]
        pattern = re.compile(r"<([A-Za-z0-9_-]+)>")
        return "\n".join(pattern.sub(lambda found: f"r{numbers[found[1]]}", line) for line in written) + "\n"

    def _read_rule(self) -> None:
        began = self._place
        name = self._read_name()
        self._skip(_BLANK)
        if not self._text.startswith("::=", self._place):
            self._refuse(f"“::=” is missing after “{name}”")
        self._place += 3
        self._skip(_BLANK_LINES)
        if name in self._rules:
            self._refuse(f"the rule “{name}” is defined twice", began)
        self._rules[name] = self._read_alternatives()
        if self._place < len(self._text) and self._text[self._place] not in "\r\n":
            self._refuse("a rule must end with its line")

    def _read_alternatives(self) -> str:
        blank = _BLANK_LINES if self._depth else _BLANK
        found = [self._read_sequence(blank)]
        while self._peek() == "|":
            self._place += 1
            self._skip(_BLANK_LINES)
            found.append(self._read_sequence(blank))
        return " | ".join(found)

    def _read_sequence(self, blank: re.Pattern[str]) -> str:
        """Return one alternative up to its end: a bar, a parenthesis, the end of the line outside parentheses."""
        items: list[str] = []
        while (item := self._read_item()) is not None:
            self._skip(blank)
            while self._peek() in ("*", "+", "?", "{"):
                item = self._as_group(item + self._read_repetition())
                self._skip(blank)
            items.append(item)
        return " ".join(items) or '""'

    def _read_item(self) -> str | None:
        character = self._peek()
        match character:
            case '"':
                return self._read_literal()
            case "[":
                return self._read_class()
            case "(":
                return self._read_group()
            case ".":
                self._place += 1
                return _class_of([(0, _LAST_CHARACTER)])
            case "<" | "!":
                self._refuse("references to tokens are not supported")
        if not _NAME.match(character):
            return None
        began = self._place
        name = self._read_name()
        self._uses.setdefault(name, began)
        return _reference(name)

    def _read_group(self) -> str:
        self._place += 1
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            self._refuse(f"more than {_MAX_DEPTH} parentheses lie in one another")
        self._skip(_BLANK_LINES)
        inner = self._read_alternatives()
        self._depth -= 1
        if self._peek() != ")":
            self._refuse("“)” is missing")
        self._place += 1
        return self._as_group(inner)

    def _read_literal(self) -> str:
        """Return the characters of a text between quotation marks, each a terminal."""
        self._place += 1
        items = []
        while self._peek() != '"':
            code = self._read_character()
            items.append(_class_of([(code, code)]))
        self._place += 1
        return self._as_group(" ".join(items)) if len(items) > 1 else "".join(items) or '""'

    def _as_group(self, body: str) -> str:
        self._groups.append(body)
        return f"g{len(self._groups) - 1}"

    def _read_class(self) -> str:
        self._place += 1
        is_negated = self._peek() == "^"
        self._place += is_negated
        ranges = []
        while self._peek() != "]":
            first = last = self._read_character()
            if self._peek() == "-" and not self._text.startswith("-]", self._place):
                self._place += 1
                last = self._read_character()
            if last < first:
                self._refuse("a range of characters ends before it begins")
            ranges.append((first, last))
        self._place += 1
        if not ranges:
            self._refuse("a class of characters is empty")
        return _class_of(ranges, is_negated=is_negated)

    def _read_repetition(self) -> str:
        mark = self._peek()
        self._place += 1
        if mark != "{":
            return mark
        self._skip(_BLANK_LINES)
        least = most = self._read_number()
        self._skip(_BLANK_LINES)
        if self._peek() == ",":
            self._place += 1
            self._skip(_BLANK_LINES)
            most = -1 if self._peek() == "}" else self._read_number()
            self._skip(_BLANK_LINES)
        if self._peek() != "}":
            self._refuse("“}” is missing")
        self._place += 1
        if 0 <= most < least:
            self._refuse("a number of repetitions ends before it begins")
        return f"{{{least},{most if most >= 0 else ''}}}"

    def _read_number(self) -> int:
        found = _NUMBER.match(self._text, self._place)
        if found is None:
            self._refuse("a number is missing")
        self._place = found.end()
        if int(found[0]) > _MAX_REPETITIONS:
            self._refuse(f"more than {_MAX_REPETITIONS:,} repetitions")
        return int(found[0])

    def _read_character(self) -> int:
        """Return the code of a character of a text or a class, which may be written as an escape."""
        character = self._peek()
        if not character:
            self._refuse("the text ends within a literal or a class")
        self._place += 1
        if character != "\\":
            return self._checked(ord(character))
        escape = self._peek()
        self._place += 1
        if escape in _PLAIN_ESCAPES:
            return ord(_PLAIN_ESCAPES[escape])
        length = _HEX_DIGITS.get(escape, 0)
        digits = self._text[self._place : self._place + length]
        if not length or not re.fullmatch(rf"[0-9A-Fa-f]{{{length}}}", digits):
            self._refuse(f"the escape “\\{escape}” is unknown or not complete")
        self._place += length
        return self._checked(int(digits, 16))

    def _checked(self, code: int) -> int:
        if code > _LAST_CHARACTER or 0xD800 <= code <= 0xDFFF:
            self._refuse("there is no such character")
        return code

    def _read_name(self) -> str:
        found = _NAME.match(self._text, self._place)
        if found is None:
            self._refuse("the name of a rule is missing")
        self._place = found.end()
        return found[0]

    def _peek(self) -> str:
        """Return the next character, "" at the end."""
        return self._text[self._place : self._place + 1]

    def _skip(self, pattern: re.Pattern[str]) -> None:
        found = pattern.match(self._text, self._place)
        assert found is not None
        self._place = found.end()

    def _refuse(self, what: str, place: int | None = None) -> NoReturn:
        line = self._text.count("\n", 0, self._place if place is None else place) + 1
        raise EngineError(ErrorCode.BAD_PARAMS, detail=f"line {line} of the grammar: {what}")


def _reference(name: str) -> str:
    """Return a rule's name between marks that occur nowhere else; translate() makes numbers of them."""
    return f"<{name}>"


def _class_of(ranges: list[tuple[int, int]], *, is_negated: bool = False) -> str:
    """Return a terminal of one character."""
    inner = "".join(
        f"\\u{{{first:x}}}" if first == last else f"\\u{{{first:x}}}-\\u{{{last:x}}}" for first, last in ranges
    )
    return f"/[{'^' if is_negated else ''}{inner}]/"
