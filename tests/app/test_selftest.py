"""The self-test, whole and with parts missing."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from app import selftest
from app.errors import AppError, Words
from tests.helpers.command_line import environment, run_cutaway, text_of


@pytest.mark.drill
def test_everything_works_here_and_the_persons_data_is_left_alone(starter_model, own_home, tmp_path):
    done = run_cutaway("selftest", env=environment(TMPDIR=str(tmp_path)))
    lines = text_of(done.stdout).splitlines()
    assert [line[:8] for line in lines] == ["ok      "] * 4, text_of(done.stdout)
    assert [line[8:].partition(":")[0] for line in lines] == ["engine", "starter model", "store", "window"]
    assert (done.returncode, done.stderr) == (0, b"")
    assert list(own_home.iterdir()) == []
    assert list(tmp_path.iterdir()) == []


def test_a_missing_starter_model_fails_the_selftest_and_nothing_else(tmp_path, own_home):
    done = run_cutaway("selftest", "--json", env=environment(CUTAWAY_STARTER=str(tmp_path / "none.gguf")))
    told = json.loads(done.stdout)
    assert (done.returncode, told["passed"], list(told)) == (1, False, ["passed", "checks"])
    assert [list(check) for check in told["checks"]] == [["name", "passed", "reason", "duration_s"]] * 4
    assert [check["passed"] for check in told["checks"][:3]] == [True, False, True]
    assert told["checks"][1]["reason"] == "The starter model is not there. Install Cutaway again."


def test_each_outcome_is_told_as_it_comes(monkeypatch):
    def fails(_home: Path) -> str:
        raise AppError(Words("It broke.", "Mend it."))

    def refuses(_home: Path) -> str:
        raise PermissionError(13, "Permission denied", "/x")

    monkeypatch.setattr(selftest, "_WORKS", {"a": lambda home: home.name, "b": fails, "c": refuses})
    told: list[selftest.Check] = []
    assert selftest.run_checks(told.append) == told
    assert [(check.name, check.is_passed, check.reason) for check in told[:2]] == [
        ("a", True, "a"),
        ("b", False, "It broke. Mend it."),
    ]
    assert (told[2].name, told[2].is_passed) == ("c", False)
    assert told[2].reason.startswith("The system refused: Permission denied (/x).")


@pytest.mark.parametrize(
    ("returncode", "stderr", "picture", "reason"),
    [
        (
            1,
            b"trace\nThe window cannot open: no Qt.\n",
            b"",
            "The window was not drawn: The window cannot open: no Qt.",
        ),
        (-6, b"", b"", "The window was not drawn: it ended with code -6"),
        (0, b"", b"", "The window was drawn, but left no picture."),
        (0, b"", b"GIF89a", "The window was drawn, but left no picture."),
    ],
)
def test_a_window_that_was_not_drawn_fails_with_its_reason(
    returncode, stderr, picture, reason, monkeypatch, tmp_path: Path
):
    def run(command: list[str], **_given: object) -> subprocess.CompletedProcess[bytes]:
        if picture:
            Path(command[-1]).write_bytes(picture)
        return subprocess.CompletedProcess(command, returncode, b"", stderr)

    monkeypatch.setattr(selftest.subprocess, "run", run)
    with pytest.raises(AppError) as caught:
        selftest._window(tmp_path)
    assert caught.value.words.message == reason


def test_a_window_that_takes_too_long_fails(monkeypatch, tmp_path):
    def run(command: list[str], timeout: float, **_given: object) -> None:
        raise subprocess.TimeoutExpired(command, timeout)

    monkeypatch.setattr(selftest.subprocess, "run", run)
    with pytest.raises(AppError, match="not drawn in time"):
        selftest._window(tmp_path)
