"""Model cards made safe: whatever a stranger wrote, nothing of it acts, and everything of it can be seen."""

from __future__ import annotations

import random
import re

import pytest

from app.hub.card import MAX_CHARACTERS, MAX_LINKS, plain_card, safe_card


def markdown(text: str) -> str:
    return safe_card(text.encode("utf-8", "surrogatepass")).markdown


def links(text: str) -> list[tuple[str, str]]:
    return list(safe_card(text.encode()).links)


def test_the_front_matter_is_cut_off():
    assert markdown("---\nlicense: mit\ntags:\n- a\n---\n# Title\n") == "# Title"
    assert markdown("\n---\nlicense: mit\n---\n\ntext") == "text"
    assert markdown("---\r\nlicense: mit\r\n---\r\ntext") == "text"
    assert markdown("---\nlicense: mit\n---") == ""
    assert markdown("text\n---\nmore") == "text\n---\nmore"
    assert markdown("---\nnever closed") == "---\nnever closed"


@pytest.mark.parametrize(
    ("raw", "safe"),
    [
        ("a <b>bold</b> word", "a bold word"),
        ('<div align="center">\ntext\n</div>', "text"),
        ("a<br>b<br/>c", "a\nb\nc"),
        ("<p>one</p><p>two</p>", "one\n\ntwo"),
        ('<img src="file:///etc/passwd" alt="A logo">', "A logo"),
        ("<img src=x>", ""),
        ("before <!-- hidden --> after", "before  after"),
        ("before <!-- never closed", "before"),
        ("a <script>alert(1)</script> b", "a  b"),
        ("a <SCRIPT SRC=x>alert(1)</ScRiPt > b", "a  b"),
        ("a <style>p{}</style> b", "a  b"),
        ("a <script>never closed", "a"),
        ("a <svg onload=x><text>y</text></svg> b", "a  b"),
        ("<!DOCTYPE html>text<?php x ?>", "text"),
        ("5 < 6 and 7 > 2", "5 < 6 and 7 > 2"),
        ("x <- y", "x <- y"),
        ("<im<b>g src=x>", "‹img src=x›"),
        ("&lt;img src=x onerror=y&gt;", "‹img src=x onerror=y›"),
        ("&amp;lt;b&amp;gt; AT&amp;T", "&lt;b&gt; AT&T"),
        ("<details><summary>More</summary>inside</details>", "More\ninside"),
        ("<td>a</td><td>b</td>", "a  b"),
    ],
)
def test_html_is_removed(raw, safe):
    assert markdown(raw) == safe


def test_code_stays_as_it_is():
    text = "Use `<|im_start|>` and `` a`<b> ``:\n\n```html\n<b>![x](y)</b> [a](b)\n```\n\n~~~\n<i>\n~~~"
    assert markdown(text) == text
    assert markdown("```\n<b>never closed") == "```\n<b>never closed"
    assert markdown("a ` lonely <b>x</b>") == "a ' lonely x"
    assert markdown("`a`<b>``<i>``") == "`a` ``<i>``"
    assert markdown("<b>```x\ny</b>") == "'''x\ny"
    assert markdown("<p></p>```x``` y") == "~```x``` y"
    assert markdown("<script>\n</script>```\n<b>\n```") == "'''\n\n```"


@pytest.mark.parametrize(
    ("raw", "safe", "found"),
    [
        ("see [the page](https://e.example/a).", "see the page.", [("the page", "https://e.example/a")]),
        ('[t](<https://e.example> "title")', "t", [("t", "https://e.example")]),
        ("[wiki](https://e.example/a_(b))", "wiki", [("wiki", "https://e.example/a_(b)")]),
        ("[x](javascript:alert(1))", "x", []),
        ("[x](file:///etc/passwd) [y](//host/share) [z](smb://h/x)", "x y z", []),
        ("[licence](./LICENSE)", "licence", []),
        ("![alt](https://i.example/x.png)", "alt", []),
        ("![](x)", "", []),
        ("[![badge](https://i.example/b.svg)](https://e.example)", "badge", [("badge", "https://e.example")]),
        ("![a][ref]", "a", []),
        ("[a][ref]\n\n[ref]: https://e.example 'T'", "a", [("https://e.example", "https://e.example")]),
        ("[ref]: javascript:x", "", []),
        ("<https://e.example/x>", "https://e.example/x", [("https://e.example/x", "https://e.example/x")]),
        ("go to https://e.example/x, now", "go to https://e.example/x, now",
         [("https://e.example/x", "https://e.example/x")]),
        ('<a href="https://e.example/?a=1&amp;b=2">home</a>', "home",
         [("https://e.example/?a=1&b=2", "https://e.example/?a=1&b=2")]),
        ("<a href='javascript:x'>home</a>", "home", []),
        ("[[a](http://x.example)](javascript:z)", "[a] (javascript:z)", [("a", "http://x.example")]),
        ("[a](https://x.example/\u202egpj)", "a", []),
    ],
)  # fmt: skip
def test_links_and_images_become_words_and_a_list(raw, safe, found):
    assert markdown(raw) == safe
    assert links(raw) == found


def test_the_list_of_links_names_each_address_once_and_ends():
    assert links("[a](https://e.example) [b](https://e.example)") == [("a", "https://e.example")]
    assert links("https://e.example [b](https://e.example)") == [("b", "https://e.example")]
    assert len(links("\n".join(f"https://e.example/{number}" for number in range(500)))) == MAX_LINKS


def test_hidden_and_directing_characters_are_written_out():
    assert markdown("a\u202eb") == "a⟨U+202E⟩b"
    assert markdown("a\u200bb\ufeffc\x1b[31m") == "a⟨U+200B⟩b⟨U+FEFF⟩c⟨U+001B⟩[31m"
    assert markdown("a\x00b") == "a⟨U+0000⟩b"
    assert markdown("tag \U000e0041") == "tag ⟨U+E0041⟩"
    assert markdown("family 👨\u200d👩\u200d👧") == "family 👨\u200d👩\u200d👧"
    assert markdown("می\u200cخواهم") == "می\u200cخواهم"
    assert markdown("a\u200db") == "a⟨U+200D⟩b"
    assert markdown("```\nx\u202ey\n```") == "```\nx⟨U+202E⟩y\n```"
    assert len(markdown("e" + "\u0301" * 1000)) == 5


def test_bytes_of_any_kind_are_taken():
    assert safe_card(b"\xef\xbb\xbfa\xff\xfeb").markdown == "a\ufffd\ufffdb"
    assert safe_card(b"").markdown == ""
    assert safe_card("a\u2028b\u0085c\r\nd\re".encode()).markdown == "a\nb\nc\nd\ne"


def test_the_text_is_cut():
    assert len(safe_card(b"a" * 3_000_000).markdown) == MAX_CHARACTERS
    assert len(safe_card("é".encode() * 3_000_000).markdown) == MAX_CHARACTERS
    assert len(safe_card(b"\x01" * 200_000).markdown) == MAX_CHARACTERS


def test_many_blank_lines_are_one():
    assert markdown("a\n\n\n \n\n\nb\n\n") == "a\n\nb"


def test_the_plain_card_has_no_marks():
    card = (
        "# Title #\n\n> quoted\n\n* **bold** and *slanted*\n  - __inner__ snake_case_name 2*3*4\n1. one\n\n---\n\n"
        "| a | b |\n\n```python\n# not a heading\n**x**\n```"
    )
    assert plain_card(card) == (
        "Title\n\nquoted\n\n• bold and slanted\n  • inner snake_case_name 2*3*4\n1. one\n\n\n\n| a | b |\n\n"
        "# not a heading\n**x**"
    )
    assert plain_card("") == ""


N = MAX_CHARACTERS
BOMBS = {
    "angles": b"<" * N,
    "comments": b"<!--" * (N // 4),
    "ticks": b"".join(b"`" * count + b" " for count in range(1, 620)),
    "pairs of ticks": b"` `` " * (N // 5),
    "brackets": b"[" * N,
    "images": b"![" * (N // 2),
    "links": b"[a](" * (N // 4),
    "nested links": b"[[[[a](b" * (N // 8),
    "scripts": b"<script>" * (N // 8),
    "half scripts": b"<script" * (N // 7),
    "half tags": b"<a " * (N // 3),
    "quotes": b">" * N,
    "stars": b"*a " * (N // 3),
    "open stars": b"**a " * (N // 4),
    "marks": b"e" + "\u0301".encode() * (N // 2),
    "addresses": b"http://" * (N // 7),
    "definitions": b"[a]: b\n" * (N // 7),
    "entities": b"&lt;" * (N // 4),
    "fences": b"```\n" * (N // 4),
    "front matter": b"---\n" + b"\n---x" * (N // 5),
    "lists": b"- " * (N // 2),
    "headings": b"# a" + b" #" * (N // 2),
    "a long link": b"[a](" + b"a" * N,
    "many long links": (b"[a](" + b"a" * 1900 + b" ") * 100,
    "blanks in a link": b"[a](" + b" " * N,
    "a table": b"|" * N,
}


@pytest.mark.timeout(60)  # what takes more than in proportion to its length would take minutes
@pytest.mark.parametrize("name", BOMBS)
def test_no_text_takes_long(name):
    card = safe_card(BOMBS[name])
    assert len(card.markdown) <= MAX_CHARACTERS
    assert len(plain_card(card.markdown)) <= MAX_CHARACTERS


_PIECES = (
    *("<", ">", "</", "<!--", "-->", "<script>", "</script>", "<img src=x onerror=y>", "<a href=javascript:x>", "<b"),
    *(
        "[",
        "]",
        "(",
        ")",
        "![",
        "](",
        "][",
        "]:",
        "javascript:x",
        "https://e.example",
        "`",
        "``",
        "```\n",
        "\n",
        "\n\n",
    ),
    *("&lt;", "&gt;", "&#60;", "img src=x", "a", " ", "---\n", "\u202e", "|", "*", "\\", '"', "'", "=", "\x00"),
)


def without_code(text: str) -> str:
    """The text without fenced blocks and without code in a line, by the plainest rule there is."""
    outside, is_open = [], ""
    for line in text.split("\n"):
        fence = re.match(r"\s*(`{3,}|~{3,})", line)
        if is_open:
            is_open = "" if fence and fence[1].startswith(is_open) and not line.strip().strip(is_open[0]) else is_open
        elif fence:
            is_open = fence[1]
        else:
            outside.append(re.sub(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", " ", line))
    return "\n".join(outside)


def check_seed(seed: int) -> None:
    draw = random.Random(seed)
    raw = "".join(draw.choice(_PIECES) for _ in range(draw.randint(1, 60)))
    card = safe_card(raw.encode())
    prose = without_code(card.markdown)
    assert not re.search(r"<[A-Za-z/!?]", prose), (seed, raw, card.markdown)
    assert not re.search(r"\]\(|\]\[|^ {0,3}\[[^\]]*\]:", prose, re.MULTILINE), (seed, raw, card.markdown)
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", card.markdown), (seed, raw)
    assert all(address.startswith("https://") for _words, address in card.links), (seed, raw)
    plain_card(card.markdown)


def test_nothing_acts_in_300_made_up_cards():
    for seed in range(300):
        check_seed(seed)


@pytest.mark.full
def test_nothing_acts_in_20_000_made_up_cards():
    for seed in range(300, 20_000):
        check_seed(seed)
