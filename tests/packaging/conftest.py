"""Puts packaging/ on sys.path: it is no Python package, its scripts import each other as neighbours."""

from __future__ import annotations

import sys
from pathlib import Path

SCRIPTS = str(Path(__file__).resolve().parent.parent.parent / "packaging")
if SCRIPTS not in sys.path:
    sys.path.append(SCRIPTS)  # last, so that no script hides a library
