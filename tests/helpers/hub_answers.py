"""What a test hub was asked and what it answers, before a byte is sent: ranges and conditions as RFC 9110 has them.

Knows neither repos nor sockets, and shares no code with app/.
"""

from __future__ import annotations

import email.utils
import json
import re
import time
from dataclasses import dataclass, field
from typing import Any

from tests.helpers.hub_files import Content, Given

HUB, CDN, ELSEWHERE, PLAIN = "hub", "cdn", "elsewhere", "plain"


@dataclass
class Request:
    """One request and what became of it.

    Attributes:
        number: its place among all, from 0.
        area: what it was for: "api", "resolve" (a file's address at the hub), "cdn" (its bytes), "elsewhere" (a host
            that has no business with the token) or "plain" (the same without TLS).
        method: such as GET.
        path: as it was sent, with its query.
        target: the file as owner/name/path where it asks for one, else the path without its query.
        headers: by their names in lower case.
        body: of a POST.
        status: what was answered; 0 before that.
        fault: the kind of fault that it met; "" for none.
        first_byte: where in the file the answer's body begins.
        carries_file: whether the body is the file's bytes, as they are or wrong.
        sent_bytes: how much of the body was handed to the system.
        is_done: whether nothing more will be sent.
    """

    number: int
    area: str
    method: str
    path: str
    target: str
    headers: dict[str, str]
    body: bytes = b""
    status: int = 0
    fault: str = ""
    first_byte: int = 0
    carries_file: bool = False
    sent_bytes: int = 0
    is_done: bool = False

    @property
    def range(self) -> str:
        """The Range header; "" for none."""
        return self.headers.get("range", "")

    @property
    def token(self) -> str:
        """What it is authorized by; "" for nothing."""
        scheme, _space, token = self.headers.get("authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" else ""

    @property
    def sent(self) -> tuple[int, int]:
        """The bytes of the file that were sent: from here up to there."""
        return self.first_byte, self.first_byte + self.sent_bytes


@dataclass
class Answer:
    """An answer in the making.

    Attributes:
        status: its number.
        headers: all but Content-Length and Transfer-Encoding.
        content: what the body is cut from.
        start: where in the content the body begins.
        end: where it ends; -1 for the content's end.
        etag: what a condition is compared with; "" where ranges and conditions mean nothing.
        is_file: whether the body is cut from a file.
        value: what the body says in JSON, which faults may change; None for other bodies.
        manner: how it is sent: "" at once, "chunked", "late" (after stall_s), "short", "stall" or "reset" (the body
            breaks off), "silent" (nothing, without an end), "refuse" (nothing, with a reset).
        break_at: where in the content a body that breaks off does so; -1 for the middle of what was asked for.
        stall_s: how long a late answer takes.
    """

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    content: Content = field(default_factory=lambda: Given(b""))
    start: int = 0
    end: int = -1
    etag: str = ""
    is_file: bool = False
    value: Any = None
    manner: str = ""
    break_at: int = -1
    stall_s: float = 0

    def settle(self) -> None:
        """Turn a value into its bytes and an open end into a number."""
        if self.value is not None:
            self.headers.setdefault("Content-Type", "application/json; charset=utf-8")
            self.content = Given(json.dumps(self.value).encode())
        if self.end < 0:
            self.end = self.content.size_bytes


def error(status: int, code: str, message: str) -> Answer:
    """Return a refusal as the hub words it; a code of "" is none."""
    headers = {"X-Error-Message": message} | ({"X-Error-Code": code} if code else {})
    return Answer(status, headers, value={"error": message})


def redirect(location: str, status: int = 302, headers: dict[str, str] | None = None) -> Answer:
    """Return an answer that sends the client to another address."""
    words = f"Found. Redirecting to {location}".encode()
    return Answer(status, {"Location": location, "Content-Type": "text/plain", **(headers or {})}, Given(words))


def honour(answer: Answer, request: Request) -> None:
    """Cut an answer to what the request's conditions and range allow; RFC 9110, sections 13 and 14."""
    asked = request.headers
    if not answer.etag or answer.status != 200:
        return
    if "if-match" in asked and not _names(asked["if-match"], answer.etag):
        answer.status, answer.content, answer.is_file = 412, Given(b""), False
        return
    if "if-none-match" in asked and _names(asked["if-none-match"], answer.etag):
        answer.status, answer.content, answer.is_file = 304, Given(b""), False
        return
    size = answer.content.size_bytes
    found = _range(request.range, size)
    if found is None or asked.get("if-range", answer.etag) != answer.etag or request.method not in ("GET", "HEAD"):
        return
    start, end = found
    if start >= min(end, size):
        answer.status, answer.content, answer.is_file = 416, Given(b""), False
        answer.headers["Content-Range"] = f"bytes */{size}"
        return
    answer.status, answer.start, answer.end = 206, start, min(end, size)
    answer.headers["Content-Range"] = f"bytes {start}-{answer.end - 1}/{size}"


def _names(header: str, etag: str) -> bool:
    """Return whether a list of tags holds this one; a weak tag is compared as if it were strong."""
    return header.strip() == "*" or etag in [one.strip().removeprefix("W/") for one in header.split(",")]


def _range(header: str, size: int) -> tuple[int, int] | None:
    """Return the first byte and the end of a range; None for no range, several, or what is none."""
    match = re.fullmatch(r"bytes=(\d*)-(\d*)", header.replace(" ", ""))
    if match is None or match[0] == "bytes=-":
        return None
    if not match[1]:
        return max(0, size - int(match[2])), size
    end = int(match[2]) + 1 if match[2] else size
    return (int(match[1]), end) if not match[2] or end > int(match[1]) else None


def http_date(in_s: float) -> str:
    """Return the date so many seconds from now as HTTP writes it."""
    return email.utils.formatdate(time.time() + in_s, usegmt=True)
