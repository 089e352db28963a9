"""What a test hub answers to each address: the API, files at the hub, files at its CDN; who may see what.

Learned from huggingface_hub 2.4, which is the only judge of it: tests/end_to_end/test_hub_server.py runs it unmodified.
Knows neither sockets nor faults, and shares no code with app/.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlencode

from tests.helpers import hub_repos
from tests.helpers.hub_answers import CDN, HUB, Answer, Request, error, redirect
from tests.helpers.hub_files import Given, HubFile, OnDisk
from tests.helpers.hub_repos import Repo, Revision

Query = Mapping[str, Sequence[str]]
_FILE = re.compile(r"/(?P<repo>[^/]+(?:/[^/]+)?)/(?P<verb>resolve|raw)/(?P<revision>[^/]+)/(?P<path>.*)", re.DOTALL)
_CACHED_FILE = re.compile(
    r"/api/resolve-cache/models/(?P<repo>[^/]+/[^/]+)/(?P<revision>[^/]+)/(?P<path>.*)", re.DOTALL
)
_VERBS = ("revision", "tree", "paths-info", "refs", "commits")
_PLAIN_TYPES = {"json": "application/json", "md": "text/markdown; charset=utf-8", "txt": "text/plain; charset=utf-8"}


@dataclass
class Person:
    """Who a token belongs to.

    Attributes:
        name: the account; its own repos are never hidden from it.
        repos: the gated and private repos of others that it may read.
    """

    name: str
    repos: set[str]


class Routes:
    """The addresses of a hub and what is behind them.

    Attributes:
        origins: the address of each area's port; filled by the server.
        repos: by their name.
        people: by their token.
        page_entries: how many entries a page of a listing has at most, unless less is asked for.
        does_redirect_small_files: whether small files are reached over /api/resolve-cache, as at the hub of today.
    """

    def __init__(self) -> None:
        self.origins: dict[str, str] = {}
        self.repos: dict[str, Repo] = {}
        self.people: dict[str, Person] = {}
        self.page_entries = 1000
        self.does_redirect_small_files = False
        self._signed: dict[str, tuple[str, HubFile]] = {}
        self._signing = 0

    def place(self, origin_area: str, path: str) -> tuple[str, str]:
        """Return the area and the target of a path that came in at this port; see Request."""
        bare = path.partition("?")[0]
        file = _FILE.fullmatch(bare) or _CACHED_FILE.fullmatch(bare)
        signed = self._signed.get(bare.rpartition("/")[2])
        target = unquote(bare)
        if file is not None:
            target = f"{unquote(file['repo'])}/{unquote(file['path'])}"
        elif signed is not None:
            target = signed[0]
        if origin_area != HUB:
            return origin_area, target
        return ("resolve" if file is not None else "api"), target

    def expire_links(self) -> None:
        """Let every address of the CDN given so far be refused; the hub gives new ones."""
        self._signed.clear()
        self._signing += 1

    def answer(self, request: Request) -> Answer:
        """Return the honest answer."""
        bare, _mark, query_text = request.path.partition("?")
        is_hub = request.area in ("api", "resolve")
        if is_hub and request.headers.get("authorization") and request.token not in self.people:
            return error(401, "", "Invalid credentials in Authorization header")
        person = self.people.get(request.token) if is_hub else None
        file = _FILE.fullmatch(bare) or _CACHED_FILE.fullmatch(bare)
        if file is not None:
            return self._file(file, person, is_open=not is_hub)
        if bare.startswith("/repos/"):
            return self._bytes(bare)
        if bare == "/api/whoami-v2":
            return _whoami(person)
        if bare == "/api/models":
            return self._search(person, bare, parse_qs(query_text))
        if bare.startswith("/api/models/"):
            return self._model(request, person, parse_qs(query_text))
        return error(404, "", "Sorry, we can't find the page you are looking for.")

    # Files.

    def _file(self, match: re.Match[str], person: Person | None, *, is_open: bool) -> Answer:
        name, path = unquote(match["repo"]), unquote(match["path"])
        repo = self._repo(name)
        refusal = self._refusal(repo, person, is_content=True)
        if refusal is not None and not (is_open and repo is not None):
            return refusal
        assert repo is not None
        if repo.name != name:
            return redirect(match[0].replace(match["repo"], repo.name, 1), 307)
        revision = repo.find(unquote(match["revision"]))
        if revision is None:
            return error(404, "RevisionNotFound", f"Invalid rev id: {unquote(match['revision'])}")
        headers = {"X-Repo-Commit": revision.commit, "Accept-Ranges": "bytes"}
        file = revision.files.get(path)
        if file is None:
            refused = error(404, "EntryNotFound", "Entry not found")
            refused.headers |= headers
            return refused
        is_raw = match.re is _FILE and match["verb"] == "raw"
        if is_raw and file.is_lfs:
            return Answer(200, headers | {"ETag": f'"{file.oid}"'}, Given(file.pointer), etag=f'"{file.oid}"')
        if file.is_lfs:
            linked = {"X-Linked-Size": str(file.content.size_bytes), "X-Linked-ETag": f'"{file.etag}"'}
            return redirect(self._sign(repo, revision, file), 302, headers | linked)
        if self.does_redirect_small_files and match.re is _FILE and not is_raw:
            moved = f"/api/resolve-cache/models/{repo.name}/{revision.commit}/{quote(path)}"
            return redirect(moved, 307, headers | {"X-Linked-Size": str(file.content.size_bytes)})
        kind = _PLAIN_TYPES.get(path.rpartition(".")[2], "application/octet-stream")
        headers |= {"ETag": f'"{file.etag}"', "Content-Type": kind, "Content-Disposition": _disposition(path)}
        return Answer(200, headers, file.content, etag=f'"{file.etag}"', is_file=True)

    def _sign(self, repo: Repo, revision: Revision, file: HubFile) -> str:
        """Return an address at the CDN that gives the file to whoever has it."""
        target = f"{repo.name}/{file.path}"
        seal = hashlib.sha256(f"{revision.commit}\0{target}\0{self._signing}".encode()).hexdigest()
        self._signed[seal] = (target, file)
        folder = hashlib.sha256(repo.name.encode()).hexdigest()
        query = {"response-content-disposition": _disposition(file.path), "Expires": "4102444800"}
        return f"{self.origins[CDN]}/repos/{folder[:2]}/{folder[2:4]}/{folder}/{seal}?{urlencode(query)}"

    def _bytes(self, bare: str) -> Answer:
        signed = self._signed.get(bare.rpartition("/")[2])
        if signed is None:
            words = b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>AccessDenied</Code></Error>'
            return Answer(403, {"Content-Type": "application/xml"}, Given(words))
        file = signed[1]
        etag = f'"{file.cdn_etag}"'
        headers = {"ETag": etag, "Accept-Ranges": "bytes", "Content-Type": "application/octet-stream"}
        headers["Content-Disposition"] = _disposition(file.path)
        if isinstance(file.content, OnDisk):
            headers["X-Cache"] = "Hit from cloudfront"
        return Answer(200, headers, file.content, etag=etag, is_file=True)

    # Who may see what.

    def _repo(self, name: str) -> Repo | None:
        """Return the repo of this name, or the one that once had it."""
        return self.repos.get(name) or next((repo for repo in self.repos.values() if name in repo.old_names), None)

    def _refusal(self, repo: Repo | None, person: Person | None, *, is_content: bool = False) -> Answer | None:
        """Return why a person may not see a repo, or its content; None where they may."""
        may_read = repo is not None and person is not None and (repo.name in person.repos or repo.owner == person.name)
        if repo is None or (repo.is_private and not may_read):
            return error(401 if person is None else 404, "RepoNotFound", "Repository not found")
        if is_content and repo.gated and not may_read:
            words = f"Access to model {repo.name} is restricted"
            if person is None:
                return error(401, "GatedRepo", f"{words}. You must have access to it and be authenticated.")
            return error(403, "GatedRepo", f"{words} and you are not in the authorized list.")
        return None

    # The API.

    def _search(self, person: Person | None, bare: str, query: Query) -> Answer:
        seen = [repo for repo in self.repos.values() if self._refusal(repo, person) is None]
        return self._page(hub_repos.search(seen, query), bare, query)

    def _model(self, request: Request, person: Person | None, query: Query) -> Answer:
        bare = request.path.partition("?")[0]
        parts = bare.removeprefix("/api/models/").split("/")
        length = 1 if len(parts) > 1 and parts[1] in _VERBS else 2
        name, rest = unquote("/".join(parts[:length])), parts[length:]
        repo = self._repo(name)
        refusal = self._refusal(repo, person)
        if refusal is not None:
            return refusal
        assert repo is not None
        if repo.name != name:
            return redirect(request.path.replace("/".join(parts[:length]), repo.name, 1), 307)
        verb = rest[0] if rest else "revision"
        if verb == "refs":
            return Answer(value=_refs(repo))
        revision = repo.find(unquote(rest[1]) if len(rest) > 1 else "main")
        if revision is None:
            return error(404, "RevisionNotFound", f"Invalid rev id: {unquote(rest[1])}")
        if verb == "commits":
            return self._page(
                [_commit(repo.revisions[one]) for one in (revision.commit, *revision.parents)], bare, query
            )
        if verb == "paths-info":
            return _paths_info(request, revision)
        if verb == "tree":
            return self._tree(revision, unquote("/".join(rest[2:])), bare, query)
        facts = hub_repos.model(repo, revision, blobs=hub_repos.is_set(query, "blobs"))
        if query.get("expand"):
            facts = {key: facts[key] for key in ("_id", "id", *query["expand"]) if key in facts}
        return Answer(value=facts)

    def _tree(self, revision: Revision, folder: str, bare: str, query: Query) -> Answer:
        recursive, expand = hub_repos.is_set(query, "recursive"), hub_repos.is_set(query, "expand")
        found = hub_repos.tree(revision, folder, recursive=recursive, expand=expand)
        if found is None:
            return error(404, "EntryNotFound", f"{folder} does not exist on {revision.commit}")
        answer = self._page(found, bare, query, most=50 if expand else self.page_entries)
        answer.headers["X-Repo-Commit"] = revision.commit
        return answer

    def _page(self, entries: list[Any], bare: str, query: Query, most: int = 1_000_000) -> Answer:
        """Return one page of a listing, with the address of the next in the Link header."""
        count = min(most, self.page_entries, int(query.get("limit", [str(self.page_entries)])[0]))
        start = int(base64.b64decode(query["cursor"][0])) if "cursor" in query else 0
        answer = Answer(value=entries[start : start + count])
        if start + count < len(entries):
            cursor = base64.b64encode(str(start + count).encode()).decode()
            following = urlencode({**query, "cursor": [cursor]}, doseq=True)
            answer.headers["Link"] = f'<{self.origins[HUB]}{bare}?{following}>; rel="next"'
        return answer


def _disposition(path: str) -> str:
    name = quote(path.rpartition("/")[2])
    return f"inline; filename*=UTF-8''{name}; filename=\"{name}\";"


def _whoami(person: Person | None) -> Answer:
    if person is None:
        return error(401, "", "Invalid username or password.")
    access = {"displayName": "test", "role": "read", "createdAt": "2025-03-01T00:00:00.000Z"}
    auth = {"type": "access_token", "accessToken": access}
    return Answer(value={"type": "user", "name": person.name, "fullname": person.name, "orgs": [], "auth": auth})


def _refs(repo: Repo) -> dict[str, Any]:
    branches = [
        {"name": name, "ref": f"refs/heads/{name}", "targetCommit": commit} for name, commit in repo.branches.items()
    ]
    return {"branches": branches, "tags": [], "converts": []}


def _commit(revision: Revision) -> dict[str, Any]:
    authors = [{"user": "owner"}]
    date = hub_repos.moment(revision.when)
    return {"id": revision.commit, "title": revision.title, "message": "", "date": date, "authors": authors}


def _paths_info(request: Request, revision: Revision) -> Answer:
    if "json" in request.headers.get("content-type", ""):
        asked = json.loads(request.body)
        paths, expand = asked["paths"], bool(asked.get("expand"))
    else:
        form = parse_qs(request.body.decode())
        paths, expand = form.get("paths", []), hub_repos.is_set(form, "expand")
    return Answer(value=hub_repos.paths_info(revision, paths, expand=expand))
