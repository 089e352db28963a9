"""The scan child: what it tells, in this process and in its own, and that it ends when it should."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from app.models import scan_child
from app.models.entry import FoundModel
from app.models.scan_messages import (
    ModelsSeen,
    ScanFinished,
    ScanLimits,
    ScanRequest,
    ScanRoot,
    from_disk,
    read_told,
    write_message,
)
from app.models.source_candidate import stamp_of
from tests.helpers.model_folders import model_bytes, write

SCRIPT = Path(scan_child.__file__)
FORBIDDEN = ("numpy", "PySide6", "torch", "llama_cpp", "huggingface_hub", "httpx2", "psutil", "jinja2", "sqlite3")


def _request(*roots: ScanRoot, known: dict[bytes, str] | None = None) -> ScanRequest:
    return ScanRequest(roots=roots, known=known or {}, limits=ScanLimits())


def _root(folder: Path, layout: str = "folder", *, must_exist: bool = False) -> ScanRoot:
    return ScanRoot(folder=os.fsencode(folder), origin="added", layout=layout, must_exist=must_exist)


def _told(request: ScanRequest) -> tuple[list[ModelsSeen], ScanFinished]:
    """Scan in this process and return what was told."""
    output = io.BytesIO()
    scan_child.Scan(request, output).run()
    output.seek(0)
    seen: list[ModelsSeen] = []
    while (told := read_told(output)) is not None:
        if isinstance(told, ScanFinished):
            return seen, told
        seen.append(told)
    pytest.fail("there was no last word")


def _found(seen: list[ModelsSeen]) -> list[FoundModel]:
    return [from_disk(found) for message in seen for found in message.models]


def test_every_root_is_told_with_its_number(tmp_path: Path) -> None:
    write(tmp_path / "one" / "a.gguf", model_bytes("a"))
    write(tmp_path / "two" / "b.gguf", model_bytes("b"))
    seen, finished = _told(_request(_root(tmp_path / "one"), _root(tmp_path / "two")))

    assert [(message.root, len(message.models), message.looked_count) for message in seen if message.models] == [
        (0, 1, 1),
        (1, 1, 1),
    ]
    assert [model.name for model in _found(seen)] == ["a", "b"]
    assert finished == ScanFinished(
        found_count=2, unchanged_count=0, skipped_count=0, complete_roots=(0, 1), problems=()
    )


def test_what_is_known_is_told_as_unchanged(tmp_path: Path) -> None:
    path = write(tmp_path / "a.gguf", model_bytes())
    seen, finished = _told(_request(_root(tmp_path), known={os.fsencode(path): stamp_of([path])}))

    assert [path for message in seen for path in message.unchanged] == [os.fsencode(path)]
    assert (finished.found_count, finished.unchanged_count) == (0, 1)


def test_a_root_that_is_missing_is_a_problem_only_where_somebody_named_it(tmp_path: Path) -> None:
    gone, named = tmp_path / "gone", tmp_path / "named"
    _seen, finished = _told(_request(_root(gone), _root(named, must_exist=True)))

    assert finished.complete_roots == (0,)
    assert finished.problems == (f"The folder {named} is not there. Its drive may not be connected.",)


def test_links_may_lead_into_another_root(tmp_path: Path) -> None:
    target = write(tmp_path / "theirs" / "m.gguf", model_bytes())
    (tmp_path / "ours").mkdir()
    (tmp_path / "ours" / "link.gguf").symlink_to(target)

    alone, _finished = _told(_request(_root(tmp_path / "ours")))
    assert _found(alone)[0].fault.startswith("This link leads out of the folder")
    both, finished = _told(_request(_root(tmp_path / "ours"), _root(tmp_path / "theirs")))
    assert [(model.path, model.fault) for model in _found(both)] == [(str(tmp_path / "ours" / "link.gguf"), "")]
    assert finished.found_count == 1  # the same file behind the link is not told twice


def test_many_models_travel_in_small_messages(tmp_path: Path) -> None:
    paths = [write(tmp_path / f"{number:03}.gguf", model_bytes(str(number))) for number in range(40)]
    seen, finished = _told(_request(_root(tmp_path)))
    assert max(len(message.models) for message in seen) <= 8
    assert [model.path for model in _found(seen)] == [str(path) for path in paths]
    assert seen[-1].looked_count == seen[-1].listed_count == finished.found_count == 40


# ------------------------------------------------------------------------------------------ as its own process


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", str(SCRIPT)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd="/",
        env={},
    )


def test_the_child_answers_and_ends(tmp_path: Path) -> None:
    write(tmp_path / "a.gguf", model_bytes())
    with _start() as child:
        assert child.stdin is not None
        assert child.stdout is not None
        write_message(child.stdin, _request(_root(tmp_path)))
        told = list(iter(partial(read_told, child.stdout), None))
        assert [type(message) for message in told] == [ModelsSeen, ScanFinished]
        assert child.stderr is not None
        assert child.stderr.read() == b""
    assert child.returncode == 0


def test_a_request_without_sense_ends_the_child(tmp_path: Path) -> None:
    with _start() as child:
        out, _errors = child.communicate(b"\x03\0\0\0abc", timeout=60)
    assert (child.returncode, out) == (2, b"")


def test_the_child_ends_when_its_pipe_closes(tmp_path: Path) -> None:
    for number in range(300):
        write(tmp_path / f"{number}.gguf", model_bytes())
    with _start() as child:
        assert child.stdin is not None
        write_message(child.stdin, _request(_root(tmp_path)))
        child.stdin.close()
        assert child.wait(60) in (0, 1)  # at once, or after the few files that were left


def test_the_child_needs_nothing_heavy() -> None:
    script = (
        f"import sys; sys.path.insert(0, {str(SCRIPT.parent.parent.parent)!r})\n"
        "import app.models.scan_child\n"
        f"print([name for name in {FORBIDDEN!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == "[]"
