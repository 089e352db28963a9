"""What of a repo belongs together: its rows, the downloads under way, the models that are here, and what fits.

Knows no widget, no hub and no library: it is given their values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from app.downloads.types import Download, DownloadState, FileRef
from app.hub.published import Published, published
from app.hub.recommend import Recommendation, recommend, row_bits
from app.hub.types import QuantizationRow, RepoDetail, RepoReference, RepoSummary
from app.models.entry import ModelEntry
from app.models.fit_types import Fit, Machine

# A model that fits in so few bits is worth a look; a smaller machine than that takes a smaller model.
_FEWEST_BITS = 3.0
# How huggingface_hub names the folder of a repo: models--owner--name.
_CACHE_PREFIX = "models--"
# What nearly everybody takes: Q4_K_M.
_USUAL_BITS = 4.9
# The vision projector that is taken where there are several: in what nearly every program computes it.
_PROJECTOR_ORDER = ("f16", "bf16", "q8", "f32")


def projector_of(detail: RepoDetail) -> FileRef | None:
    """Return the vision projector that goes with every row; None where there is none."""

    def rank(file: FileRef) -> tuple[int, int, str]:
        name = file.path.casefold()
        found = next((place for place, word in enumerate(_PROJECTOR_ORDER) if word in name), len(_PROJECTOR_ORDER))
        if "bf16" in name:
            found = _PROJECTOR_ORDER.index("bf16")
        return found, file.size_bytes, name

    return min(detail.projectors, key=rank, default=None)


def files_of(detail: RepoDetail, row: QuantizationRow, with_projector: bool) -> tuple[FileRef, ...]:
    """Return everything that is downloaded for a row, the file that an engine is given first."""
    projector = projector_of(detail) if with_projector and row.format == "gguf" else None
    return (*row.files, projector) if projector is not None else row.files


def download_title(detail: RepoDetail, row: QuantizationRow) -> str:
    """Return what a download of a row is called."""
    return f"{detail.summary.repo}:{row.key}"


def downloads_by_row(rows: Iterable[QuantizationRow], downloads: Iterable[Download]) -> dict[str, Download]:
    """Return the newest download of each row, by the row's key; what was cancelled and left nothing is none."""
    by_file: dict[tuple[str, str], Download] = {}
    for download in downloads:
        is_gone = download.state is DownloadState.CANCELLED and not download.done_bytes
        if download.files and not download.is_leftover and not is_gone:
            by_file[download.files[0].repo, download.files[0].path] = download
    found = ((row.key, by_file.get((row.files[0].repo, row.files[0].path))) for row in rows if row.files)
    return {key: download for key, download in found if download is not None}


def entries_here(rows: Iterable[QuantizationRow], entries: Sequence[ModelEntry]) -> dict[str, str]:
    """Return which rows are on this machine: the key of the library's entry by the row's.

    The same bytes by their SHA-256, where both are known; else a file of the same name and of exactly the same size.
    """
    usable = [entry for entry in entries if not entry.fault]
    by_hash = {entry.identity: entry.key for entry in usable if entry.identity.startswith("sha256:")}
    by_name = {(entry.path.name.casefold(), entry.size_bytes): entry.key for entry in usable}
    found: dict[str, str] = {}
    for row in rows:
        if not row.files or row.is_broken:
            continue
        first = row.files[0]
        key = by_hash.get(f"sha256:{first.sha256}") if first.sha256 and len(row.files) == 1 else None
        key = key or by_name.get((first.path.rpartition("/")[2].casefold(), row.size_bytes))
        if key is not None:
            found[row.key] = key
    return found


def row_of_reference(detail: RepoDetail, reference: RepoReference) -> str:
    """Return the key of the row that an address means: by its quantization or by its file; "" for none."""
    if reference.path and reference.is_file:
        found = (row.key for row in detail.rows if any(file.path == reference.path for file in row.files))
        return next(found, "")
    row = detail.row(reference.quantization) if reference.quantization else None
    return row.key if row is not None else ""


def repos_here(entries: Iterable[ModelEntry]) -> frozenset[str]:
    """Return the repos of which something is here, by the folders in which hub libraries keep them."""
    found = set()
    for entry in entries:
        folder = next((part for part in entry.path.parts if part.startswith(_CACHE_PREFIX)), "")
        owner, separator, name = folder.removeprefix(_CACHE_PREFIX).partition("--")
        if not entry.fault and separator and owner and name:
            found.add(f"{owner}/{name}")
    return frozenset(found)


def published_figures(detail: RepoDetail) -> dict[str, Published]:
    """Return what others published about the quality of a repo's rows, by the row's key; for this very model only."""
    names = (*detail.summary.base_models, detail.summary.name)
    found: dict[str, Published] = {}
    for row in detail.rows:
        architecture = row.shape.architecture if row.shape is not None else detail.summary.architecture
        for name in names:
            figure = published(name, row.quantization, architecture, row.imatrix) if row.quantization else None
            if figure is not None:
                found[row.key] = figure
                break
    return found


def recommendation(rows: Sequence[QuantizationRow], fits: Mapping[str, Fit]) -> Recommendation:
    """Return the row to take and why; nothing until something is known of every row that can be."""
    known = [(row, fits[row.key]) for row in rows if row.key in fits]
    waiting = any(not row.is_broken and row.key not in fits and row.state != "failed" for row in rows)
    return recommend(known) if known and not waiting else Recommendation("", "")


def usual_key(rows: Sequence[QuantizationRow]) -> str:
    """Return the row that most people take, to begin with while nothing is known of the machine; "" for none."""
    usable = [row for row in rows if not row.is_broken]
    return min(usable, key=lambda row: abs(row_bits(row) - _USUAL_BITS)).key if usable else ""


def may_fit(summary: RepoSummary, machine: Machine | None) -> bool:
    """Return whether some quantization of a model may fit; True where nobody can tell."""
    count = summary.parameters_count
    if count is None or machine is None:
        return True
    most = max(device.free_bytes for device in machine.devices)
    return count * _FEWEST_BITS / 8 <= most
