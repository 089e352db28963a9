"""A reference's windows for another machine: one file of a few MB that stands in for a model of any size.

Exported from a comparison whose reference was measured; of each row the likeliest tokens and the rest as one, so that a
divergence computed from it is a lower bound. window_import.py puts it into a new comparison.

The tokens of the texts travel along, and with them the texts: is_private says whether a person's own are among them.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from app.compare.folder import ComparisonFolder
from app.compare.plan import RunSpec, WorkloadSpec
from app.compare.results import Answer
from app.compare.run_files import Conditions, Material, RunFacts
from app.compare.window_archive import WindowArchive, WindowExportError, not_written, write_archive
from app.errors import Words, one_line, words_for
from app.i18n import _
from app.units import count_text
from backends.errors import EngineError
from backends.reference_window import ReferenceWindow, WindowWriter

__all__ = ["WindowExport", "WindowExportError", "export_windows", "mismatches", "read_export"]

SCHEMA = 1
# Of a row. 0.53 MB a window; measured on a 135M model's Q2_K, a divergence is 94 % of the whole one (128: 91, 512: 96).
KEEP_TOP = 256
_BLOCK_ROWS = 8  # of a whole vocabulary at a time

Tell = Callable[[int, int], None]


class WindowExport(msgspec.Struct, frozen=True, kw_only=True):
    """What an export says of itself.

    Attributes:
        schema: of this file; another one is refused.
        title: the model's name.
        created_s: seconds since 1970.
        program_version: of the Cutaway that wrote it.
        reference: how it was loaded; without its path.
        reference_reason: why this one was the reference, in words.
        workload: what every run is given; without paths.
        material: the tokens.
        facts: what the engine said of the reference.
        conditions: under which it was measured.
        keep_top: how many tokens of a row are kept.
        windows_sha256: of each window's file.
        answers: what the reference said.
        picks: what it chose of the multiple-choice questions.
    """

    schema: int
    title: str
    created_s: float
    program_version: str
    reference: RunSpec
    reference_reason: str
    workload: WorkloadSpec
    material: Material
    facts: RunFacts
    conditions: Conditions
    keep_top: int
    windows_sha256: tuple[str, ...]
    answers: tuple[Answer, ...] = ()
    picks: tuple[int, ...] = ()

    @property
    def is_private(self) -> bool:
        """Whether a person's own text is in it: any that does not come with the program has no licence."""
        return any(not text.licence for text in self.workload.texts)


def export_windows(
    folder: ComparisonFolder, target: Path, keep_top: int = KEEP_TOP, tell: Tell = lambda _done, _total: None
) -> WindowExport:
    """Write the reference's windows of a comparison to one file.

    Args:
        folder: of the comparison; its reference is done and its windows are still there.
        target: the file.
        keep_top: how many of the likeliest tokens of a row are kept.
        tell: told of the windows that are done, and of how many.

    Raises:
        WindowExportError: something of the reference is missing or damaged, or the file cannot be written.
        FolderError: the comparison's folder cannot be read.
    """
    material, run_id = folder.material(), folder.plan.reference.run_id
    facts = folder.facts(run_id)
    if material is None or facts is None:
        raise _not_there(_("Its reference was not measured yet."))
    numbers = range(len(material.windows))
    if not numbers or any(not folder.has_reference(number) for number in numbers):
        raise _not_there(_("The reference's windows were deleted to save room, or not all were measured."))
    with _temporary(target) as place, _worded():
        paths: dict[int, Path] = {}
        for number in numbers:
            tell(number, len(numbers))
            paths[number] = place / f"{number}.cwin"
            with ReferenceWindow.open(folder.reference_path(number)) as window:
                keep_top = min(keep_top, window.keep_top or window.vocabulary_tokens)
                _write_compact(window, paths[number], keep_top)
        tell(len(numbers), len(numbers))
        plan = folder.plan
        export = WindowExport(
            schema=SCHEMA,
            title=plan.title,
            created_s=time.time(),
            program_version=_version(),
            reference=msgspec.structs.replace(plan.reference, path="", key=""),
            reference_reason=plan.reference_reason,
            workload=without_paths(plan.workload),
            material=material,
            facts=facts,
            conditions=folder.conditions(),
            keep_top=keep_top,
            windows_sha256=tuple(sha256_of(paths[number]) for number in numbers),
            answers=folder.answers(run_id),
            picks=tuple(folder.picks(run_id)),
        )
        write_archive(target, msgspec.json.encode(export), paths)
    return export


def read_export(path: Path) -> WindowExport:
    """Return what an export says of itself, checked but for its windows; raises WindowExportError."""
    with WindowArchive(path) as archive:
        return manifest_of(archive)


def mismatches(
    export: WindowExport,
    title: str = "",
    parameters_count: int = 0,
    vocabulary_tokens: int = 0,
    tokenizer_hash: str = "",
) -> tuple[str, ...]:
    """Return what does not match between an export and a model here, a sentence each; what is not known is passed over.

    Args:
        export: of the reference.
        title: the name of the model here.
        parameters_count: its weights.
        vocabulary_tokens: its tokens.
        tokenizer_hash: as its engine says.
    """
    found: list[str] = []
    if title and title.casefold() != export.title.casefold():
        words = _("The export is of the model “{theirs}”, and this one is “{ours}”.")
        found.append(words.format(theirs=one_line(export.title, 80), ours=one_line(title, 80)))
    theirs = export.material.parameters_count
    if parameters_count and theirs and abs(parameters_count - theirs) > theirs // 5:
        words = _("The export's model has {theirs} weights, and this one {ours}.")
        found.append(words.format(theirs=count_text(theirs), ours=count_text(parameters_count)))
    theirs = export.material.vocabulary_tokens
    if vocabulary_tokens and vocabulary_tokens != theirs:
        words = _("The export's vocabulary has {theirs} tokens, and this model's {ours}.")
        found.append(words.format(theirs=count_text(theirs), ours=count_text(vocabulary_tokens)))
    if tokenizer_hash and tokenizer_hash != export.material.tokenizer_hash:
        found.append(_("The export's model cuts text into other tokens than this one."))
    return tuple(found)


# ----------------------------------------------------------------------------------------------------- helpers


def manifest_of(archive: WindowArchive) -> WindowExport:
    """Return what an export says of itself, after every check that needs no window; raises WindowExportError."""
    try:
        export = msgspec.json.decode(archive.manifest(), type=WindowExport)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise archive.refused(_("what it says of itself cannot be read")) from error
    if export.schema != SCHEMA:
        words = _("it was written by another version of Cutaway ({version})")
        raise archive.refused(words.format(version=one_line(export.program_version, 20)))
    material = export.material
    parts = (list(material.windows), list(material.prompts), list(material.choices))
    if hashlib.sha256(msgspec.msgpack.encode(parts)).hexdigest() != material.sha256:
        raise archive.refused(_("its tokens are not those it was made of"))
    windows = len(material.windows)
    if not windows or len(archive.numbers) != windows or len(export.windows_sha256) != windows:
        raise archive.refused(_("it has another number of windows than it says"))
    if export.workload.windows != windows:
        raise archive.refused(_("its texts and its windows do not match"))
    return export


def _write_compact(window: ReferenceWindow, target: Path, keep_top: int) -> None:
    """Write a window again with the likeliest tokens of its rows only; the exact figures stay exact."""
    tokens = window.token_ids.tolist()
    writer = WindowWriter(target, window.rows, window.vocabulary_tokens, tokens, keep_top=keep_top)
    targets = tokens[len(tokens) - window.rows :]
    try:
        for first in range(0, window.rows, _BLOCK_ROWS):
            last = min(first + _BLOCK_ROWS, window.rows)
            for row, values in enumerate(_dense_rows(window, first, last), start=first):
                best = int(window.best_ids[row])
                if best >= 0:
                    values[targets[row]] = window.target_logprobs[row]  # exact, where the row's own is rounded
                peak = float(values[best])
                writer.add_row(values, peak, -peak, best, targets[row])
        writer.close()
    finally:
        writer.discard()


def _dense_rows(window: ReferenceWindow, first: int, last: int) -> npt.NDArray[np.float32]:
    """Return rows as log-probabilities, [n, V]; what a compact window keeps as one is spread evenly over its tokens."""
    if not window.is_top:
        return window.logprobs(first, last)
    rows = window.compact(first, last)
    others = max(1, window.vocabulary_tokens - window.keep_top)
    dense = np.repeat((rows.rest - np.float32(np.log(others)))[:, None], window.vocabulary_tokens, axis=1)
    np.put_along_axis(dense, rows.ids.astype(np.int64), rows.logprobs, axis=1)
    return dense.astype(np.float32)


def without_paths(workload: WorkloadSpec) -> WorkloadSpec:
    """Return a workload that names no place of this machine."""
    texts = tuple(msgspec.structs.replace(text, path="") for text in workload.texts)
    return msgspec.structs.replace(workload, texts=texts)


def sha256_of(path: Path) -> str:
    """Return the hash of a file; raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextlib.contextmanager
def _temporary(target: Path) -> Iterator[Path]:
    """Give a folder on the target's disk that is gone afterwards; raises WindowExportError."""
    try:
        folder = tempfile.TemporaryDirectory(prefix=".export-", dir=target.parent)
    except OSError as error:
        raise not_written(target, error) from error
    with folder as name:
        yield Path(name)


@contextlib.contextmanager
def _worded() -> Iterator[None]:
    """Turn what a window says into a WindowExportError."""
    try:
        yield
    except EngineError as error:
        raise WindowExportError(words_for(error.code, error.parameters)) from error


def _not_there(reason: str) -> WindowExportError:
    message = _("The reference's windows cannot be exported.")
    return WindowExportError(Words(f"{message} {reason}", _("Run the comparison again and keep its reference.")))


def _version() -> str:
    """Return the program's version; "" where it runs without being installed."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version("cutaway")
    return ""
