"""`cutaway compare` with a scripted engine: what it prints, refuses, keeps, and goes on with."""

from __future__ import annotations

import json
import os
import signal

import pytest

from app import cli_compare
from app.bench.bench import MachineLoad
from app.cli_compare import run
from app.cli_parser import UsageError, parse
from app.compare import runner, speed_phase
from app.compare.files import FolderError
from app.engines import supervisor
from app.errors import AppError
from tests.app.test_cli_bench import Said
from tests.helpers.scoring_worker import FakeModel, worker_command, write_model


@pytest.fixture(autouse=True)
def scripted(monkeypatch):
    monkeypatch.setattr(supervisor, "bundled_worker", worker_command)
    for module in (runner, speed_phase):
        monkeypatch.setattr(module, "machine_load", lambda: MachineLoad(0.0, None, 2))


@pytest.fixture
def said() -> Said:
    return Said()


def models(tmp_path, **found: FakeModel) -> list[str]:
    return [write_model(tmp_path / f"{name}.json", model) for name, model in found.items()]


def compare(said: Said, reference: str, candidates: list[str], *more: str) -> int:
    base = ["compare", "--backend", "echo", "--amount", "quick", "--reference", reference]
    return run(parse([*base, "--candidates", *candidates, *more]), said)


def test_the_verdict_comes_first_then_the_table_and_where_it_lies(said, tmp_path) -> None:
    reference, q8, other = models(
        tmp_path, f16=FakeModel(), q8=FakeModel(noise=0.05), other=FakeModel(tokenizer_hash="x")
    )
    assert compare(said, reference, [q8, other], "--out", str(tmp_path / "out")) == 0
    assert said.lines[0].startswith("Predicted time: ")
    assert said.lines[2].split()[:2] == ["Run", "Size"]
    assert [line.split()[0] for line in said.lines[3:5]] == ["f16", "q8"]
    assert any(
        words.message == "other: This model has another vocabulary than the reference." for words in said.notices
    )
    assert any("scoring" in line for line in said.rounds)
    assert f"The comparison lies in {tmp_path / 'out'}." in said.lines
    found = json.loads((tmp_path / "out" / "comparison.json").read_bytes())
    assert said.lines[1] == found["sentence"].replace("\xa0", " ") != ""
    assert [one["label"] for one in found["candidates"]] == ["q8", "other"]
    assert found["candidates"][0]["kl_mean"] > 0


def test_json_is_the_file(said, tmp_path) -> None:
    reference, q4 = models(tmp_path, f16=FakeModel(), q4=FakeModel(noise=0.3))
    assert compare(said, reference, [q4], "--out", str(tmp_path / "out"), "--json") == 0
    assert said.values == [json.loads((tmp_path / "out" / "comparison.json").read_bytes())]


def test_where_nothing_could_be_measured_the_exit_code_says_so(said, tmp_path) -> None:
    reference, other = models(tmp_path, f16=FakeModel(), other=FakeModel(tokenizer_hash="x"))
    assert compare(said, reference, [other]) == 1


def test_a_reference_that_dies_ends_it_with_how_to_go_on_and_it_goes_on(said, tmp_path, own_home) -> None:
    once = str(tmp_path / "died")
    # the probe scores twice with a worker of its own; the third is the comparison's second window
    dying = FakeModel(fault="kill", fault_kind="score", fault_at=1, fault_once=once)
    reference, q4 = models(tmp_path, f16=dying, q4=FakeModel(noise=0.3))
    assert compare(said, reference, [q4]) == 1
    (folder,) = (own_home / "data" / "comparisons").iterdir()
    last = said.notices[-1]
    assert "The system ended the engine" in last.message
    assert last.hint == f"Go on with `cutaway compare --resume {folder.name}`."
    again = Said()
    assert run(parse(["compare", "--resume", folder.name]), again) == 0
    assert again.lines[0] == json.loads((folder / "comparison.json").read_bytes())["sentence"].replace("\xa0", " ")
    assert run(parse(["compare", "--resume", str(folder), "--json"]), again) == 0


def test_ctrl_c_keeps_everything_and_says_how_to_go_on(said, tmp_path, own_home, monkeypatch) -> None:
    reference, q4 = models(tmp_path, f16=FakeModel(), q4=FakeModel(noise=0.3))

    def progress_line(text: str) -> None:
        if text.startswith("q4: scoring · 2"):
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(said, "progress_line", progress_line)
    before = signal.getsignal(signal.SIGINT)
    assert compare(said, reference, [q4]) == 130
    assert signal.getsignal(signal.SIGINT) is before
    assert said.notices[-1].message == "Stopped. Everything that was measured is kept."
    (folder,) = (own_home / "data" / "comparisons").iterdir()
    assert (folder / "runs/q4-1/window-0001.npz").is_file()
    assert run(parse(["compare", "--resume", folder.name]), Said()) == 0


def test_ctrl_c_during_the_probe_leaves_nothing(said, tmp_path, own_home, monkeypatch) -> None:
    reference, q4 = models(tmp_path, f16=FakeModel(), q4=FakeModel())
    monkeypatch.setattr(said, "progress_line", lambda _text: os.kill(os.getpid(), signal.SIGINT))
    assert compare(said, reference, [q4]) == 130
    assert not (own_home / "data" / "comparisons").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--reference is missing"),
        (["--resume", "x", "--amount", "quick"], "goes on with a comparison as it was planned"),
        (["--resume", "x", "--kv-type", "f16"], "goes on with a comparison as it was planned"),
    ],
)
def test_flags_that_cannot_be_together_are_refused(said, arguments, words) -> None:
    with pytest.raises(UsageError, match=words):
        run(parse(["compare", *arguments]), said)


def test_what_cannot_be_resumed_is_a_sentence(said, tmp_path) -> None:
    with pytest.raises(FolderError, match="There is no comparison in"):
        run(parse(["compare", "--resume", str(tmp_path)]), said)


def test_a_folder_that_holds_something_is_not_written_into(said, tmp_path) -> None:
    reference, q4 = models(tmp_path, f16=FakeModel(), q4=FakeModel())
    with pytest.raises(FolderError, match="is not empty"):
        compare(said, reference, [q4], "--out", str(tmp_path))


def test_own_prompts_are_one_a_line_and_own_text_takes_the_place_of_all(tmp_path) -> None:
    (tmp_path / "prompts.txt").write_text("One?\n\n  Two?  \n", encoding="utf-8")
    (tmp_path / "text.txt").write_text("word " * 2000, encoding="utf-8")
    flags = parse(
        [
            "compare",
            "--reference",
            "x",
            "--prompts",
            str(tmp_path / "prompts.txt"),
            "--text",
            str(tmp_path / "text.txt"),
        ]
    )
    work = cli_compare._workload_of(flags)
    assert [prompt.text for prompt in work.prompts] == ["One?", "Two?"]
    assert [(text.title, text.windows) for text in work.texts] == [("text.txt", 4)]
    (tmp_path / "prompts.txt").write_text("\n", encoding="utf-8")
    with pytest.raises(AppError, match="holds no prompts"):
        cli_compare._workload_of(flags)
