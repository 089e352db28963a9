"""A model card made safe: Markdown without HTML, images, links and tricks, and the list of what it links to.

A card is a stranger's text. Its front matter is cut off (the hub's listing says the same), HTML is removed, of images
their words stay, of links their words, while their addresses are listed where they are http or https. Characters that
cannot be seen or that turn the direction are shown as what they are. Every step takes time in proportion to the text,
which is cut at 200 KB. What is left can be shown as plain text as it stands. Knows no HTTP and no window.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from html import unescape

MAX_CHARACTERS = 200_000
MAX_LINKS = 100
_MAX_ADDRESS = 2_000
_MAX_LINK_WORDS = 200
_MAX_MARKS = 4  # combining marks on one character; more only hide or hang
_CODE_REACH = 2_000  # how far away the end of a piece of code in a line may be

_FENCE = re.compile(r"^[ \t]{0,12}(`{3,}|~{3,})")
_TAG = re.compile(r"</?([A-Za-z][A-Za-z0-9:-]{0,40})((?:[\s/][^<>]*)?)>")
_AUTOLINK = re.compile(rf"<(https?://[^\s<>]{{1,{_MAX_ADDRESS}}})>", re.IGNORECASE)
_ALT = re.compile(r"""\balt\s*=\s*(?:"([^"]{0,500})"|'([^']{0,500})')""", re.IGNORECASE)
_HREF = re.compile(rf"""\bhref\s*=\s*["']?([^\s"'<>]{{1,{_MAX_ADDRESS}}})""", re.IGNORECASE)
_IMAGE = re.compile(
    r"!\[([^\[\]]{0,500})\](?:\([^()\n]{0,2000}(?:\([^()\n]{0,200}\)[^()\n]{0,500})?\)|\[[^\[\]]{0,200}\])"
)
_LINK = re.compile(
    r"\[([^\[\]]{0,1000})\]\(\s{0,9}<?([^()<>\s]{0,2000}(?:\([^()<>\s]{0,200}\)[^()<>\s]{0,500})?)>?"
    r"(?:\s{1,9}[\"'(][^\"'()]{0,500}[\"')])?\s{0,9}\)"
)
_REFERENCE_LINK = re.compile(r"\[([^\[\]]{1,500})\] ?\[[^\[\]]{0,200}\]")
_DEFINITION = re.compile(r"^ {0,3}\[[^\[\]]{1,200}\]:[ \t]{0,9}<?(\S{1,2000}?)>?(?:[ \t].{0,500})?$", re.MULTILINE)
_BARE = re.compile(rf"https?://[^\s<>()\[\]\"'`|]{{1,{_MAX_ADDRESS}}}", re.IGNORECASE)
_BLANK_LINES = re.compile(r"\n[ \t]*\n(?:[ \t]*\n)+")
_LINE_ENDS = re.compile("\r\n?|[\u2028\u2029\u0085\x0b\x0c]")
# Elements whose content is no text.
_SILENT = frozenset(
    {"script", "style", "svg", "math", "iframe", "object", "template", "noscript", "head", "title", "textarea", "xmp"}
)
_BREAKING = frozenset(
    {
        *("br", "p", "div", "li", "ul", "ol", "tr", "table", "hr", "section", "details", "summary", "center", "pre"),
        *("h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "figure", "figcaption", "dd", "dt"),
    }
)
_SPACING = frozenset({"td", "th"})

_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(.*?)[ \t#]*$")
_RULE = re.compile(r"^ {0,3}(?:(?:\*[ \t]*){3,40}|(?:-[ \t]*){3,40}|(?:_[ \t]*){3,40})$")
_BULLET = re.compile(r"^([ \t]{0,40})[-*+][ \t]{1,9}(?=\S)")
_QUOTE = re.compile(r"^[ \t]{0,3}(?:>[ \t]?){1,100}")
_EMPHASIS = re.compile(r"(?<![\w*])(\*{1,3})(?=[^\s*])([^*\n]{1,500}?)(?<=[^\s*])\1(?![\w*])")
_UNDERLINED = re.compile(r"(?<![\w_])(_{1,3})(?=[^\s_])([^_\n]{1,500}?)(?<=[^\s_])\1(?![\w_])")


@dataclass(frozen=True, slots=True)
class Card:
    """A safe card.

    Attributes:
        markdown: headings, lists, tables, emphasis and code; no HTML, no image, no link.
        links: what it linked to: the words and the address, each address once.
    """

    markdown: str
    links: tuple[tuple[str, str], ...]


def safe_card(raw: bytes) -> Card:
    """Return a README.md made safe; it may be cut off, of any size and of any kind."""
    text = raw[: 4 * MAX_CHARACTERS].decode("utf-8-sig", errors="replace")[:MAX_CHARACTERS]
    text = _without_front_matter(_LINE_ENDS.sub("\n", text))
    links: dict[str, str] = {}
    safe = ""
    for is_code, piece in _parts(text):
        between = "\n" if is_code and safe and not safe.endswith("\n") else ""
        safe += between + (piece if is_code else _safe_prose(piece, links))
    joined = _BLANK_LINES.sub("\n\n", _shown(safe)).strip()
    listed = [(_shown(words or address), _shown(address)) for address, words in links.items()]
    return Card(joined[:MAX_CHARACTERS], tuple(listed))


def plain_card(markdown: str) -> str:
    """Return a safe card without the marks of Markdown, for a view that shows text as it is."""
    lines = []
    for is_code, piece in _parts(markdown):
        for line in piece.splitlines():
            if not is_code:
                lines.append(_plain_line(line))
            elif not _FENCE.match(line):
                lines.append(line)
    return "\n".join(lines).strip("\n")


def _without_front_matter(text: str) -> str:
    start = text.lstrip("\n ")
    if not start.startswith("---\n"):
        return text
    end = start.find("\n---", 3)
    while end >= 0:
        line_end = start.find("\n", end + 1)
        line = start[end + 1 :] if line_end < 0 else start[end + 1 : line_end]
        if not line.strip("- \t"):
            return "" if line_end < 0 else start[line_end + 1 :]
        end = start.find("\n---", end + 1)
    return text


def _parts(text: str) -> list[tuple[bool, str]]:
    """Return the pieces of a text in order: whether each is a fenced block of code, and its lines."""
    parts: list[tuple[bool, list[str]]] = [(False, [])]
    fence = ""
    for line in text.splitlines(keepends=True):
        found = _FENCE.match(line)
        if fence:
            parts[-1][1].append(line)
            if found and found[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
                parts.append((False, []))
        elif found:
            fence = found[1]
            parts.append((True, [line]))
        else:
            parts[-1][1].append(line)
    return [(is_code, "".join(lines)) for is_code, lines in parts if lines]


# ------------------------------------------------------------------------------------------------------ prose


def _safe_prose(text: str, links: dict[str, str]) -> str:
    """Return prose without HTML, images and links; code within a line stays as it is."""
    pieces = [
        piece if is_code else _without_links(unescape(piece), links).replace("`", "'")
        for is_code, piece in _Html(text, links).pieces()
    ]
    return "\n".join(_FALSE_FENCE.sub("~", line.rstrip()) for line in "".join(pieces).split("\n"))


class _Html:
    """Takes HTML out of a piece of Markdown.

    Attributes:
        _unclosed: endings that were looked for and do not come any more, so that nobody looks again.
    """

    def __init__(self, text: str, links: dict[str, str]) -> None:
        self._text = text
        self._lower = text.lower() if text.isascii() else "".join(c.lower() if c.isascii() else c for c in text)
        self._links = links
        self._pieces: list[tuple[bool, str]] = []
        self._unclosed: set[str] = set()

    def pieces(self) -> list[tuple[bool, str]]:
        """Return whether each piece is code within a line, and its text."""
        at, prose_from = 0, 0
        while (match := _MARK.search(self._text, at)) is not None:
            start = match.start()
            if match[0] == "<":
                end, words = self._element(start)
                if end > start:
                    self._add(False, self._text[prose_from:start] + words)
                    prose_from = end
                at = max(end, start + 1)
                continue
            end = self._code_end(start, match.end())
            if end > start:
                self._add(False, self._text[prose_from:start])
                self._add(True, self._text[start:end])
                prose_from = end
            at = max(end, match.end())
        self._add(False, self._text[prose_from:])
        return self._pieces

    def _add(self, is_code: bool, text: str) -> None:
        if text and self._pieces and self._pieces[-1][0] == is_code:
            # Two pieces of code that come to touch would be read as one, or as none.
            self._pieces[-1] = (is_code, self._pieces[-1][1] + (" " if is_code else "") + text)
        elif text:
            self._pieces.append((is_code, text))

    def _code_end(self, start: int, ticks_end: int) -> int:
        """Return where code that begins with these ticks ends; the start where it does not."""
        ticks = ticks_end - start
        line_end = self._text.find("\n", ticks_end, ticks_end + _CODE_REACH)
        reach = line_end if line_end >= 0 else ticks_end + _CODE_REACH
        closing = re.compile(rf"(?<!`)`{{{ticks}}}(?!`)").search(self._text, ticks_end, reach)
        return closing.end() if closing else start

    def _element(self, start: int) -> tuple[int, str]:
        """Return where the element that begins here ends, and what stays of it; the start where there is none."""
        if not self._text[start + 1 : start + 2].isalpha() and self._text[start + 1 : start + 2] not in ("/", "!", "?"):
            return start, ""
        if self._text.startswith("<!--", start):
            return self._after("-->", start + 4), ""
        if autolink := _AUTOLINK.match(self._text, start):
            _note(self._links, autolink[1], "")
            return autolink.end(), autolink[1]
        tag = _TAG.match(self._text, start)
        if tag is None:
            is_declaration = self._text.startswith(("<!", "<?"), start)
            return (self._after(">", start), "") if is_declaration else (start, "")
        name, attributes, is_end = tag[1].lower(), tag[2], self._text.startswith("</", start)
        if name in _SILENT and not is_end and not attributes.rstrip().endswith("/"):
            closing = self._after(f"</{name}", tag.end())
            return self._after(">", closing), ""
        if name == "img" and (alt := _ALT.search(attributes)) is not None:
            return tag.end(), alt[1] or alt[2] or ""
        if name == "a" and (href := _HREF.search(attributes)) is not None:
            _note(self._links, unescape(href[1]), "")
        return tag.end(), "\n" if name in _BREAKING else " " if name in _SPACING else ""

    def _after(self, ending: str, start: int) -> int:
        """Return what follows the next ending; the end of the text where it does not come."""
        found = -1 if ending in self._unclosed else self._lower.find(ending, start)
        if found < 0:
            self._unclosed.add(ending)
            return len(self._text)
        return found + len(ending)


_MARK = re.compile(r"<|`+")
# What would be HTML or a link again after something in the middle was taken out, or was written with entities.
_CLOSED = re.compile(r"<(?=[A-Za-z/!?])([^<>\n]{0,200})>")
_OPEN = re.compile(r"<(?=[A-Za-z/!?])")
# Three or more ticks as code within a line, which would begin a block where a line comes to begin with them.
_FALSE_FENCE = re.compile(r"^(?=[ \t]{0,12}(?:`{3}|~{3}))")
_REMNANT = re.compile(r"(?<=\])(?=\(|\[|:)")


def _without_links(text: str, links: dict[str, str]) -> str:
    """Return a text with the words of its images and links only, and note their addresses."""

    def noted(match: re.Match[str]) -> str:
        _note(links, match[2], match[1])
        return match[1]

    text = _DEFINITION.sub(lambda match: _note(links, match[1], ""), text)
    text = _LINK.sub(noted, _IMAGE.sub(lambda match: match[1], text))
    text = _REFERENCE_LINK.sub(lambda match: match[1], text)
    for match in _BARE.finditer(text):
        if len(links) >= MAX_LINKS:
            break
        _note(links, match[0].rstrip(".,;:!?*_"), "")
    return _REMNANT.sub(" ", _OPEN.sub("‹", _CLOSED.sub(r"‹\1›", text)))


def _note(links: dict[str, str], address: str, words: str) -> str:
    """Add an address to the list when it may be opened at all; returns nothing to show."""
    plain = address.strip()
    if not plain.lower().startswith(("https://", "http://")) or not plain.isprintable() or len(plain) > _MAX_ADDRESS:
        return ""
    words = " ".join(words.split())[:_MAX_LINK_WORDS]
    if plain in links:
        links[plain] = links[plain] or words
    elif len(links) < MAX_LINKS:
        links[plain] = words
    return ""


def _shown(text: str) -> str:
    """Return a text in which everything can be seen: hidden and directing characters are written out."""
    if text.isascii() and not _CONTROL.search(text):
        return text
    out: list[str] = []
    marks = 0
    for place, character in enumerate(text):
        kind = unicodedata.category(character)
        marks = marks + 1 if kind in ("Mn", "Me") else 0
        if marks > _MAX_MARKS:
            continue
        if kind in _HIDDEN and character not in "\n\t" and not _is_joining(text, place):
            out.append(f"⟨U+{ord(character):04X}⟩")
        else:
            out.append(character)
    return "".join(out)


_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def _is_joining(text: str, place: int) -> bool:
    """Whether a joiner or non-joiner stands between characters that it shapes, as in Persian words and in emoji."""
    if text[place] not in "\u200c\u200d" or not 0 < place < len(text) - 1:
        return False
    around = text[place - 1] + text[place + 1]
    return not any(character.isascii() or unicodedata.category(character) in _HIDDEN for character in around)


# ------------------------------------------------------------------------------------------------- plain text


def _plain_line(line: str) -> str:
    if _RULE.match(line):
        return ""
    line = _QUOTE.sub("", line)
    if heading := _HEADING.match(line):
        line = heading[1]
    line = _BULLET.sub(r"\1• ", line)
    return _UNDERLINED.sub(r"\2", _EMPHASIS.sub(r"\2", line)).rstrip()
