"""What can go wrong between a hub and a downloader: each fault by name, for chosen requests, and a slow line.

A fault changes an answer before it is sent. Knows neither repos nor sockets, and shares no code with app/.
"""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from tests.helpers.hub_answers import Answer, Request, error, http_date, redirect
from tests.helpers.hub_files import HOSTILE_NAMES, PIECE_BYTES, Changed, Given, Repeated

# Faults of one answer that carries a file's bytes, or stands where it should: 25, each on a fresh and a resumed one.
TRANSFER_FAULTS: Mapping[str, str] = {
    "http_401": "no token, or one that is not known",
    "http_403": "not allowed; the CDN says it of an address that has expired",
    "http_404": "not there",
    "http_416": "the range cannot be had",
    "http_429": "too many requests, and no word of when to return",
    "http_429_seconds": "the same with Retry-After: VALUE seconds (1)",
    "http_429_date": "the same with Retry-After as a date, VALUE seconds from now (2)",
    "http_500": "the hub's own error",
    "http_502": "a gateway's error, as a web page",
    "http_503": "overloaded; with Retry-After where VALUE is given",
    "stall_before_headers": "accepted, then silence for VALUE seconds (for ever)",
    "stall_in_body": "silence from byte VALUE of the file on (the middle)",
    "reset_in_body": "the connection is reset at byte VALUE of the file (the middle)",
    "short_body": "an orderly end at byte VALUE of the file (the middle), before the promised length",
    "range_ignored": "200 and the whole file whatever range was asked for",
    "wrong_content_range": "206 for a range that begins VALUE bytes (7) further on than asked",
    "no_length": "chunked, without a length",
    "gzip": "compressed, though nobody asked for it",
    "html_page": "200 and the sign-in page of a hotel's network",
    "redirect_loop": "sent to itself for ever",
    "redirect_to_http": "sent from https to http",
    "redirect_elsewhere": "sent to another host, which has the file",
    "flipped_bit": "one bit is another one, at byte VALUE (the middle); the size is right",
    "replaced": "another file of the same size and head under another ETag",
    "longer_body": "VALUE bytes (1000) more than the file has",
}
# Faults of the API's answers.
LISTING_FAULTS: Mapping[str, str] = {
    "wrong_listed_size": "sizes are VALUE bytes (1000) more than the files have; at resolve, X-Linked-Size too",
    "wrong_listed_sha256": "hashes are of other bytes; at resolve, X-Linked-ETag too",
    "listing_bomb": "VALUE entries (1,000,000)",
    "deep_json": "VALUE lists within each other (1,000,000)",
    "invalid_json": "JSON that ends in the middle",
    "hostile_names": "files whose names try to leave the folder, added to every listing",
}
OTHER_FAULTS: Mapping[str, str] = {
    "refused": "the connection is reset before any answer",
    "http_429_ratelimit": "too many requests, and when to return in the header RateLimit alone (VALUE seconds, 2)",
    "throttle": "VALUE bytes a second (1,000,000), shared by all transfers that match",
}
FAULTS: Mapping[str, str] = {**TRANSFER_FAULTS, **LISTING_FAULTS, **OTHER_FAULTS}
HUB_AREAS = ("api", "resolve", "cdn")
METHODS = ("GET", "HEAD", "POST")
_BREAKS = {"stall_in_body": "stall", "reset_in_body": "reset", "short_body": "short"}
_PAGE = (
    b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>Accept the terms to go online.</body></html>\n"
)
_SLACK_S = 0.1  # how much lost time a slow line makes up for


class Pace:
    """A line that carries so many bytes a second, whoever they are for."""

    def __init__(self, bytes_per_s: float) -> None:
        self.piece_bytes = int(min(PIECE_BYTES, max(1024, bytes_per_s / 100)))
        self._bytes_per_s = bytes_per_s
        self._due_s = 0.0
        self._lock = threading.Lock()

    def wait(self, count_bytes: int, ending: threading.Event) -> None:
        """Return when the line has carried these bytes; at once when everything ends."""
        with self._lock:
            now_s = time.monotonic()
            self._due_s = max(self._due_s, now_s - _SLACK_S) + count_bytes / self._bytes_per_s
            delay_s = self._due_s - now_s
        if delay_s > 0:
            ending.wait(delay_s)


@dataclass
class Fault:
    """A fault and the requests it is for.

    Attributes:
        kind: a key of FAULTS.
        method: such as GET; "*" for any.
        area: api, resolve, cdn, elsewhere or plain; "*" for the first three.
        pattern: of the request's target, with * for anything.
        times: how many requests it meets; None for all.
        after: how many matching requests pass before.
        value: see FAULTS; None for what stands there in brackets.
        seen: how many requests matched so far.
        used: how many it met.
    """

    kind: str
    method: str
    area: str
    pattern: str
    times: int | None = None
    after: int = 0
    value: float | None = None
    seen: int = 0
    used: int = 0
    pace: Pace | None = field(default=None, repr=False)

    def number(self, usual: float) -> int:
        """Return the value, or what is usual where none was given."""
        return int(usual if self.value is None else self.value)

    def matches(self, request: Request) -> bool:
        """Return whether it is for this request, were it in time."""
        is_there = request.area in HUB_AREAS if self.area == "*" else request.area == self.area
        return is_there and self.method in ("*", request.method) and fnmatchcase(request.target, self.pattern)


class FaultBook:
    """The faults of a server; a test may change them between requests."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._lock = threading.Lock()

    def add(self, kind: str, match: str, times: int | None, after: int, value: float | None) -> Fault:
        """Add a fault; see HubServer.fault."""
        assert kind in FAULTS, f"{kind} is no fault; there are {', '.join(FAULTS)}"
        method, _space, place = match.partition(" ")
        if method not in METHODS:
            method, place = "*", match
        area, colon, pattern = place.partition(":")
        fault = Fault(kind, method, area, pattern if colon else "*", times, after, value)
        if kind == "throttle":
            fault.pace = Pace(1_000_000 if value is None else value)
        with self._lock:
            self._faults.append(fault)
        return fault

    def clear(self) -> None:
        """Be honest from now on."""
        with self._lock:
            self._faults.clear()

    def take(self, request: Request) -> tuple[Fault | None, Pace | None]:
        """Return the fault that this request meets, the first that is due, and the line it goes over."""
        found, pace = None, None
        with self._lock:
            for fault in self._faults:
                if not fault.matches(request):
                    continue
                fault.seen += 1
                is_due = fault.seen > fault.after and (fault.times is None or fault.used < fault.times)
                if is_due and (fault.pace is not None or found is None):
                    fault.used += 1
                    found, pace = (found, fault.pace) if fault.pace is not None else (fault, pace)
        request.fault = found.kind if found else ""
        return found, pace


def instead(fault: Fault, request: Request, origins: Mapping[str, str]) -> Answer | None:
    """Return what a fault answers in place of everything; None where it changes the honest answer.

    Args:
        fault: what the request met.
        request: what was asked.
        origins: the addresses of the areas, such as http://127.0.0.1:1234.
    """
    if fault.kind.startswith("http_"):
        return _status(fault, request)
    if fault.kind == "refused":
        return Answer(manner="refuse")
    if fault.kind == "stall_before_headers":
        return None if fault.value else Answer(manner="silent")
    if fault.kind == "html_page":
        return Answer(200, {"Content-Type": "text/html; charset=utf-8"}, Given(_PAGE))
    if fault.kind == "redirect_loop":
        return redirect(origins["hub" if request.area in ("api", "resolve") else request.area] + request.path)
    if fault.kind in ("redirect_elsewhere", "redirect_to_http"):
        return redirect(origins["elsewhere" if fault.kind == "redirect_elsewhere" else "plain"] + request.path)
    if fault.kind in ("listing_bomb", "deep_json"):
        return Answer(200, {"Content-Type": "application/json"}, _bomb(fault, request))
    return None


def _status(fault: Fault, request: Request) -> Answer:
    status = int(fault.kind.split("_")[1])
    if status == 502:
        return Answer(502, {"Content-Type": "text/html"}, Given(b"<html><h1>502 Bad Gateway</h1></html>"))
    if status == 403 and request.area not in ("api", "resolve"):
        words = b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>AccessDenied</Code></Error>'
        return Answer(403, {"Content-Type": "application/xml"}, Given(words))
    code, message = {
        401: ("", "Invalid credentials in Authorization header"),
        403: ("", "Your token may not read this"),
        404: ("EntryNotFound", "Entry not found"),
        416: ("", "Range Not Satisfiable"),
        429: ("", "We had to rate limit you"),
        500: ("", "Internal Error - We're working hard to fix this as soon as possible!"),
        503: ("", "Service Unavailable"),
    }[status]
    answer = error(status, code, message)
    if fault.kind == "http_429_seconds" or (status == 503 and fault.value is not None):
        answer.headers["Retry-After"] = str(fault.number(1))
    elif fault.kind == "http_429_date":
        answer.headers["Retry-After"] = http_date(fault.number(2))
    elif fault.kind == "http_429_ratelimit":
        answer.headers["RateLimit"] = f'"api";r=0;t={fault.number(2)}'
        answer.headers["RateLimit-Policy"] = '"fixed window";"api";q=500;w=300'
    return answer


def _bomb(fault: Fault, request: Request) -> Repeated:
    count = fault.number(1_000_000)
    if fault.kind == "deep_json":
        return Repeated(b"", b"[", count, b"")
    if "/tree/" in request.target:
        unit = b'{"type":"file","oid":"' + b"0" * 40 + b'","size":1,"path":"many.gguf"}'
        return Repeated(b"[", unit + b",", count - 1, unit + b"]")
    if request.target == "/api/models":
        unit = b'{"_id":"0","id":"many/models","likes":1,"downloads":1,"tags":[]}'
        return Repeated(b"[", unit + b",", count - 1, unit + b"]")
    unit = b'{"rfilename":"many.gguf"}'
    return Repeated(b'{"id":"many/files","siblings":[', unit + b",", count - 1, unit + b"]}")


def spoil_source(fault: Fault, answer: Answer) -> None:
    """Change what an answer is cut from, before the range is looked at; a redirect or a refusal stays as it is."""
    headers, size = answer.headers, answer.content.size_bytes
    if fault.kind == "range_ignored":
        answer.etag = ""  # so that no range and no condition is looked at
        headers.pop("Accept-Ranges", None)
    elif fault.kind == "wrong_listed_size" and "X-Linked-Size" in headers:
        headers["X-Linked-Size"] = str(int(headers["X-Linked-Size"]) + fault.number(1000))
    elif fault.kind == "wrong_listed_sha256" and "X-Linked-Size" in headers:
        headers["X-Linked-ETag"] = f'"{_other_hash(headers["X-Linked-ETag"].strip(chr(34)))}"'
    elif answer.value is not None:
        answer.value = _spoiled_value(fault, answer.value)
    if answer.status != 200 or not answer.is_file:
        return
    if fault.kind == "flipped_bit":
        answer.content = Changed(answer.content, flipped_at=min(fault.number(size // 2), size - 1))
    elif fault.kind == "replaced":
        answer.content = Changed(answer.content, other_from=min(4096, size // 2))
        answer.etag = headers["ETag"] = f'"{_other_hash(answer.etag.strip(chr(34)))}"'
    elif fault.kind == "longer_body":
        answer.content = Changed(answer.content, extra_bytes=fault.number(1000))


def spoil_answer(fault: Fault, answer: Answer) -> None:
    """Change a finished answer: how its body is labelled and sent."""
    if fault.kind == "stall_before_headers":
        answer.manner, answer.stall_s = "late", float(fault.value or 0)
    elif fault.kind in _BREAKS:
        answer.manner, answer.break_at = _BREAKS[fault.kind], fault.number(-1)
    elif fault.kind == "no_length":
        answer.manner = "chunked"
    elif fault.kind == "invalid_json" and answer.value is not None:
        whole = answer.content.part(0, answer.content.size_bytes)
        answer.content = Given(whole[: len(whole) * 2 // 3])
        answer.end = answer.content.size_bytes
    elif fault.kind == "wrong_content_range" and answer.status in (200, 206) and answer.is_file:
        size = answer.content.size_bytes
        answer.status, answer.start = 206, min(answer.start + fault.number(7), size - 1)
        answer.end = max(answer.end, answer.start + 1)
        answer.headers["Content-Range"] = f"bytes {answer.start}-{answer.end - 1}/{size}"
    elif fault.kind == "gzip":
        body = gzip.compress(answer.content.part(answer.start, answer.end), 1)
        answer.headers["Content-Encoding"] = "gzip"
        answer.content, answer.start, answer.end, answer.is_file = Given(body), 0, len(body), False


def _spoiled_value(fault: Fault, value: Any) -> Any:
    """Return an API's answer with what the fault does to each file in it."""
    if fault.kind == "hostile_names":
        return _with_hostile_names(value)
    change: Callable[[str, Any], Any] | None = {
        "wrong_listed_size": lambda key, one: one + fault.number(1000) if key == "size" and one else one,
        "wrong_listed_sha256": lambda key, one: _other_hash(one) if key == "sha256" or len(str(one)) == 64 else one,
    }.get(fault.kind)
    return value if change is None else _mapped(value, change)


def _mapped(value: Any, change: Callable[[str, Any], Any], key: str = "") -> Any:
    if isinstance(value, dict):
        return {name: _mapped(one, change, name) for name, one in value.items()}
    if isinstance(value, list):
        return [_mapped(one, change, key) for one in value]
    return change(key, value)


def _with_hostile_names(value: Any) -> Any:
    if isinstance(value, dict) and "siblings" in value:
        like = value["siblings"][0] if value["siblings"] else {}
        return {**value, "siblings": value["siblings"] + [{**like, "rfilename": name} for name in HOSTILE_NAMES]}
    if isinstance(value, list) and value and "type" in value[0]:
        like = next((one for one in value if one["type"] == "file"), value[0])
        return value + [{**like, "path": name} for name in HOSTILE_NAMES]
    return value


def _other_hash(digest: str) -> str:
    """Return another hash of the same length."""
    return digest.translate(str.maketrans("0123456789abcdef", "123456789abcdef0"))
