"""Models that Ollama keeps: manifests that name blobs by their SHA-256.

`manifests/HOST/NAMESPACE/MODEL/TAG` is a list of layers; the layer of the weights is a GGUF in `blobs`. A blob that
several tags name is listed once. Opens manifests only, and only short ones.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from app.i18n import _
from app.models.model_name import plain_name, plain_owner
from app.models.source_candidate import Candidate, is_file, is_folder, read_small, size_of
from app.models.source_search import Search, is_own_folder

_MANIFEST_BYTES = 2**20
_DEPTH = 5  # HOST/NAMESPACE/MODEL/TAG, and one folder more for hosts with ports
_DIGEST = re.compile(r"sha256[:-]([0-9a-f]{64})")
_KIND = "application/vnd.ollama.image."
_OWN_HOST, _OWN_NAMESPACE = "registry.ollama.ai", "library"
_LATEST = "latest"


class _Layer(msgspec.Struct, rename="camel"):
    media_type: str = ""
    digest: str = ""
    size: int = 0


class _Manifest(msgspec.Struct):
    layers: list[_Layer] = []

    def first(self, kind: str) -> _Layer | None:
        """Return the first layer of this kind, such as "model"; None without one."""
        kinds = ((layer, layer.media_type.partition(";")[0]) for layer in self.layers)
        return next((layer for layer, media_type in kinds if media_type == _KIND + kind), None)


@dataclass(frozen=True, slots=True)
class _Tag:
    """A name that Ollama knows, and what it stands for."""

    path: Path
    owner: str
    model: str
    tag: str
    manifest: _Manifest

    @property
    def name(self) -> str:
        """The name that Ollama shows."""
        return f"{self.model}:{self.tag}"

    @property
    def full_name(self) -> str:
        """The name that Ollama's command line takes."""
        return f"{self.owner}/{self.name}" if self.owner else self.name

    def rank(self) -> tuple[bool, bool, str, str]:
        """Return what puts the most telling of several names for one blob first."""
        return (self.manifest.first("adapter") is not None, self.tag == _LATEST, self.owner, self.name)


def is_ollama_folder(folders: Collection[str]) -> bool:
    """Whether a folder is where Ollama keeps its models, by the names of the folders in it."""
    return {"manifests", "blobs"} <= set(folders)


def ollama_candidates(search: Search, folder: Path) -> Iterator[Candidate]:
    """Yield the models of one folder of Ollama's; nothing is on disk of those that run elsewhere."""
    if not is_folder(folder / "manifests"):
        return
    tags = [tag for path in _manifests(search, folder / "manifests", _DEPTH) if (tag := _read_tag(folder, path))]
    seen: set[str] = set()
    for tag in sorted(tags, key=_Tag.rank):
        weights = tag.manifest.first("model")
        if weights is None:
            if tag.manifest.first("tensor") is not None:
                words = _("Ollama keeps this model in pieces of its own, which only Ollama can read.")
                yield _faulty(search, tag, tag.path, words)
            continue
        digest = _DIGEST.fullmatch(weights.digest)
        if digest is None:
            yield _faulty(search, tag, tag.path, _("Ollama's entry for this model does not say where its file is."))
        elif digest[1] not in seen:
            seen.add(digest[1])
            yield _candidate(search, folder, tag, digest[1], weights.size)


def _manifests(search: Search, folder: Path, depth: int) -> Iterator[Path]:
    for entry in search.entries(folder):
        if entry.name.startswith("."):
            continue
        if is_own_folder(entry):
            if depth > 1:
                yield from _manifests(search, Path(entry.path), depth - 1)
        elif not search.link_fault(Path(entry.path)):
            yield Path(entry.path)


def _read_tag(folder: Path, path: Path) -> _Tag | None:
    names = path.relative_to(folder / "manifests").parts
    if len(names) < 3:
        return None
    try:
        manifest = msgspec.json.decode(read_small(path, _MANIFEST_BYTES), type=_Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    host, *namespace, model, tag = names
    is_own = host == _OWN_HOST and namespace == [_OWN_NAMESPACE]
    owner = "" if is_own or not namespace else plain_owner(namespace[-1])
    return _Tag(path, owner, plain_name(model) or "model", plain_name(tag) or _LATEST, manifest)


def _candidate(search: Search, folder: Path, tag: _Tag, digest: str, size_bytes: int) -> Candidate:
    path = _blob(folder, digest)
    if path is None:
        words = _("Ollama's file of this model is not there. Run `ollama pull {name}` to get it again.")
        return _faulty(search, tag, folder / "blobs" / f"sha256-{digest}", words.format(name=tag.full_name))
    found = Candidate(path, search.origin, (path,), owner=tag.owner, name=tag.name, sha256=digest)
    fault = search.link_fault(path)
    if fault:
        return replace(found, fault=fault)
    if 0 < size_bytes != size_of([path]):
        words = _("The file does not have the size that Ollama's entry says. Run `ollama pull {name}` again.")
        return replace(found, fault=words.format(name=tag.full_name))
    if tag.manifest.first("adapter") is not None:
        return replace(found, fault=_("Ollama uses this model with an adapter, which Cutaway cannot add."))
    projector = tag.manifest.first("projector")
    known = _DIGEST.fullmatch(projector.digest) if projector else None
    eyes = _blob(folder, known[1]) if known else None
    return found if eyes is None or search.link_fault(eyes) else replace(found, projector=eyes)


def _faulty(search: Search, tag: _Tag, path: Path, fault: str) -> Candidate:
    return Candidate(path, search.origin, (path,), owner=tag.owner, name=tag.name, fault=fault)


def _blob(folder: Path, digest: str) -> Path | None:
    """Return the file of a digest; early versions of Ollama wrote a colon into its name."""
    for separator in ("-", ":"):
        path = folder / "blobs" / f"sha256{separator}{digest}"
        if is_file(path):
            return path
    return None
