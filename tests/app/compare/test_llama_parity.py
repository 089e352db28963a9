"""Our figures are those of llama.cpp's own perplexity tool, on the same files, text, context and chunks.

Ours come from a worker and app/compare/statistics.py; the tool's from tests/data/perplexity/ for the starter model,
whose quantizations are the same bytes everywhere, and from the tool itself for the ladder model, which is trained on
each machine anew, and on another kind of processor than the files were made on.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import llama_cpp
import pytest

from app.compare.plan import SCORED_TOKENS
from app.compare.results import Quality
from tests.helpers import ladder_model, perplexity_tool
from tests.helpers.perplexity_tool import CHUNKS, TEXT, Output
from tests.helpers.window_scorer import WindowScorer

# Shares by which our figures may be off; what the tool prints is rounded, which half a step of its last digit allows.
MEANS, PERCENTILES = 0.005, 0.02
TOLERANCES = {
    **dict.fromkeys(("perplexity", "reference_perplexity", "perplexity_ratio", "kl_mean", "same_top"), MEANS),
    **dict.fromkeys(("perplexity_error", "perplexity_ratio_error", "kl_error", "same_top_error"), MEANS),
    **dict.fromkeys(("log_perplexity_correlation", "delta_p_rms"), MEANS),
    **dict.fromkeys(("kl_median", "kl_p90", "kl_p95", "kl_p99", "kl_p999", "kl_max"), PERCENTILES),
}
SPAN_NATS = 16.0  # of the tool's own reference file
FEW = ("Q4_K_M", "Q2_K")


@pytest.mark.timeout(ladder_model.TRAINING_TIMEOUT_S)
def test_two_quantizations_of_the_ladder_have_the_tools_figures(tmp_path: Path) -> None:
    _check_ladder(tmp_path, FEW)


@pytest.mark.full
@pytest.mark.timeout(ladder_model.TRAINING_TIMEOUT_S)
def test_all_quantizations_of_the_ladder_have_the_tools_figures(tmp_path: Path) -> None:
    _check_ladder(tmp_path, ladder_model.QUANTIZATIONS)


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_all_quantizations_of_the_starter_have_the_tools_figures(starter_model: Path, tmp_path: Path) -> None:
    reference, paths, outputs = _starter(starter_model, ladder_model.QUANTIZATIONS)
    scorer = _scorer(tmp_path, reference, CHUNKS["starter"])
    for path, output in zip(paths, outputs, strict=True):
        assert not _differences(scorer.quality(path), output), path.name


@pytest.mark.timeout(900)
def test_first_window_of_the_starter_has_the_tools_figures(starter_model: Path, tmp_path: Path) -> None:
    # One window and one quantization of those that the whole test takes; the tool prints a row after each window.
    reference, paths, outputs = _starter(starter_model, ["Q4_K_M"])
    quality = _scorer(tmp_path, reference, 1).quality(paths[0])
    for name, figure in outputs[0].rows[0].items():
        ours = getattr(quality, name)
        assert abs(ours - figure.value) <= MEANS * abs(figure.value) + 0.6 * figure.step, (name, ours, figure)


def test_what_the_tool_printed_is_read_whole() -> None:
    for name in ladder_model.QUANTIZATIONS:
        output = perplexity_tool.checked_in("starter", name)
        assert output.chunks == CHUNKS["starter"]
        assert set(output.hashes) == {"text", "reference", "model"}
        assert output.features.startswith("CPU : ")
        assert set(TOLERANCES) <= set(output.figures)
        assert "/" not in output.raw.replace("PPL(Q)/PPL(base)", "").replace("tests/benchmarks/build_peers.sh", "")


def test_a_figure_beyond_its_tolerance_is_found() -> None:
    output = perplexity_tool.checked_in("starter", "Q2_K")
    values = {name: output.figures[name].value for name in TOLERANCES}
    assert _wrong(values, output) == []
    for name, tolerance in TOLERANCES.items():
        off = values[name] * (1 + 1.5 * tolerance) + output.figures[name].step
        assert [line.split()[0] for line in _wrong({**values, name: off}, output)] == [name]


def _scorer(folder: Path, reference: Path, chunks: int) -> WindowScorer:
    return WindowScorer(folder, reference, TEXT.read_text(encoding="utf-8"), chunks, SPAN_NATS)


def _check_ladder(folder: Path, names: Sequence[str]) -> None:
    tool = _tool("the ladder model is another one on every machine, and")
    ladder = ladder_model.ladder()
    paths = [ladder.quantized(name) for name in names]
    outputs = perplexity_tool.compare(tool, ladder.f16, paths, TEXT, CHUNKS["ladder"])
    scorer = _scorer(folder, ladder.f16, CHUNKS["ladder"])
    for name, path, output in zip(names, paths, outputs, strict=True):
        assert output.chunks == CHUNKS["ladder"]
        assert not _differences(scorer.quality(path), output), name


def _starter(starter: Path, names: Sequence[str]) -> tuple[Path, list[Path], list[Output]]:
    """Return the starter's F16, quantizations of it, and what the tool prints of these on this kind of processor."""
    reference = ladder_model.starter_quantized(starter, "F16")
    paths = [ladder_model.starter_quantized(starter, name) for name in names]
    outputs = [perplexity_tool.checked_in("starter", name) for name in names]
    for output, path in zip(outputs, paths, strict=True):
        files = {"text": TEXT, "reference": reference, "model": path}
        changed = [kind for kind, file in files.items() if perplexity_tool.sha256(file) != output.hashes[kind]]
        assert not changed, f"{changed} differ from what the tool read: make its outputs again (perplexity_tool.py)"
    if perplexity_tool.features_in(llama_cpp.llama_print_system_info().decode()) != outputs[0].features:
        tool = _tool("the tool's figures were made on a processor that adds in another order, and")
        outputs = perplexity_tool.compare(tool, reference, paths, TEXT, CHUNKS["starter"])
    return reference, paths, outputs


def _tool(reason: str) -> Path:
    path = perplexity_tool.tool_path()
    if path is None:
        pytest.skip(f"{reason} llama-perplexity was not built here: tests/benchmarks/build_peers.sh")
    return path


def _differences(quality: Quality, output: Output) -> list[str]:
    assert quality.tokens == output.chunks * SCORED_TOKENS
    assert quality.non_finite == 0
    found = {name: getattr(quality, name) for name in TOLERANCES}
    return _wrong({name: value for name, value in found.items() if value is not None}, output)


def _wrong(values: dict[str, float], output: Output) -> list[str]:
    """Return a line for each value that is further off than the tool's rounding and our tolerance."""
    figures = output.figures
    return [
        f"{name} is {value:.7g}, the tool says {figures[name].value:.7g}"
        for name, value in values.items()
        if abs(value - figures[name].value) > TOLERANCES[name] * abs(figures[name].value) + 0.6 * figures[name].step
    ]
