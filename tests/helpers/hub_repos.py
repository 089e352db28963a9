"""The repos of a test hub and what its API says of them: branches, commits, trees, cards, gates, search.

Commits, trees and blobs have the names that git would give them. Knows neither HTTP nor faults, and shares no code with
app/.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.helpers.hub_files import Content, HubFile, as_content, git_oid, git_trees

Card = Mapping[str, Any]
_BIRTH = datetime.datetime(2025, 3, 1, 9, 30, tzinfo=datetime.UTC)
# What a search gives by itself, and what `full` adds.
_BRIEF = ("id", "likes", "private", "downloads", "tags", "pipeline_tag", "library_name", "createdAt", "modelId")
_FULL = ("author", "sha", "lastModified", "gated", "disabled", "siblings", "trendingScore")
_SORTS = ("downloads", "likes", "lastModified", "createdAt", "trendingScore")


@dataclass(frozen=True)
class Revision:
    """One commit.

    Attributes:
        commit: its SHA-1.
        title: its first line.
        when: its date.
        files: by their path, in order.
        trees: each folder's git object.
        parents: the commits before it, newest first.
    """

    commit: str
    title: str
    when: datetime.datetime
    files: Mapping[str, HubFile]
    trees: Mapping[str, str]
    parents: tuple[str, ...]


@dataclass
class Repo:
    """A model repo; see HubServer.add_repo for what each thing is."""

    name: str
    gated: str = ""
    is_private: bool = False
    card: Card = field(default_factory=dict)
    downloads: int = 0
    likes: int = 0
    tags: Sequence[str] = ()
    pipeline_tag: str = "text-generation"
    created: datetime.datetime = _BIRTH
    old_names: Collection[str] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    branches: dict[str, str] = field(default_factory=dict)
    revisions: dict[str, Revision] = field(default_factory=dict)

    @property
    def owner(self) -> str:
        """Who published it; "" for a repo of the old kind without an owner."""
        return self.name.rpartition("/")[0]

    def commit(
        self,
        files: Mapping[str, Content | bytes | str | Path],
        *,
        removed: Collection[str] = (),
        title: str = "Upload files",
        branch: str = "main",
    ) -> str:
        """Add or replace files, remove others, move the branch, and return the new commit."""
        before = self.revisions.get(self.branches.get(branch, ""))
        merged = {path: file for path, file in (before.files if before else {}).items() if path not in removed}
        merged |= {path: HubFile(path, as_content(content)) for path, content in files.items()}
        merged = dict(sorted(merged.items()))
        trees = git_trees(merged)
        parents = (before.commit, *before.parents) if before else ()
        when = self.created + datetime.timedelta(days=len(self.revisions))
        signature = f"{self.owner or 'hub'} <owner@example.invalid> {int(when.timestamp())} +0000"
        lines = [f"tree {trees['']}", *(f"parent {commit}" for commit in parents[:1])]
        lines += [f"author {signature}", f"committer {signature}", "", title, ""]
        commit = git_oid("commit", "\n".join(lines).encode())
        self.revisions[commit] = Revision(commit, title, when, merged, trees, parents)
        self.branches[branch] = commit
        return commit

    def find(self, revision: str) -> Revision | None:
        """Return the commit that a branch, a tag or a SHA-1 names."""
        return self.revisions.get(self.branches.get(revision, revision))

    def all_tags(self) -> list[str]:
        """Return the tags: those given and those that the hub computes of files and card."""
        main = self.find("main")
        names = list(main.files) if main else []
        computed = [suffix for suffix in ("gguf", "safetensors") if any(name.endswith(f".{suffix}") for name in names)]
        bases = self.card.get("base_model", ())
        relation = self.card.get("base_model_relation", "quantized" if "gguf" in computed else "finetune")
        for base in [bases] if isinstance(bases, str) else bases:
            computed += [f"base_model:{base}", f"base_model:{relation}:{base}"]
        computed += [f"license:{self.card['license']}"] if "license" in self.card else []
        return list(dict.fromkeys([*self.tags, *self.card.get("tags", ()), *computed, "region:us"]))


def moment(when: datetime.datetime) -> str:
    """Return a date as the API writes it."""
    return when.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def readme(card: Card, words: str) -> str:
    """Return a model card's file: front matter in YAML, then Markdown."""
    lines = []
    for key, value in card.items():
        if isinstance(value, list | tuple):
            lines += [f"{key}:", *(f"- {_scalar(one)}" for one in value)]
        else:
            lines.append(f"{key}: {_scalar(value)}")
    return "---\n" + "\n".join(lines) + f"\n---\n{words}" if lines else words


def _scalar(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    is_plain = text.replace("-", "").replace("/", "").replace(".", "").replace("_", "").isalnum()
    return text if is_plain else "'" + text.replace("'", "''") + "'"


def model(repo: Repo, revision: Revision, *, blobs: bool = False) -> dict[str, Any]:
    """Return everything that the API says of a repo at a revision; `blobs` adds sizes and hashes."""
    newest = repo.revisions[repo.branches["main"]]
    found: dict[str, Any] = {
        "_id": git_oid("repo", repo.name.encode())[:24],
        "id": repo.name,
        "modelId": repo.name,
        "author": repo.owner,
        "private": repo.is_private,
        "gated": repo.gated or False,
        "disabled": False,
        "sha": revision.commit,
        "lastModified": moment(newest.when),
        "createdAt": moment(repo.created),
        "downloads": repo.downloads,
        "likes": repo.likes,
        "trendingScore": repo.likes // 10,
        "tags": repo.all_tags(),
        "pipeline_tag": repo.card.get("pipeline_tag", repo.pipeline_tag),
        "library_name": repo.card.get("library_name", "gguf" if "gguf" in repo.all_tags() else "transformers"),
        "cardData": dict(repo.card),
        "spaces": [],
        "usedStorage": sum(file.content.size_bytes for file in revision.files.values()),
        "siblings": [_sibling(file, blobs=blobs) for file in revision.files.values()],
    }
    return found | dict(repo.extra)


def _sibling(file: HubFile, *, blobs: bool) -> dict[str, Any]:
    if not blobs:
        return {"rfilename": file.path}
    size = file.content.size_bytes
    found: dict[str, Any] = {"rfilename": file.path, "blobId": file.oid, "size": size}
    if file.is_lfs:
        found["lfs"] = {"sha256": file.content.sha256, "size": size, "pointerSize": len(file.pointer)}
    return found


def entry(file: HubFile, revision: Revision, *, expand: bool = False) -> dict[str, Any]:
    """Return a file as trees and paths-info list it."""
    size = file.content.size_bytes
    found: dict[str, Any] = {"type": "file", "oid": file.oid, "size": size, "path": file.path}
    if file.is_lfs:
        found["lfs"] = {"oid": file.content.sha256, "size": size, "pointerSize": len(file.pointer)}
    if expand:
        scan = {"virusFound": False, "virusNames": None}
        found["lastCommit"] = _last_commit(revision)
        found["securityFileStatus"] = {"status": "safe", "avScan": scan, "pickleImportScan": None}
    return found


def _folder_entry(path: str, revision: Revision, *, expand: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "directory", "oid": revision.trees[path], "size": 0, "path": path}
    return found | ({"lastCommit": _last_commit(revision)} if expand else {})


def _last_commit(revision: Revision) -> dict[str, str]:
    return {"id": revision.commit, "title": revision.title, "date": moment(revision.when)}


def tree(revision: Revision, folder: str, *, recursive: bool, expand: bool) -> list[dict[str, Any]] | None:
    """Return what lies in a folder, or anywhere below it, folders included; None where there is no such folder."""
    if folder not in revision.trees:
        return None
    base = f"{folder}/" if folder else ""
    found = []
    for path in revision.trees:
        is_below = path != folder and path.startswith(base)
        if is_below and (recursive or "/" not in path[len(base) :]):
            found.append(_folder_entry(path, revision, expand=expand))
    for path, file in revision.files.items():
        if path.startswith(base) and (recursive or "/" not in path[len(base) :]):
            found.append(entry(file, revision, expand=expand))
    return sorted(found, key=lambda one: str(one["path"]))


def paths_info(revision: Revision, paths: Iterable[str], *, expand: bool) -> list[dict[str, Any]]:
    """Return those of the paths that exist; the others are passed over, as the hub does."""
    found = []
    for path in paths:
        if path in revision.files:
            found.append(entry(revision.files[path], revision, expand=expand))
        elif path and path in revision.trees:
            found.append(_folder_entry(path, revision, expand=expand))
    return found


def search(repos: Iterable[Repo], query: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    """Return what a query to /api/models finds, in its order; the query's values are lists, as in an address."""
    found = [(repo, model(repo, repo.revisions[repo.branches["main"]])) for repo in repos if _matches(repo, query)]
    key = query.get("sort", ["trendingScore"])[0]
    if key in _SORTS:
        found.sort(key=lambda pair: (pair[1][key], pair[1]["id"]), reverse=query.get("direction", ["-1"])[0] != "1")
    wanted = ["_id", *_BRIEF]
    wanted += _FULL if is_set(query, "full") else ()
    wanted += ["config"] if is_set(query, "config") else []
    wanted += ["cardData"] if is_set(query, "cardData") else []
    if query.get("expand"):
        wanted = ["_id", "id", *query["expand"]]
    return [{name: facts[name] for name in wanted if name in facts} for _repo, facts in found]


def is_set(query: Mapping[str, Sequence[str]], name: str) -> bool:
    """Return whether a query's switch is on."""
    return query.get(name, [""])[0].lower() in ("true", "1")


def _matches(repo: Repo, query: Mapping[str, Sequence[str]]) -> bool:
    words = query.get("search", [""])[0].lower().split()
    tags = repo.all_tags()
    kinds = {*tags, repo.pipeline_tag, repo.card.get("library_name", "")}
    return (
        all(word in repo.name.lower() for word in words)
        and query.get("author", [repo.owner])[0].lower() == repo.owner.lower()
        and all(wanted in kinds for value in query.get("filter", []) for wanted in value.split(","))
        and (not query.get("gated") or is_set(query, "gated") == bool(repo.gated))
        and query.get("pipeline_tag", [repo.pipeline_tag])[0] == repo.pipeline_tag
        and all("gguf" in tags for app in query.get("apps", []) if app != "vllm")
        and _has_parameters(repo, query.get("num_parameters", [""])[0])
    )


def _has_parameters(repo: Repo, wanted: str) -> bool:
    """Return whether a repo's weights are as many as `min:6B,max:70B` says; unknown counts never are."""
    limits = dict(part.split(":") for part in wanted.split(",") if ":" in part)
    if not limits:
        return True
    facts = repo.extra.get("gguf") or repo.extra.get("safetensors") or {}
    total = facts.get("total")
    if total is None:
        return False
    scales = {"K": 1e3, "M": 1e6, "B": 1e9, "T": 1e12}
    counts = {key: float(text[:-1]) * scales[text[-1].upper()] for key, text in limits.items()}
    return bool(counts.get("min", 0) <= total <= counts.get("max", float("inf")))
