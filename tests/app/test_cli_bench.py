"""`cutaway bench` in the terminal: the lines, the table, the ladder, and what it refuses."""

from __future__ import annotations

import json

import pytest

from app import cli_bench
from app.bench import bench
from app.bench.bench import BenchResult, MachineLoad
from app.bench.engine_run import Round
from app.bench.workload import Workload
from app.cli_bench import bench_lines, ladder_rows, path_text, run, served_words, workload_of
from app.cli_parser import UsageError, parse
from app.engines.supervisor import LoadRequest
from app.errors import Words
from backends import protocol
from tests.helpers.command_line import write_script

SHORT = ("--prompt-tokens", "12", "--new-tokens", "6")


class Said:
    """Keeps what is said."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.values: list[object] = []
        self.notices: list[Words] = []
        self.rounds: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)

    def json(self, value: object) -> None:
        self.values.append(json.loads(json.dumps(value, allow_nan=False)))

    def notice(self, words: Words) -> None:
        self.notices.append(words)

    def muted(self, text: str) -> None:
        self.lines.append(text)

    def progress(self, fraction: float) -> None:
        """Nothing."""

    def progress_line(self, text: str) -> None:
        self.rounds.append(text)

    def agrees(self, question: str) -> bool | None:
        return None


@pytest.fixture
def said(monkeypatch):
    idle = MachineLoad(0.0, None, 2)
    monkeypatch.setattr(bench, "machine_load", lambda: idle)
    monkeypatch.setattr(cli_bench, "machine_load", lambda: idle)
    return Said()


def measure(said: Said, tmp_path, *arguments: str) -> int:
    model = write_script(tmp_path, "hello")
    return run(parse(["bench", "--backend", "echo", "--model", model, *SHORT, *arguments]), said)


def test_the_lines_name_path_speeds_and_how_many_were_served(said, tmp_path) -> None:
    assert measure(said, tmp_path, "--requests", "3", "--repetitions", "2") == 0
    text = "\n".join(said.lines)
    assert "echo · CPU" in said.lines[0]
    assert "Prompt 12 tokens, answer 6 tokens, 2 rounds, and one before that does not count." in text
    assert "echo worked on 1 of 3 requests at a time; the others waited." in text
    for owner in ("Weights", "KV cache, reserved", "of it used", "Compute", "Rest", "Total"):
        assert any(line.startswith(owner) for line in said.lines)
    assert said.rounds == ["Round 1 of 2", "Round 2 of 2"]
    assert said.notices == []


def test_json_is_one_value(said, tmp_path) -> None:
    measure(said, tmp_path, "--repetitions", "1", "--json")
    (told,) = said.values
    assert (told["new_tokens"], told["runs"]["count"], told["requests"]) == (6, 1, 1)
    assert said.lines == []


def test_the_ladder_is_a_table_of_rungs(said, tmp_path) -> None:
    measure(said, tmp_path, "--ladder", "--requests", "2")
    rows = [line for line in said.lines if line.startswith(("no KV cache", "KV cache", "shared beginnings"))]
    assert len(rows) == 3
    assert len(said.rounds) == 6


def test_an_engine_whose_parts_cannot_be_switched_off_has_no_ladder(said, starter_model) -> None:
    with pytest.raises(UsageError) as caught:
        run(parse(["bench", "--ladder", "--backend", "llama_cpp"]), said)
    assert caught.value.words.message == "The parts of the llama.cpp engine cannot be switched off one by one."
    assert caught.value.words.hint == "Add --backend: torch."


def test_a_busy_machine_is_said(said, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(bench, "machine_load", lambda: MachineLoad(0.63, 2.0, 2))
    measure(said, tmp_path, "--repetitions", "1")
    (words,) = said.notices
    assert words.message == "Other programs kept 63.0 % of the processor busy before the first round."


def test_the_ladder_s_requests_are_shorter_uneven_and_begin_alike() -> None:
    assert workload_of(parse(["bench"])) == Workload(512, 128, 1)
    found = workload_of(parse(["bench", "--ladder", "--prompt-tokens", "100"]))
    assert (found.prompt_tokens, found.shared_tokens, found.is_uneven) == (100, 75, True)


def test_a_request_has_just_the_context_that_the_work_needs(monkeypatch) -> None:
    flags = parse(["bench"])
    work = Workload(500, 100, 4)
    one = cli_bench._with_room(LoadRequest("m", "llama_cpp"), work, flags).params
    assert (one.context_tokens, one.max_sequences, one.allow_long_context) == (616, 1, False)
    many = cli_bench._with_room(LoadRequest("m", "torch"), work, flags).params
    assert (many.context_tokens, many.max_sequences, many.allow_long_context) == (4 * 616, 4, True)
    asked = LoadRequest("m", "torch", protocol.LoadParams(context_tokens=999))
    kept = cli_bench._with_room(asked, work, parse(["bench", "--context", "999"])).params
    assert (kept.context_tokens, kept.max_sequences) == (999, 4)


def test_a_path_is_named_with_its_reason() -> None:
    loaded = protocol.ModelLoaded(
        backend="torch",
        model_path="m",
        context_tokens=8,
        engine_variant="torch 2.13",
        threads=2,
        attention_path="plain",
        attention_kernel="eager",
        path_note="it differs",
    )
    assert path_text(loaded) == "torch 2.13 · CPU · 2 threads · attention: plain eager · it differs"


def test_all_requests_together_are_said_so() -> None:
    assert served_words(4, 4, "torch") == "torch worked on all 4 requests together."


def test_a_single_request_has_no_line_for_all_of_them() -> None:
    figures = protocol.RequestFigures(prompt_tokens=5, new_tokens=3, ttft_s=0.1, prefill_s=0.1, decode_s=0.2)
    loaded = protocol.ModelLoaded(backend="echo", model_path="m", context_tokens=8)
    result = BenchResult(
        LoadRequest("m", "echo"), loaded, Workload(5, 3), (Round([figures], 1.0),), {}, 0, MachineLoad(0, None, 1)
    )
    assert not any("together" in line for line in bench_lines(result, "M"))
    assert ladder_rows([])[0][0] == "Rung"
