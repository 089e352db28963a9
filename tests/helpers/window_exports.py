"""Comparisons whose reference was measured, without a model: their windows can be exported."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path

import msgspec
import numpy as np

from app.compare.folder import ComparisonFolder
from app.compare.plan import FIRST_SCORED, WINDOW_TOKENS, ComparisonPlan, RunSpec, TextSpec, WorkloadSpec
from app.compare.results import Answer
from app.compare.run_files import Conditions, Material, RunFacts, WindowTokens
from backends.reference_window import WindowWriter

VOCABULARY = 400
WINDOWS = 2
WORKLOAD = WorkloadSpec(
    amount="quick", texts=(TextSpec(text_id="code", windows=WINDOWS, sha256="5", licence="MIT", path="/secret/place"),)
)


def plan(workload: WorkloadSpec = WORKLOAD, title: str = "Tiny") -> ComparisonPlan:
    """Return a plan of one candidate."""
    return ComparisonPlan(
        comparison_id="one",
        created_s=1.0,
        title=title,
        reference=RunSpec(run_id="F16", label="F16", path="/secret/f16.gguf", key="Tiny:F16", quantization="F16"),
        candidates=(RunSpec(run_id="Q4_0", label="Q4_0", path="/m/q4_0.gguf"),),
        workload=workload,
        reference_reason="F16: 16 bits.",
    )


def logits(seed: int, shift: float = 0.0) -> np.ndarray:
    """Return [255, V] logits of a window; a shift makes those of a slightly other model."""
    draw = np.random.default_rng(seed)
    values = draw.standard_normal((WINDOW_TOKENS - 1 - FIRST_SCORED, VOCABULARY)) * 3
    return (values + shift * np.random.default_rng(seed + 1000).standard_normal(values.shape)).astype(np.float32)


def log_softmax(values: np.ndarray) -> np.ndarray:
    """Return rows of log-probabilities."""
    exact = values.astype(np.float64)
    exact -= exact.max(axis=1, keepdims=True)
    return (exact - np.log(np.exp(exact).sum(axis=1, keepdims=True))).astype(np.float32)


def material() -> Material:
    """Return the tokens of the windows."""
    draw = np.random.default_rng(5)
    windows = [
        WindowTokens(
            text_id="code", number=number, token_ids=tuple(draw.integers(0, VOCABULARY, WINDOW_TOKENS).tolist())
        )
        for number in range(WINDOWS)
    ]
    digest = hashlib.sha256(msgspec.msgpack.encode((windows, [], []))).hexdigest()
    return Material(
        tokenizer_hash="tokens",
        vocabulary_tokens=VOCABULARY,
        architecture="llama",
        parameters_count=10**6,
        windows=tuple(windows),
        sha256=digest,
    )


def measured_comparison(root: Path, keep_top: int = 0) -> ComparisonFolder:
    """Return the folder of a comparison whose reference was measured."""
    folder = ComparisonFolder.create(root, plan())
    found = material()
    folder.save_material(found)
    folder.save("F16", "facts", RunFacts(backend="llama_cpp", tokenizer_hash="tokens", parameters_count=10**6))
    folder.save("F16", "answers", (Answer(prompt_id="p", text="Yes."),))
    folder.save_conditions(Conditions(self_check=0.0, kept_tokens=keep_top, processor="a processor", threads=2))
    for number, window in enumerate(found.windows):
        path = folder.reference_path(number)
        ids = list(window.token_ids)
        writer = WindowWriter(path, 255, VOCABULARY, ids, keep_top=keep_top)
        rows = log_softmax(logits(number))
        if number == 1:
            rows[7, 3] = np.nan
        writer.add(rows, ids[FIRST_SCORED + 1 :])
        writer.close()
    return folder


def new_comparison(folder: Path, made: ComparisonPlan | None = None) -> ComparisonFolder:
    """Return a comparison that was not begun, in `here` of this folder."""
    return ComparisonFolder.create(folder / "here", made or plan())


def rewritten(path: Path, target: Path, **changes: object) -> Path:
    """Write an export again with other fields of its manifest."""
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, "w") as made:
        for entry in source.infolist():
            data = source.read(entry)
            if entry.filename == "manifest.json":
                data = json.dumps({**json.loads(data), **changes}).encode()
            made.writestr(entry.filename, data)
    return target
