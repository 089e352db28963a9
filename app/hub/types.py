"""What a hub tells of its models, as plain values: what a search finds, one repo's files as a table, its publishers.

Every text in them was written by strangers: it was made one line where it is shown, and stays plain text. Knows neither
HTTP nor a window.
"""

from __future__ import annotations

import datetime
from typing import Literal

import msgspec

from app.downloads.types import FileRef
from app.errors import Words
from app.models.shape import ModelShape

Sort = Literal["trending", "downloads", "likes", "updated"]
FormatFilter = Literal["gguf", "safetensors", "any"]
RowFormat = Literal["gguf", "safetensors"]
RowState = Literal["unread", "reading", "read", "failed"]
# Whether the person may have the files: they are "open" to everybody, "granted" to the person's token, need a token, or
# need the licence to be accepted; "unknown" where the hub did not say.
Access = Literal["open", "granted", "needs_token", "needs_licence", "unknown"]


class RepoReference(msgspec.Struct, frozen=True, kw_only=True):
    """What a person means by a name or an address.

    Attributes:
        repo: owner/name.
        quantization: what followed a colon, such as "Q4_K_M"; "" for none.
        revision: a branch, a tag or a commit; "" for none.
        path: a file or a folder in the repo; "" for none.
        is_file: whether the path is that of a file.
    """

    repo: str
    quantization: str = ""
    revision: str = ""
    path: str = ""
    is_file: bool = False


class SearchQuery(msgspec.Struct, frozen=True, kw_only=True):
    """What is looked for.

    Attributes:
        words: as typed: words, owner/name, or a pasted address; "" for everything.
        sort: the first ones first.
        format: which files a repo must have.
        fits_only: whether only what fits this machine is to be shown. The caller does that: no hub can know.
        author: one publisher; "" for all.
        cursor: of the page that is wanted, as the page before said; "" for the first.
    """

    words: str = ""
    sort: Sort = "trending"
    format: FormatFilter = "gguf"
    fits_only: bool = False
    author: str = ""
    cursor: str = ""


class RepoSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One repo, as a list shows it.

    Attributes:
        repo: owner/name. name, owner: its parts.
        updated: the day and time of its last commit in UTC, as ISO 8601; "" when it is not known.
        gated: False, or who lets people in: "auto" or "manual".
        licence: such as "apache-2.0"; "" when the hub does not say.
        parameters_count: how many weights the model has; None when the hub does not say.
        formats: of "gguf" and "safetensors", those it has files of.
        context_tokens: what the model was trained for; None when the hub does not say.
        architecture: such as "llama"; "" likewise.
        base_models: the models it was made from, owner/name.
    """

    repo: str
    name: str
    owner: str
    downloads: int = 0
    likes: int = 0
    updated: str = ""
    gated: bool | str = False
    licence: str = ""
    tags: tuple[str, ...] = ()
    parameters_count: int | None = None
    formats: tuple[str, ...] = ()
    context_tokens: int | None = None
    architecture: str = ""
    base_models: tuple[str, ...] = ()

    @property
    def updated_at(self) -> datetime.datetime | None:
        """The moment of the last commit; None when it is not known."""
        try:
            return datetime.datetime.fromisoformat(self.updated)
        except ValueError:
            return None


class SearchPage(msgspec.Struct, frozen=True, kw_only=True):
    """One page of what a search found.

    Attributes:
        next_cursor: for the next page; "" when this is the last.
        age_s: how long ago the hub said so; 0 when it was asked just now.
        is_stale: whether it is an old answer because the hub gave no new one.
        fault: why not, when it is stale.
    """

    items: tuple[RepoSummary, ...]
    next_cursor: str = ""
    age_s: float = 0.0
    is_stale: bool = False
    fault: Words | None = None


class QuantizationRow(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that can be downloaded and loaded: a quantization in one GGUF file or several, or a safetensors model.

    Attributes:
        key: names the row in its repo: the quantization where that is enough, else the file's name without its ending.
        quantization: in its usual spelling; a stranger's as it came; "" when neither name nor header tells.
        files: everything that belongs to it, the file an engine is given first.
        size_bytes: of all files.
        bits_per_weight: effective; None until the header was read. Likewise fallback and imatrix.
        fallback: how many tensors are stored in another type than the name promises.
        imatrix: whether it was quantized with an importance matrix.
        shape: for the fit. Of a row that is not read it may be there too: another row's, scaled to this size.
        is_shape_exact: whether the shape is from this row's own headers, all parts included.
        has_chat_template: whether the file brings one; None until the header was read.
        state: whether its header was read.
        fault: why it cannot be used or its header could not be read, in words; "" for nothing.
        format: what kind of files.
        is_broken: whether it cannot be downloaded as it is: a part is missing, or the files are no models.
    """

    key: str
    quantization: str
    files: tuple[FileRef, ...]
    size_bytes: int
    bits_per_weight: float | None = None
    fallback: int | None = None
    imatrix: bool | None = None
    shape: ModelShape | None = None
    is_shape_exact: bool = False
    has_chat_template: bool | None = None
    state: RowState = "unread"
    fault: str = ""
    format: RowFormat = "gguf"
    is_broken: bool = False


class RepoDetail(msgspec.Struct, frozen=True, kw_only=True):
    """One repo with its files.

    Attributes:
        revision: the commit all of it is of.
        card_markdown: the model card, made safe by app/hub/card.py; "" for none.
        card_links: what the card links to: text and http or https address.
        rows: what can be loaded, few bits first.
        projectors: vision projectors (mmproj).
        others: files that are none of this: importance matrices, adapters, words.
        refused_files: how many files have names that no file here may have; they are left out.
        access: whether the person may have the files.
        page_url: the repo's page at the hub, where a licence is accepted.
        age_s, is_stale, fault: as in SearchPage.
    """

    summary: RepoSummary
    revision: str
    card_markdown: str = ""
    card_links: tuple[tuple[str, str], ...] = ()
    rows: tuple[QuantizationRow, ...] = ()
    projectors: tuple[FileRef, ...] = ()
    others: tuple[FileRef, ...] = ()
    refused_files: int = 0
    access: Access = "unknown"
    page_url: str = ""
    age_s: float = 0.0
    is_stale: bool = False
    fault: Words | None = None

    def row(self, key: str) -> QuantizationRow | None:
        """Return the row of this key or, where that is clear, of this quantization in any spelling; None for none."""
        for row in self.rows:
            if row.key == key:
                return row
        plain = _plain(key)
        found = [row for row in self.rows if plain in (_plain(row.key), _plain(row.quantization))]
        return found[0] if len(found) == 1 else None


class Publisher(msgspec.Struct, frozen=True, kw_only=True):
    """Who offers quantizations of one model, to be compared side by side.

    Attributes:
        repo: owner/name. owner: its first part.
        updated: as in RepoSummary.
        has_importance_matrix: None when nothing says.
        quantizations: those it has files of, few bits first.
        downloads: in the last month.
        gated: as in RepoSummary.
    """

    repo: str
    owner: str
    updated: str = ""
    has_importance_matrix: bool | None = None
    quantizations: tuple[str, ...] = ()
    downloads: int = 0
    gated: bool | str = False


def _plain(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())
