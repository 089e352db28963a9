"""What huggingface_hub says of a repo, as our own values: checked, bounded, without surprises.

Its objects hold whatever the hub sent. Knows neither HTTP nor what the files are for.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from app.downloads.faults import DownloadError
from app.downloads.names import check_path, folded
from app.downloads.types import FileRef
from app.errors import one_line
from app.hub.reference import is_repo_name
from app.hub.types import RepoSummary

if TYPE_CHECKING:
    from huggingface_hub.hf_api import ModelInfo, RepoSibling

MAX_FILES = 10_000
MAX_SIZE_BYTES = 2**50
_MAX_TAGS = 300
_MAX_TAG = 200
_MAX_COUNT = 2**53
_FORMATS = ("gguf", "safetensors")
_GATES = ("auto", "manual")
_RELATIONS = ("quantized", "finetune", "merge", "adapter")
_HEX = frozenset("0123456789abcdef")


def summary_of(info: ModelInfo) -> RepoSummary | None:
    """Return a repo as a list shows it; None for one whose name is none."""
    if not isinstance(info.id, str) or not is_repo_name(info.id):
        return None
    owner, _slash, name = info.id.partition("/")
    tags = _tags(info.tags)
    gguf, safetensors = _mapping(info.gguf), info.safetensors
    total = _count(gguf.get("total")) or _count(getattr(safetensors, "total", None))
    return RepoSummary(
        repo=info.id,
        name=name,
        owner=owner,
        downloads=_count(info.downloads) or 0,
        likes=_count(info.likes) or 0,
        updated=_moment(info.last_modified or info.created_at),
        gated=info.gated if info.gated in _GATES else bool(info.gated),
        licence=_licence(tags, info),
        tags=tags,
        parameters_count=total,
        formats=tuple(name for name in _FORMATS if name in tags or (name == "gguf" and gguf)),
        context_tokens=_count(gguf.get("context_length")),
        architecture=_word(gguf.get("architecture")),
        base_models=_base_models(tags),
    )


def files_of(
    siblings: Iterable[RepoSibling] | None, endpoint: str, repo: str, revision: str
) -> tuple[list[FileRef], int]:
    """Return a repo's files, and how many were left out because no file here may have their name.

    Args:
        siblings: as huggingface_hub lists them, with sizes.
        endpoint: the hub's address.
        repo: owner/name.
        revision: the commit that the listing is of.
    """
    found: list[FileRef] = []
    places: set[str] = set()
    refused = 0
    for sibling in siblings or ():
        path = sibling.rfilename
        size_bytes = _count(sibling.size) or 0
        is_taken = isinstance(path, str) and len(found) < MAX_FILES and size_bytes <= MAX_SIZE_BYTES
        if not is_taken or not _may_be_here(path) or folded(path) in places:
            refused += 1
            continue
        places.add(folded(path))
        sha256 = _hash(sibling.lfs.sha256 if sibling.lfs else None, 64)
        etag = sha256 or _hash(sibling.blob_id, 40)
        found.append(FileRef(endpoint, repo, revision, path, size_bytes, sha256, etag))
    return found, refused


def _may_be_here(path: str) -> bool:
    try:
        check_path(path)
    except DownloadError:
        return False
    return True


def importance_matrix_of(info: ModelInfo, paths: Iterable[str]) -> bool | None:
    """Return whether a repo says that it was quantized with an importance matrix; None when nothing says."""
    gguf = _mapping(info.gguf)
    if any(str(key).startswith("quantize_imatrix") and value for key, value in gguf.items()):
        return True
    names = " ".join([str(info.id), *map(str, info.tags or ()), *paths]).lower()
    if "imatrix" in names or "-i1-" in names:
        return True
    return None


def parameter_types(info: ModelInfo) -> Mapping[str, int]:
    """Return how many weights of each type the hub counts in a safetensors model."""
    found = _mapping(getattr(info.safetensors, "parameters", None))
    return {_word(name): count for name, value in found.items() if (count := _count(value)) and _word(name)}


def commit_of(info: ModelInfo) -> str:
    """Return the commit that a listing is of; "" for none."""
    return _hash(info.sha, 40)


def _tags(tags: object) -> tuple[str, ...]:
    if not isinstance(tags, list):
        return ()
    return tuple(one_line(tag, _MAX_TAG) for tag in tags[:_MAX_TAGS] if isinstance(tag, str) and len(tag) <= _MAX_TAG)


def _licence(tags: tuple[str, ...], info: ModelInfo) -> str:
    card = info.card_data
    for name in (getattr(card, "license_name", None), getattr(card, "license", None)):
        if isinstance(name, str) and name not in ("", "other"):
            return one_line(name, 60)
    return next((one_line(tag.partition(":")[2], 60) for tag in tags if tag.startswith("license:")), "")


def _base_models(tags: tuple[str, ...]) -> tuple[str, ...]:
    """Return the models that the tags name; those that were quantized come first."""
    found: dict[str, bool] = {}
    for tag in tags:
        if not tag.startswith("base_model:"):
            continue
        rest = tag.removeprefix("base_model:")
        relation, _colon, name = rest.partition(":")
        is_relation = relation in _RELATIONS
        base = name if is_relation else rest
        if is_repo_name(base):
            found[base] = found.get(base, False) or relation == "quantized"
    return tuple(sorted(found, key=lambda base: not found[base]))


def _moment(when: object) -> str:
    if not isinstance(when, datetime.datetime):
        return ""
    aware = when if when.tzinfo else when.replace(tzinfo=datetime.UTC)
    return aware.astimezone(datetime.UTC).isoformat(timespec="seconds")


def _count(value: object) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MAX_COUNT
    return value if is_count and isinstance(value, int) else None


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}


def _word(value: object) -> str:
    return one_line(value, 64) if isinstance(value, str) else ""


def _hash(value: object, length: int) -> str:
    """Return a hash in hexadecimal digits; "" for anything else."""
    plain = value.lower() if isinstance(value, str) else ""
    return plain if len(plain) == length and set(plain) <= _HEX else ""
