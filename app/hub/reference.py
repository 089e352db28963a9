"""What a person means by a name or a pasted address: owner/name, owner/name:QUANT, a repo's page, a file, a folder.

Knows addresses only; whether there is such a repo, the hub says.
Reference: the addresses of https://huggingface.co (tree, blob, resolve, raw) and the names that llama.cpp's -hf takes.
"""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit

from app.hub.types import RepoReference

MAX_CHARACTERS = 2_000
_MAX_NAME = 96  # the hub's own limit for owner and name together
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?")
_QUANTIZATION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HOSTS = frozenset({"huggingface.co", "www.huggingface.co", "hf.co"})
_SCHEMES = ("https://", "http://", "hf://")
# What stands behind a repo's name on the hub's pages, and whether a file follows.
_VERBS = {"tree": False, "blob": True, "resolve": True, "raw": True, "blame": True, "commits": False, "commit": False}
_PAGES = frozenset({"discussions", "settings", "edit", "new", "upload"})
# First parts of addresses at the hub that are no owner.
_NO_OWNERS = frozenset(
    {
        *("api", "datasets", "spaces", "models", "docs", "blog", "collections", "papers", "posts", "settings", "join"),
        *("login", "organizations", "pricing", "tasks", "learn", "chat", "search", "new", "buckets", "kernels"),
    }
)


def is_repo_name(text: str) -> bool:
    """Return whether this may be the name of a repo: owner/name."""
    owner, slash, name = text.partition("/")
    return (
        bool(slash)
        and len(text) <= _MAX_NAME
        and all(_NAME.fullmatch(part) and "--" not in part and ".." not in part for part in (owner, name))
        and not name.endswith(".git")
    )


def looks_like_address(text: str) -> bool:
    """Return whether a person pasted an address rather than typed words."""
    plain = text.strip().casefold()
    return plain.startswith(_SCHEMES) or "://" in plain or plain.partition("/")[0] in _HOSTS


def parse_reference(text: str, endpoint: str = "") -> RepoReference | None:
    """Return what a name or an address stands for; None for words, and for addresses of anything but a model.

    Args:
        text: as typed or pasted.
        endpoint: the address of the hub in use, whose pages are understood too.
    """
    plain = text.strip().strip("<>\"'").strip()
    if not plain or len(plain) > MAX_CHARACTERS or any(not one.isprintable() or one.isspace() for one in plain):
        return None
    path = _path_of(plain, endpoint)
    if path is not None:
        return _from_path(path)
    if "://" in plain or plain.count("/") != 1:
        return None
    return _from_name(plain)


def _path_of(plain: str, endpoint: str) -> str | None:
    """Return the path of an address at the hub, without its query; None where it is at none."""
    hosts = _HOSTS | ({_host(endpoint)} if endpoint else frozenset())
    if plain.casefold().startswith("hf://"):
        return plain[len("hf://") :]
    if not plain.casefold().startswith(("https://", "http://")):
        host, slash, rest = plain.partition("/")
        return rest.partition("?")[0].partition("#")[0] if slash and host.casefold() in hosts else None
    try:
        parts = urlsplit(plain)
        if parts.username or parts.password or _host(plain) not in hosts:
            return None
    except ValueError:
        return None
    return parts.path.lstrip("/")


def _host(address: str) -> str:
    try:
        return urlsplit(address).netloc.casefold()
    except ValueError:
        return ""


def _from_path(path: str) -> RepoReference | None:
    parts = path.strip("/").split("/")
    if parts[0] == "api" and parts[1:2] == ["models"]:
        parts = parts[2:]
        if parts[2:3] == ["revision"]:
            parts[2] = "tree"
    if len(parts) < 2 or parts[0].casefold() in _NO_OWNERS:
        return None
    name, _colon, quantization = parts[1].partition(":")
    found = _from_name(f"{parts[0]}/{name}" + (f":{quantization}" if quantization else ""))
    if found is None or len(parts) == 2 or parts[2] in _PAGES:
        return found
    if parts[2] not in _VERBS:
        return None
    rest = [unquote(part) for part in parts[3:]]
    if not all(part and part.isprintable() for part in rest):
        return None
    inner = "/".join(rest[1:])
    is_file = _VERBS[parts[2]] and bool(inner)
    return RepoReference(repo=found.repo, revision=rest[0] if rest else "", path=inner, is_file=is_file)


def _from_name(plain: str) -> RepoReference | None:
    repo, colon, quantization = plain.partition(":")
    if not is_repo_name(repo) or (colon and not _QUANTIZATION.fullmatch(quantization)):
        return None
    return RepoReference(repo=repo, quantization=quantization)
