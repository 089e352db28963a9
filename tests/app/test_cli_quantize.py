"""`cutaway quantize`: sizes, files, questions and refusals, on a terminal that only remembers."""

from __future__ import annotations

import argparse

import pytest

from app import cli_quantize
from app.errors import AppError
from tests.helpers.small_llama import write_small_llama


class Terminal:
    """Remembers what is said."""

    def __init__(self, answer=None) -> None:
        self.lines, self.values, self.notices, self.progress, self.questions = [], [], [], [], []
        self._answer = answer

    def line(self, text) -> None:
        self.lines.append(text)

    muted = line

    def json(self, value) -> None:
        self.values.append(value)

    def notice(self, words) -> None:
        self.notices.append(words.message)

    def progress_line(self, text) -> None:
        self.progress.append(text)

    def agrees(self, question):
        self.questions.append(question)
        return self._answer


@pytest.fixture
def model(tmp_path):
    return write_small_llama(tmp_path / "small.gguf")


def run(*arguments, answer=None):
    parser = argparse.ArgumentParser(exit_on_error=False)
    cli_quantize.add_flags(parser)
    terminal = Terminal(answer)
    assert cli_quantize.run(parser.parse_args([str(argument) for argument in arguments]), terminal) == 0
    return terminal


def test_a_dry_run_tells_sizes_and_writes_nothing(model, own_home) -> None:
    terminal = run(model, "--to", "q8_0", "Q2_K_S", "--dry-run")
    assert [line.split()[0] for line in terminal.lines] == ["Quantization", "Q8_0", "Q2_K_S"]
    assert "indistinguishable" in terminal.lines[1]
    assert "needs an importance matrix" in terminal.lines[2]
    assert not (own_home / "data" / "models").is_dir() or not list((own_home / "data" / "models").iterdir())
    value = run(model, "--to", "Q8_0", "--dry-run", "--json").values[0]
    assert value["warning"] is None
    assert value["quantizations"][0] | {"size_bytes": 0, "path": "", "bits_per_weight": 0} == {
        "quantization": "Q8_0", "size_bytes": 0, "bits_per_weight": 0, "tensors": 21, "fallback_tensors": 0,
        "needs_importance": False, "requantized_from": None, "fault": None, "path": "",
    }  # fmt: skip


def test_files_are_made_where_the_library_finds_them(model, own_home) -> None:
    terminal = run(model, "--to", "Q8_0", "Q4_0", "Q8_0")
    assert terminal.lines[0].startswith("Q8_0, Q4_0 were made and run")
    made = sorted(path.name for path in (own_home / "data" / "models").iterdir())
    assert made == ["Small-Llama-Q4_0.gguf", "Small-Llama-Q8_0.gguf"]
    assert any(line.startswith("Making Q4_0") for line in terminal.progress)
    assert run("Small-Llama:Q4_0", "--to", "Q8_0", "--dry-run").notices  # found by name, and quantized


def test_a_quantized_source_asks_and_force_does_not(model, tmp_path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    run(model, "--to", "Q4_0", "--out", out)
    source = out / "Small-Llama-Q4_0.gguf"
    with pytest.raises(AppError) as caught:
        run(source, "--to", "Q5_0", "--out", out, answer=False)
    assert caught.value.words.message == "Nothing was made."
    value = run(source, "--to", "Q5_0", "--out", out, "--force", "--json").values[0]
    assert "(Q4_0)" in value["warning"]
    assert value["quantizations"][0]["requantized_from"] == "Q4_0"
    assert value["quantizations"][0]["path"] == str(out / "Small-Llama-Q5_0.gguf")
    assert run(source, "--to", "Q5_1", "--out", out, answer=True).questions


def test_an_importance_matrix_from_our_text_or_a_file(model, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("app.compare.quantizing.MOST_WINDOWS", 2)
    out = tmp_path / "out"
    out.mkdir()
    terminal = run(model, "--to", "Q2_K_S", "--out", out, "--importance")
    matrix = out / "Small-Llama-calibration-imatrix.gguf"
    assert matrix.is_file()
    assert any("importance matrix is kept" in line for line in terminal.lines)
    (out / "Small-Llama-Q2_K_S.gguf").unlink()
    value = run(model, "--to", "Q2_K_S", "--out", out, "--importance", matrix, "--json").values[0]
    assert value["importance"] is None  # none was made
    assert value["quantizations"][0]["needs_importance"] is False


def test_what_cannot_be_is_said(model, tmp_path) -> None:
    for arguments, part in (
        ((model, "--to", "Q9"), "no quantization"),
        ((model, "--to", "IQ1_S"), "Without an importance matrix"),
        ((model, "--to", "Q8_0", "--importance", model), "cannot be used"),
        ((model, "--to", "Q8_0", "--out", tmp_path / "none"), "is not there"),
        ((tmp_path / "none.gguf", "--to", "Q8_0"), "none.gguf"),
    ):
        with pytest.raises(AppError) as caught:
            run(*arguments)
        assert part in caught.value.words.message
    parser = argparse.ArgumentParser(exit_on_error=False)
    cli_quantize.add_flags(parser)
    with pytest.raises(argparse.ArgumentError):
        parser.parse_args(["m", "--to", "Q8_0", "--threads", "many"])
