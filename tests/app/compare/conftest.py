"""What tests of the export and of the import share."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.compare.folder import ComparisonFolder
from app.compare.window_export import export_windows
from tests.helpers.window_exports import measured_comparison


@pytest.fixture
def measured(tmp_path: Path) -> ComparisonFolder:
    """A comparison whose reference was measured."""
    return measured_comparison(tmp_path / "there")


@pytest.fixture
def exported(measured: ComparisonFolder, tmp_path: Path) -> Path:
    """Its windows, exported."""
    path = tmp_path / "tiny.windows"
    export_windows(measured, path)
    return path
