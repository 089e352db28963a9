"""Scans as the program makes them: every program's folders, nothing changed, odd files, bad children."""

from __future__ import annotations

import os
import signal
import sys
import threading
import unicodedata
from pathlib import Path

import pytest

from app.models.entry import FoundModel
from app.models.scanner import ScanBatch, ScanSummary, scan
from app.models.sources import Source, added_source
from tests.helpers.model_folders import (
    hub_repository,
    jan_model,
    listing,
    many_models,
    model_bytes,
    ollama_model,
    projector_bytes,
    safetensors_files,
    typed_bytes,
    write,
    write_files,
    write_split,
)


class Heard:
    """What a scan told, all batches together."""

    def __init__(self) -> None:
        self.batches: list[ScanBatch] = []

    def __call__(self, batch: ScanBatch) -> None:
        self.batches.append(batch)

    @property
    def models(self) -> list[FoundModel]:
        return [model for batch in self.batches for model in batch.models]

    @property
    def unchanged(self) -> list[str]:
        return [path for batch in self.batches for path in batch.unchanged]

    def stamps(self) -> dict[str, str]:
        return {model.path: model.stamp for model in self.models}


def _scan(*roots: Path, known: dict[str, str] | None = None) -> tuple[Heard, ScanSummary]:
    heard = Heard()
    return heard, scan([added_source(root) for root in roots], known or {}, heard)


def _every_program(top: Path) -> list[Source]:
    """Make a tree as each program leaves it and return its sources."""
    write_split(top / "models", "big", 2)
    write(top / "models" / "small-Q4_0.gguf", model_bytes("small"))
    write_files(top / "models" / "llama", safetensors_files())
    hub_repository(top / "hub", "o/m-GGUF", {"abc": {"m-Q4_0.gguf": model_bytes("hub")}}, main="abc")
    write(top / "lm" / "someone" / "Eyes-GGUF" / "eyes-Q4_0.gguf", model_bytes("eyes"))
    write(top / "lm" / "someone" / "Eyes-GGUF" / "mmproj-f16.gguf", projector_bytes())
    ollama_model(top / "ollama", "registry.ollama.ai/library/llama3.2/3b", model_bytes("ollama"))
    jan_model(top / "jan", "Jan-v1-Q4_0", model_bytes("jan"))
    write(top / "gpt4all" / "four.Q4_0.gguf", model_bytes("four"))
    return [
        Source("folder", top / "models", "Models"),
        Source("huggingface", top / "hub", "Hugging Face", "huggingface"),
        Source("lm_studio", top / "lm", "LM Studio", "publishers"),
        Source("ollama", top / "ollama", "Ollama", "ollama"),
        Source("jan", top / "jan", "Jan", "jan"),
        Source("gpt4all", top / "gpt4all", "GPT4All"),
    ]


def test_the_models_of_every_program_are_found(tmp_path: Path) -> None:
    heard, sources = Heard(), _every_program(tmp_path)
    summary = scan(sources, {}, heard)

    assert {(model.origin, model.owner, model.name, model.fault) for model in heard.models} == {
        ("folder", "", "Split-Model", ""),
        ("folder", "", "small", ""),
        ("folder", "", "llama", ""),
        ("huggingface", "o", "m", ""),
        ("lm_studio", "someone", "Eyes", ""),
        ("ollama", "", "llama3.2:3b", ""),
        ("jan", "", "Jan-v1", ""),
        ("gpt4all", "", "four", ""),
    }
    assert [model.identity[:7] for model in heard.models if model.origin == "ollama"] == ["sha256:"]
    assert [bool(model.projector_path) for model in heard.models if model.origin == "lm_studio"] == [True]
    assert (summary.found_count, summary.unchanged_count, summary.problems) == (8, 0, ())
    assert summary.complete_roots == tuple(str(source.folder) for source in sources)
    assert not summary.is_cancelled


def test_a_second_scan_opens_nothing(tmp_path: Path) -> None:
    first, sources = Heard(), _every_program(tmp_path)
    scan(sources, {}, first)
    again = Heard()
    summary = scan(sources, first.stamps(), again)

    assert again.models == []
    assert sorted(again.unchanged) == sorted(first.stamps())
    assert (summary.found_count, summary.unchanged_count) == (0, 8)


def test_a_changed_file_is_looked_at_again(tmp_path: Path) -> None:
    path = write(tmp_path / "a.gguf", model_bytes("before"))
    first, _summary = _scan(tmp_path)
    path.write_bytes(model_bytes("afterwards"))
    again, _summary = _scan(tmp_path, known=first.stamps())
    assert [model.name for model in again.models] == ["afterwards"]


def test_nothing_in_the_folders_is_changed(tmp_path: Path) -> None:
    sources = _every_program(tmp_path)
    for top, folders, files in os.walk(tmp_path):
        for name in [*folders, *files]:
            path = Path(top, name)
            if not path.is_symlink():
                path.chmod(0o500 if path.is_dir() else 0o400)
    before = listing(tmp_path)
    heard = Heard()
    summary = scan(sources, {}, heard)
    after = listing(tmp_path)
    for top, _folders, _files in os.walk(tmp_path):
        Path(top).chmod(0o700)  # so that pytest can clear up

    assert summary.found_count == 8
    assert after == before


def test_everything_odd_gets_one_line_and_nothing_hangs(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(root / "empty.gguf", b"")
    (root / "folder.gguf").mkdir()
    os.mkfifo(root / "fifo.gguf")
    (root / "zero.gguf").symlink_to("/dev/zero")
    (root / "broken.gguf").symlink_to(root / "nowhere")
    write_split(root, "three", 3, missing=[3])
    write(root / "zip.gguf", b"PK\3\4")
    write(root / "right-inside.txt", model_bytes())
    write(root / "lora.gguf", typed_bytes("adapter"))
    heard, summary = _scan(root)

    faults = {Path(model.path).name: model.fault for model in heard.models}
    assert faults == {
        "empty.gguf": "The file is empty.",
        "folder.gguf": "This is a folder, not a model file.",
        "fifo.gguf": "This is a device, a pipe or a socket, not a model file.",
        "zero.gguf": (
            "This link leads out of the folder, to /dev/zero. Add that folder or import the file from there."
        ),
        "broken.gguf": "This link leads to a file that is not there.",
        "three-00001-of-00003.gguf": "Part 3 of 3 is missing. Put it into the folder of the others.",
        "zip.gguf": "This is a ZIP archive or a PyTorch file, not a GGUF model file.",
        "lora.gguf": "This is an adapter (LoRA), a change to another model. It cannot be used alone.",
    }
    assert summary.problems == ()


def test_odd_names_come_through_the_pipe(tmp_path: Path) -> None:
    names = [
        unicodedata.normalize("NFC", "é.gguf"),
        unicodedata.normalize("NFD", "é.gguf"),
        "\u202egnp.gguf",
        "two\nlines.gguf",
        "<img src=x><b>.gguf",
        "n" * 250 + ".gguf",
        os.fsdecode(b"\xff\xfe.gguf"),
    ]
    for name in names:
        write(tmp_path / "r" / name, model_bytes())
    heard, summary = _scan(tmp_path / "r")

    assert {Path(model.path).name for model in heard.models} == set(names)
    assert all(model.fault == "" and model.name == "Tiny-Model" for model in heard.models)
    assert summary.found_count == len(names)
    again, _summary = _scan(tmp_path / "r", known=heard.stamps())
    assert {Path(path).name for path in again.unchanged} == set(names)


def test_a_root_whose_name_is_no_text_is_looked_through(tmp_path: Path) -> None:
    root = tmp_path / os.fsdecode(b"\xff")
    write(root / "a.gguf", model_bytes())
    heard, summary = _scan(root)
    assert [model.path for model in heard.models] == [str(root / "a.gguf")]
    assert summary.complete_roots == (str(root),)


def test_a_folder_that_was_added_and_is_gone_is_a_problem(tmp_path: Path) -> None:
    _heard, summary = _scan(tmp_path / "gone")
    assert summary.problems == (f"The folder {tmp_path / 'gone'} is not there. Its drive may not be connected.",)
    assert summary.complete_roots == ()


def test_no_roots_are_no_problem() -> None:
    _heard, summary = _scan()
    assert (summary.found_count, summary.problems, summary.complete_roots) == (0, (), ())


def test_a_cancelled_scan_ends_and_what_was_told_counts(tmp_path: Path) -> None:
    many_models(tmp_path / "m", 200)
    cancel = threading.Event()
    heard = Heard()

    def hear(batch: ScanBatch) -> None:
        heard(batch)
        cancel.set()

    summary = scan([added_source(tmp_path / "m")], {}, hear, cancel, command=_with_a_pause())
    assert summary.is_cancelled
    assert summary.problems == ()
    assert summary.found_count == len(heard.models) > 0
    assert summary.complete_roots == ()


def _with_a_pause() -> list[str]:
    """Return a scan child that never comes to its end: it waits before its last word."""
    code = (
        f"import sys, threading; sys.path.insert(0, {str(Path(__file__).parents[3])!r})\n"
        "from app.models import scan_child\n"
        "scan_child.ScanFinished = lambda **words: threading.Event().wait()\n"
        "scan_child.main()"
    )
    return [sys.executable, "-I", "-c", code]


def test_what_the_callback_raises_ends_the_scan(tmp_path: Path) -> None:
    write(tmp_path / "a.gguf", model_bytes())

    def fail(_batch: ScanBatch) -> None:
        raise OSError("the library is full")

    with pytest.raises(OSError, match="the library is full"):
        scan([added_source(tmp_path)], {}, fail)


# --------------------------------------------------------------------------------------- children that misbehave


def _run(code: str, tmp_path: Path) -> ScanSummary:
    return scan([added_source(tmp_path)], {}, Heard(), command=[sys.executable, "-I", "-c", code])


def test_a_child_that_dies_is_said_in_words(tmp_path: Path) -> None:
    summary = _run("raise SystemExit(3)", tmp_path)
    assert summary.problems == ("The search for models ended early (exit code 3). What it found until then is listed.",)
    summary = _run(f"import os; os.kill(os.getpid(), {signal.SIGKILL})", tmp_path)
    assert summary.problems == (
        "The search for models ended early (exit code -9). What it found until then is listed.",
    )
    assert (summary.is_cancelled, summary.complete_roots) == (False, ())


@pytest.mark.parametrize(
    "words",
    [
        b"Traceback (most recent call last)",
        b"\xff\xff\xff\xff",
        b"\x04\0\0\0abcd",
        b"\x10\0\0\0ab",
    ],
)
def test_a_child_that_talks_nonsense_is_said_in_words(tmp_path: Path, words: bytes) -> None:
    summary = _run(f"import os; os.write(1, {words!r})", tmp_path)
    assert summary.problems == ("The search for models said something Cutaway does not understand, and was ended.",)


def test_a_child_that_stays_after_its_last_word_is_ended(tmp_path: Path) -> None:
    code = (
        f"import sys, threading; sys.path.insert(0, {str(Path(__file__).parents[3])!r})\n"
        "from app.models.scan_messages import ScanFinished, write_message\n"
        "done = ScanFinished(found_count=0, unchanged_count=0, skipped_count=0, complete_roots=(0, 9), problems=())\n"
        "write_message(sys.stdout.buffer, done)\n"
        "threading.Event().wait()"
    )
    assert _run(code, tmp_path).complete_roots == (str(tmp_path),)


def test_a_child_that_cannot_be_started_is_said_in_words(tmp_path: Path) -> None:
    summary = scan([added_source(tmp_path)], {}, Heard(), command=[str(tmp_path / "no python")])
    assert summary.problems == ("The search for models could not be started: No such file or directory.",)


# ------------------------------------------------------------------------------------------------------- many


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.full)])
def test_thousands_of_files_are_found_and_then_known(tmp_path: Path, count: int) -> None:
    many_models(tmp_path / "m", count)
    first, summary = _scan(tmp_path / "m")
    assert (summary.found_count, summary.problems) == (count, ())
    assert len({model.path for model in first.models}) == count
    assert all(model.fault == "" and model.quantization == "Q4_K_M" for model in first.models)

    again, summary = _scan(tmp_path / "m", known=first.stamps())
    assert (summary.found_count, summary.unchanged_count) == (0, count)
    assert set(again.unchanged) == set(first.stamps())
