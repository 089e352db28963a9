"""A reference from another machine: an export put into the folder of a new comparison, checked in every part.

The reference then counts as done: its tokens, its windows, its answers. What does not match is said.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from app.compare.folder import ComparisonFolder
from app.compare.plan import ComparisonPlan, RunSpec
from app.compare.token_scores import TokenScores
from app.compare.window_archive import WindowArchive, WindowExportError
from app.compare.window_export import WindowExport, manifest_of, mismatches, sha256_of, without_paths
from app.errors import Words, one_line, words_for
from app.i18n import _
from backends.errors import EngineError
from backends.reference_window import ReferenceWindow

_REFERENCE_ID = "imported-reference"
_BLOCK_ROWS = 8  # looked at at a time


def imported_plan(
    export: WindowExport, path: Path, comparison_id: str, candidates: Sequence[RunSpec]
) -> ComparisonPlan:
    """Return a plan whose reference is an export; raises WindowExportError where there is no candidate.

    The reference's speed is not measured, nor its noise floor: its model is not here.

    Args:
        export: of the reference.
        path: its file.
        comparison_id: the name of the new comparison's folder.
        candidates: what is compared with it; one of the reference's name gets another.
    """
    if not candidates:
        raise WindowExportError(Words(_("There is nothing to compare with the export."), _("Choose quantizations.")))
    reference = msgspec.structs.replace(export.reference, run_id=_REFERENCE_ID)
    made = time.strftime("%Y-%m-%d", time.localtime(export.created_s))
    words = _("{label}, measured on another machine on {day}: {reason}")
    reason = words.format(label=one_line(reference.label, 40), day=made, reason=one_line(export.reference_reason))
    return ComparisonPlan(
        comparison_id=comparison_id,
        created_s=time.time(),
        title=export.title,
        reference=reference,
        candidates=tuple(candidates),
        workload=export.workload,
        reference_reason=reason.rstrip(": "),
        with_noise_floor=False,
        reference_import=str(path),
    )


def import_windows(path: Path, folder: ComparisonFolder) -> WindowExport:
    """Put an export into the folder of a comparison that was not begun: its reference then counts as done.

    Args:
        path: the export.
        folder: of a comparison whose plan has this export's workload.

    Raises:
        WindowExportError: the export is damaged, or does not belong to this plan; the words say what does not match.
        FolderError: the folder cannot be written.
    """
    with WindowArchive(path) as archive:
        export = manifest_of(archive)
        _check_plan(archive, export, folder)
        run_id = folder.plan.reference.run_id
        scores: list[TokenScores] = []
        try:
            for number in archive.numbers:
                target = folder.reference_path(number)
                archive.unpack(number, target)
                if sha256_of(target) != export.windows_sha256[number]:
                    raise archive.refused(_("a window in it is damaged"))
                scores.append(_scores_of(archive, export, number, target))
        except WindowExportError:
            folder.free_reference()
            raise
    for number, found in enumerate(scores):
        folder.save_scores(run_id, number, found)
    folder.save(run_id, "facts", export.facts)
    folder.save(run_id, "answers", export.answers)
    folder.save(run_id, "choices", export.picks)
    kept = msgspec.structs.replace(
        folder.conditions(),  # those of this machine; under which the reference was measured stands in the export
        tokens_sha256=export.material.sha256,
        kept_tokens=export.keep_top,
        self_check=export.conditions.self_check or 0.0,
    )
    folder.save_conditions(kept)
    folder.save_material(export.material)  # the last: with it the reference is done
    return export


# ----------------------------------------------------------------------------------------------------- helpers


def _check_plan(archive: WindowArchive, export: WindowExport, folder: ComparisonFolder) -> None:
    """Refuse an export that does not belong to a plan, or a folder that was begun."""
    if folder.material() is not None:
        message = _("This comparison was begun with another reference.")
        raise WindowExportError(Words(message, _("Begin a new comparison for the export.")))
    wrong = list(mismatches(export, folder.plan.title))
    ours, theirs = without_paths(folder.plan.workload), export.workload
    if [(text.text_id, text.windows, text.sha256) for text in ours.texts] != [
        (text.text_id, text.windows, text.sha256) for text in theirs.texts
    ]:
        wrong.append(_("The comparison reads other texts than the export."))
    if ours.prompts != theirs.prompts or ours.choices != theirs.choices:
        wrong.append(_("The comparison asks other questions than the export."))
    if wrong:
        raise archive.refused(" ".join(wrong))


def _scores_of(archive: WindowArchive, export: WindowExport, number: int, path: Path) -> TokenScores:
    """Return what the reference said of a window's tokens, after looking at every row of it."""
    ids = export.material.windows[number].token_ids
    try:
        with ReferenceWindow.open(path) as window:
            is_of_text = np.array_equal(window.token_ids, np.asarray(ids, np.int32))
            if not is_of_text or window.vocabulary_tokens != export.material.vocabulary_tokens:
                raise archive.refused(_("a window in it is of another text or vocabulary"))
            if window.keep_top != min(export.keep_top, window.vocabulary_tokens):
                raise archive.refused(_("a window in it keeps another number of tokens than it says"))
            for first in range(0, window.rows, _BLOCK_ROWS):
                window.compact(first, min(first + _BLOCK_ROWS, window.rows))
            none = np.empty(0, np.float32)
            best = window.best_ids.astype(np.int32)
            return TokenScores(
                logprobs=np.nan_to_num(window.target_logprobs.astype(np.float32)),
                reference_logprobs=none,
                kl=none,
                cosine=none,
                best_ids=np.maximum(best, 0),
                reference_best_ids=np.empty(0, np.int32),
                non_finite=best < 0,
                window=np.full(window.rows, number, np.int32),
                token_ids=window.token_ids[len(window.token_ids) - window.rows :].astype(np.int32),
            )
    except EngineError as error:
        raise archive.refused(words_for(error.code, error.parameters).message) from error
