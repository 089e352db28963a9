"""A reference's windows travel in one small file, say nothing of places, and stand in for it on another machine."""

from __future__ import annotations

import zipfile
from pathlib import Path

import msgspec
import numpy as np
import pytest

from app.compare.folder import ComparisonFolder
from app.compare.plan import TextSpec
from app.compare.window_export import (
    WindowExport,
    WindowExportError,
    export_windows,
    mismatches,
    read_export,
)
from app.compare.window_import import import_windows
from backends.reference_window import ReferenceWindow
from tests.helpers.window_exports import (
    VOCABULARY,
    WINDOWS,
    WORKLOAD,
    log_softmax,
    logits,
    material,
    measured_comparison,
    new_comparison,
    rewritten,
)


def test_an_export_names_its_model_and_no_place(exported: Path):
    found = read_export(exported)

    assert (found.title, found.reference.quantization, found.reference_reason) == ("Tiny", "F16", "F16: 16 bits.")
    assert found.material == material()
    assert (found.reference.path, found.reference.key) == ("", "")
    assert [text.path for text in found.workload.texts] == [""]
    with zipfile.ZipFile(exported) as archive:
        assert b"secret" not in archive.read("manifest.json")
    assert not found.is_private


def test_a_persons_own_text_makes_it_private(exported: Path):
    own = msgspec.structs.replace(WORKLOAD, texts=(TextSpec(text_id="own", windows=WINDOWS),))
    assert msgspec.structs.replace(read_export(exported), workload=own).is_private


def test_a_reference_that_kept_the_likeliest_only_can_be_exported_with_fewer(tmp_path: Path):
    folder = measured_comparison(tmp_path / "there", keep_top=200)

    export = export_windows(folder, tmp_path / "tiny.windows", keep_top=50)

    assert export.keep_top == 50
    target = new_comparison(tmp_path)
    import_windows(tmp_path / "tiny.windows", target)
    exact = np.exp(log_softmax(logits(0)).astype(np.float64))
    with ReferenceWindow.open(target.reference_path(0)) as window:
        rows = window.compact(0, 5)
        for row in range(5):
            left = np.delete(exact[row], rows.ids[row]).sum()
            assert np.exp(rows.rest[row]) == pytest.approx(left, rel=1e-3)
    assert export_windows(folder, tmp_path / "all.windows", keep_top=500).keep_top == 200


def test_what_cannot_be_exported_is_said(tmp_path: Path, measured: ComparisonFolder):
    with pytest.raises(WindowExportError, match="was not measured yet"):
        export_windows(new_comparison(tmp_path), tmp_path / "a.windows")
    with pytest.raises(WindowExportError, match="could not be written"):
        export_windows(measured, tmp_path / "nowhere" / "a.windows")
    measured.reference_path(1).write_bytes(b"CUTAWIN1 and then nothing")
    with pytest.raises(WindowExportError, match="cannot be used"):
        export_windows(measured, tmp_path / "a.windows")
    measured.free_reference()
    with pytest.raises(WindowExportError, match="were deleted to save room"):
        export_windows(measured, tmp_path / "a.windows")
    assert not list(tmp_path.glob("*.windows*"))
    assert not list(tmp_path.glob(".export-*"))


def test_progress_counts_windows(measured: ComparisonFolder, tmp_path: Path):
    told: list[tuple[int, int]] = []
    export_windows(measured, tmp_path / "a.windows", tell=lambda done, total: told.append((done, total)))
    assert told == [(0, 2), (1, 2), (2, 2)]


def test_what_does_not_match_is_a_sentence_each(exported: Path):
    export = read_export(exported)

    assert mismatches(export, "TINY", 10**6, VOCABULARY, "tokens") == ()
    assert mismatches(export) == ()
    found = mismatches(export, "Other", 3 * 10**6, 32_000, "others")
    assert len(found) == 4
    assert found[0] == "The export is of the model “Tiny”, and this one is “Other”."
    assert "400 tokens, and this model's 32,000" in found[2]


def test_other_tokens_than_those_of_the_windows_are_noticed(exported: Path, tmp_path: Path):
    found = msgspec.to_builtins(read_export(exported))
    found["material"]["windows"][0]["token_ids"] = [1] * 512
    changed = rewritten(exported, tmp_path / "changed.windows", material=found["material"])

    with pytest.raises(WindowExportError, match="its tokens are not those"):
        read_export(changed)


def test_every_field_of_a_manifest_is_read_back(exported: Path):
    found = read_export(exported)
    assert msgspec.json.decode(msgspec.json.encode(found), type=WindowExport) == found
