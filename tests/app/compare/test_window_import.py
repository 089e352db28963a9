"""An export takes the reference's place on another machine, or is refused in words and leaves nothing."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from app.compare.folder import ComparisonFolder
from app.compare.plan import RunSpec, TextSpec
from app.compare.runner import ComparisonRunner, RunnerServices
from app.compare.window_export import (
    KEEP_TOP,
    WindowExportError,
    read_export,
)
from app.compare.window_import import import_windows, imported_plan
from backends import protocol
from backends.reference_window import ReferenceWindow
from backends.scoring import RowScorer, ScoredText
from tests.helpers.window_exports import (
    VOCABULARY,
    WINDOWS,
    WORKLOAD,
    logits,
    material,
    new_comparison,
    plan,
    rewritten,
)


def mean_kl(window: Path, number: int, shift: float) -> float:
    """Return the divergence of a slightly other model from a window."""
    text = ScoredText(material().windows[number].token_ids, 256)
    command = protocol.Score(request_id=1, token_ids=text.token_ids, first_scored=256, reference_path=str(window))
    with RowScorer(command, text, VOCABULARY) as scorer:
        scorer.add(logits(number, shift))
        return float(np.frombuffer(scorer.finish(0, 0).kl, "<f4").mean())


def test_an_imported_reference_counts_as_done(exported: Path, measured: ComparisonFolder, tmp_path: Path):
    folder = new_comparison(tmp_path)

    import_windows(exported, folder)

    assert folder.material() == measured.material()
    assert folder.windows_done("F16") == (0, 1)
    assert all(folder.has_reference(number) for number in range(WINDOWS))
    assert folder.answers("F16") == measured.answers("F16")
    assert folder.facts("F16").tokenizer_hash == "tokens"
    assert folder.conditions().kept_tokens == KEEP_TOP
    assert folder.conditions().self_check is not None
    assert folder.conditions().processor == "", "the conditions are those of this machine"


def test_a_plan_with_an_imported_reference_goes_on_behind_it(exported: Path, tmp_path: Path):
    """For the runner the reference is done: it asks no model for its windows and its answers."""
    export = read_export(exported)
    same_name = RunSpec(run_id="F16", label="F16", path="/m/f16.gguf")

    made = imported_plan(export, exported, "one", [same_name])

    assert made.reference.run_id != same_name.run_id
    assert not made.with_noise_floor
    assert made.reference_import == str(exported)
    assert made.reference_reason.startswith("F16, measured on another machine on ")
    folder = new_comparison(tmp_path, made)
    import_windows(exported, folder)
    runner = ComparisonRunner(folder, RunnerServices(open_log=Path, renderer=None, read_text=lambda _text: ""))
    assert runner._is_reference_done(folder.material())
    with pytest.raises(WindowExportError, match="nothing to compare"):
        imported_plan(export, exported, "one", [])


def test_the_exact_figures_of_the_reference_stay_exact(exported: Path, measured: ComparisonFolder, tmp_path: Path):
    folder = new_comparison(tmp_path)
    import_windows(exported, folder)

    for number in range(WINDOWS):
        scores = folder.scores("F16", number)
        with ReferenceWindow.open(measured.reference_path(number)) as before:
            finite = before.best_ids >= 0
            assert np.array_equal(scores.non_finite, ~finite)
            assert np.array_equal(scores.best_ids[finite], before.best_ids[finite])
            assert np.array_equal(scores.logprobs[finite], before.target_logprobs[finite])
            assert np.array_equal(scores.token_ids, before.token_ids[257:])


def test_divergence_from_an_export_is_a_lower_bound_close_to_the_whole(
    exported: Path, measured: ComparisonFolder, tmp_path: Path
):
    folder = new_comparison(tmp_path)
    import_windows(exported, folder)

    for shift in (0.05, 0.3):
        whole = mean_kl(measured.reference_path(0), 0, shift)
        kept = mean_kl(folder.reference_path(0), 0, shift)
        assert 0.9 * whole < kept < whole * 1.001
    assert mean_kl(folder.reference_path(0), 0, 0.0) == pytest.approx(0, abs=1e-4)


def test_an_export_for_another_plan_is_refused_and_says_why(exported: Path, tmp_path: Path):
    texts = (TextSpec(text_id="chat", windows=WINDOWS, licence="MIT"),)
    other = msgspec.structs.replace(WORKLOAD, texts=texts)
    folder = new_comparison(tmp_path, plan(other, "Other"))

    with pytest.raises(WindowExportError) as failed:
        import_windows(exported, folder)

    message = failed.value.words.message
    assert "“Other”" in message
    assert "reads other texts than the export" in message
    assert folder.material() is None
    assert not folder.has_reference(0)


def test_a_comparison_that_was_begun_takes_no_export(exported: Path, measured: ComparisonFolder):
    with pytest.raises(WindowExportError, match="begun with another reference"):
        import_windows(exported, measured)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"schema": 99, "program_version": "9.0"}, "another version of Cutaway (9.0)"),
        ({"windows_sha256": ["0" * 64, "0" * 64]}, "a window in it is damaged"),
        ({"windows_sha256": []}, "another number of windows"),
        ({"workload": {"amount": "quick", "texts": []}}, "texts and its windows do not match"),
        ({"material": None}, "cannot be read"),
        ({"keep_top": 5}, "keeps another number of tokens"),
    ],
)
def test_an_export_that_does_not_agree_with_itself_is_refused(
    exported: Path, tmp_path: Path, changes: dict[str, object], reason: str
):
    changed = rewritten(exported, tmp_path / "changed.windows", **changes)
    folder = new_comparison(tmp_path)

    with pytest.raises(WindowExportError) as failed:
        import_windows(changed, folder)

    assert reason in failed.value.words.message
    assert not folder.has_reference(0), "nothing is left of what was refused"
    assert folder.material() is None
