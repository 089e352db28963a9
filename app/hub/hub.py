"""The hub: searches it, describes its repos, reads what is in their files before anything is downloaded.

Asked through huggingface_hub, which is loaded with the first question (half a second and more): call every method on a
background thread. Answers are kept on disk; where the hub gives none, old ones are shown with their age. Whatever goes
wrong is a HubError with words.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from app.errors import one_line
from app.http_addresses import host_of
from app.http_clients import HttpClients
from app.hub import listing
from app.hub.access import access_of
from app.hub.cache import AnswerCache
from app.hub.card import Card, safe_card
from app.hub.headers import BUDGET_BYTES, HeaderTable, OnRow
from app.hub.hub_call import HubCall, HubLimits, open_api
from app.hub.hub_errors import PASSING, HubError, HubErrorKind, of_remote
from app.hub.reference import is_repo_name, looks_like_address, parse_reference
from app.hub.row_headers import RowReader, resolve_url
from app.hub.table import quantizations_of, sort_files
from app.hub.types import Access, Publisher, RepoDetail, RepoReference, SearchPage, SearchQuery
from app.i18n import _
from app.models.http_faults import RemoteError
from app.models.model_name import without_format

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import ModelInfo

    from app.downloads.types import FileRef

Answer = TypeVar("Answer", bound=msgspec.Struct)

PAGE_ITEMS = 30
# So long an answer is as good as a new one.
FRESH_S = 300.0
_MAX_WORDS = 200
_MAX_PUBLISHERS = 40
_CARD_NAME = "README.md"
_SORTS = {"trending": "trending_score", "downloads": "downloads", "likes": "likes", "updated": "last_modified"}
_FACTS = ["author", "createdAt", "downloads", "gated", "gguf", "lastModified", "likes", "safetensors", "sha", "tags"]


class PublisherPage(msgspec.Struct, frozen=True, kw_only=True):
    """The publishers of a model, as they are kept."""

    items: tuple[Publisher, ...] = ()


class Hub:
    """One hub; any thread may ask, several at a time.

    Args:
        cache_folder: what can be made again; answers are kept in a folder of it.
        clients: the way to the network; they know the hub's address, the proxy and the token. What was answered to one
            token is not shown to another.
        limits: how much one question may cost.
        now: seconds since 1970.
    """

    def __init__(
        self,
        cache_folder: Path,
        clients: HttpClients,
        limits: HubLimits | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._clients = clients
        self._limits = limits or HubLimits()
        self._cache = AnswerCache(cache_folder / "hub", clock=now)
        self._lock = threading.Lock()
        self._api: HfApi | None = None
        self._api_endpoint = ""

    @property
    def endpoint(self) -> str:
        """The hub's address; raises HubError where it is none."""
        try:
            return self._clients.endpoint
        except RemoteError as error:
            raise of_remote(error) from error

    def forget(self) -> None:
        """Remove all answers from the disk."""
        self._cache.clear()

    # Search.

    def search(self, query: SearchQuery, cancel: threading.Event | None = None, *, refresh: bool = False) -> SearchPage:
        """Return one page of what the query finds; a name or an address finds that very repo.

        Args:
            query: what is looked for.
            cancel: the answer is not wanted any more.
            refresh: whether the hub is asked whatever is kept.

        Raises:
            HubError: there is no answer, and no old one either.
        """
        words = one_line(query.words, _MAX_WORDS).strip()
        reference = parse_reference(query.words, self.endpoint)
        if reference is None and looks_like_address(query.words):
            raise HubError(HubErrorKind.NO_REFERENCE, detail=words)
        if reference is not None and not query.cursor:
            question = self._question("summary", reference.repo)
            try:
                return self._answered(question, SearchPage, lambda: self._one(reference, cancel), refresh)
            except HubError as error:
                if error.kind is not HubErrorKind.NOT_FOUND or looks_like_address(query.words):
                    raise
            words = reference.repo
        asked = msgspec.structs.replace(query, words=words, fits_only=False)
        question = self._question("search", *map(str, msgspec.structs.astuple(asked)))
        return self._answered(question, SearchPage, lambda: self._found(asked, cancel), refresh)

    def parse_reference(self, text: str) -> RepoReference | None:
        """Return what a name or an address stands for; None for words."""
        return parse_reference(text, self.endpoint)

    def _one(self, reference: RepoReference, cancel: threading.Event | None) -> SearchPage:
        with self._asking(reference.repo, cancel) as (api, _call):
            options: dict[str, Any] = {"expand": _FACTS}
            info = api.model_info(reference.repo, token=False, **options)
            summary = listing.summary_of(info)
        return SearchPage(items=(summary,) if summary else ())

    def _found(self, query: SearchQuery, cancel: threading.Event | None) -> SearchPage:
        options: dict[str, Any] = {"sort": _SORTS[query.sort], "expand": _FACTS}
        options |= {"filter": query.format} if query.format != "any" else {}
        options |= {"author": query.author} if query.author else {}
        options |= {"search": query.words} if query.words else {}
        with self._asking("", cancel, query.cursor) as (api, call):
            infos = api.list_models(limit=PAGE_ITEMS, token=False, **options)
            items = tuple(summary for info in infos if (summary := listing.summary_of(info)) is not None)
            return SearchPage(items=items, next_cursor=call.next_cursor)

    # One repo.

    def detail(
        self, repo: str, revision: str = "", cancel: threading.Event | None = None, *, refresh: bool = False
    ) -> RepoDetail:
        """Return a repo with its files at one commit, and its card.

        Args:
            repo: owner/name.
            revision: a branch, a tag or a commit; "" for the newest.
            cancel: the answer is not wanted any more.
            refresh: whether the hub is asked whatever is kept.

        Raises:
            HubError: there is no answer, and no old one either.
        """
        if not is_repo_name(repo):
            raise HubError(HubErrorKind.NO_REFERENCE, detail=repo)
        question = self._question("detail", repo, revision)
        return self._answered(question, RepoDetail, lambda: self._described(repo, revision, cancel), refresh)

    def _described(self, repo: str, revision: str, cancel: threading.Event | None) -> RepoDetail:
        endpoint = self.endpoint
        with self._asking(repo, cancel, revision=revision) as (api, call):
            info = api.model_info(repo, revision=revision or None, files_metadata=True, token=False)
            summary, commit = listing.summary_of(info), listing.commit_of(info)
            if summary is None or not commit:
                raise HubError(HubErrorKind.BAD_ANSWER, host_of(endpoint), detail=_("it names no repo"))
            files, refused = listing.files_of(info.siblings, endpoint, summary.repo, commit)
            table = sort_files(files, summary.name, listing.parameter_types(info))
            access = self._access(call, info, files)
            card = self._card(call, files)
        return RepoDetail(
            summary=summary,
            revision=commit,
            card_markdown=card.markdown,
            card_links=card.links,
            rows=table.rows,
            projectors=table.projectors,
            others=table.others,
            refused_files=refused,
            access=access,
            page_url=f"{endpoint}/{summary.repo}",
        )

    def _access(self, call: HubCall, info: ModelInfo, files: Sequence[FileRef]) -> Access:
        if not info.gated:
            return "granted" if info.private else "open"
        weights = next((file for file in files if file.path.endswith((".gguf", ".safetensors"))), None)
        if weights is None:
            return "unknown"
        try:
            status, _headers = call.status(resolve_url(weights))
        except HubError as error:
            if error.kind is HubErrorKind.CANCELLED:
                raise
            return "unknown"
        return access_of(status)

    def _card(self, call: HubCall, files: Sequence[FileRef]) -> Card:
        """Return the model card; an empty one where the hub does not give it, since the table is what counts."""
        file = next((file for file in files if file.path == _CARD_NAME), None)
        if file is None or not file.size_bytes:
            return Card("", ())
        try:
            return safe_card(call.beginning(resolve_url(file), self._limits.card_bytes))
        except HubError as error:
            if error.kind is HubErrorKind.CANCELLED:
                raise
            return Card("", ())

    def read_headers(
        self,
        detail: RepoDetail,
        on_row: OnRow,
        cancel: threading.Event | None = None,
        keys: Collection[str] | None = None,
        budget_bytes: int = BUDGET_BYTES,
    ) -> RepoDetail:
        """Read what is in the files of a repo's rows, four at a time, and return the repo with what was found.

        Args:
            detail: the repo.
            on_row: told, on this thread, of every row that changes.
            cancel: ends it; the rows read until then are returned.
            keys: the rows that are wanted whatever they cost; None for as many as the budget allows. The others keep
                the shape of one that was read, scaled to their size.
            budget_bytes: what may be read in all.
        """
        cancel = cancel or threading.Event()
        if _is_switched_off():
            cancel = threading.Event()
            cancel.set()
        reader = RowReader(self._clients, cancel)
        rows = HeaderTable(reader, self._cache, on_row, budget_bytes).read(detail.rows, cancel, keys)
        return msgspec.structs.replace(detail, rows=rows)

    # Publishers.

    def publishers(
        self, model: str, cancel: threading.Event | None = None, *, refresh: bool = False
    ) -> list[Publisher]:
        """Return who offers GGUF files of one model, the most downloaded first.

        Args:
            model: the base model as owner/name (see RepoSummary.base_models), or a model's name without an owner.
            cancel: the answer is not wanted any more.
            refresh: whether the hub is asked whatever is kept.

        Raises:
            HubError: there is no answer, and no old one either.
        """
        name = one_line(model, _MAX_WORDS).strip()
        question = self._question("publishers", name)
        return list(self._answered(question, PublisherPage, lambda: self._offered(name, cancel), refresh).items)

    def _offered(self, model: str, cancel: threading.Event | None) -> PublisherPage:
        found: list[Publisher] = []
        if is_repo_name(model):
            found = self._offers(cancel, filter=["gguf", f"base_model:quantized:{model}"])
        if not found and model:
            wanted = _plain_model(model)
            named = self._offers(cancel, filter="gguf", search=without_format(model.rpartition("/")[2]))
            found = [one for one in named if wanted and _plain_model(one.repo).endswith(wanted)]
        return PublisherPage(items=tuple(found))

    def _offers(self, cancel: threading.Event | None, **options: Any) -> list[Publisher]:
        options |= {"expand": [*_FACTS, "siblings"], "sort": "downloads", "limit": _MAX_PUBLISHERS}
        with self._asking("", cancel) as (api, _call):
            infos = api.list_models(token=False, **options)
            return [offer for info in infos if (offer := _publisher(info)) is not None and offer.quantizations]

    # What they share.

    @contextlib.contextmanager
    def _asking(
        self, about: str, cancel: threading.Event | None, cursor: str = "", revision: str = ""
    ) -> Iterator[tuple[HfApi, HubCall]]:
        """Give huggingface_hub's face and the question it asks through; turn what makes no sense into words."""
        if _is_switched_off():
            raise HubError(HubErrorKind.SWITCHED_OFF)
        endpoint = self.endpoint
        call = HubCall(self._clients, about, cancel, self._limits, cursor=cursor, revision=revision)
        try:
            with call:
                yield self._opened_api(endpoint), call
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError) as error:
            detail = _("it is no listing")
            raise HubError(HubErrorKind.BAD_ANSWER, host_of(endpoint), detail=detail) from error

    def _opened_api(self, endpoint: str) -> HfApi:
        with self._lock:
            if self._api is None or self._api_endpoint != endpoint:
                self._api, self._api_endpoint = open_api(endpoint), endpoint
            return self._api

    def _question(self, *parts: str) -> list[str]:
        endpoint = self.endpoint
        return [endpoint, *self._clients.authorization(endpoint).values(), "", *parts]

    def _answered(
        self, question: Sequence[str], kind: type[Answer], ask: Callable[[], Answer], refresh: bool
    ) -> Answer:
        """Return what is kept while it is fresh, else what the hub says, else what is kept with the reason."""
        kept = self._cache.get(question, kind)
        if kept is not None and not refresh and kept.age_s < FRESH_S:
            return _aged(kept.value, age_s=kept.age_s)
        try:
            answer = ask()
        except HubError as error:
            if kept is None or error.kind not in PASSING:
                raise
            return _aged(kept.value, age_s=kept.age_s, is_stale=True, fault=error.words)
        self._cache.put(question, answer)
        return answer


def _aged(answer: Answer, **fields: Any) -> Answer:
    known = {key: value for key, value in fields.items() if key in answer.__struct_fields__}
    return msgspec.structs.replace(answer, **known)


def _publisher(info: ModelInfo) -> Publisher | None:
    summary = listing.summary_of(info)
    if summary is None:
        return None
    paths = [sibling.rfilename for sibling in info.siblings or () if isinstance(sibling.rfilename, str)]
    return Publisher(
        repo=summary.repo,
        owner=summary.owner,
        updated=summary.updated,
        has_importance_matrix=listing.importance_matrix_of(info, paths),
        quantizations=quantizations_of(paths[: listing.MAX_FILES]),
        downloads=summary.downloads,
        gated=summary.gated,
    )


def _plain_model(name: str) -> str:
    """Return a model's name for comparing: without owner, format, marks and case."""
    bare = without_format(name.rpartition("/")[2]).removesuffix("-i1")
    return "".join(character for character in bare.casefold() if character.isalnum())


def _is_switched_off() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "").strip().upper() in ("1", "ON", "YES", "TRUE")
