"""The honest ladder: a model trained here whose F16 gives the true curve, as a comparison measures it."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import gguf
import numpy as np
import pytest
from tokenizers import Tokenizer

from app.compare import statistics
from tests.helpers import ladder_model, ladder_text
from tests.helpers.engine_client import LoggedClient
from tests.helpers.ladder_model import LADDER, QUANTIZATIONS, Ladder
from tests.helpers.perplexity_tool import TEXT
from tests.helpers.window_scorer import ENGINE, WindowScorer, score, tokenize

pytestmark = pytest.mark.timeout(ladder_model.TRAINING_TIMEOUT_S)  # the first test may have to train it

ODD_TEXTS = (
    "",
    " ",
    "\n\n\n \t x",
    "Don't we'll they've I'm he'd it's 'quoted' O'Neill's",
    "def f(x):\n    return  x**2   # 1234567890 3.14e-7\r\n",
    "Zwölf Boxkämpfer jagen Viktor. 東京は夜の七時。 مرحبا بالعالم 👩‍👩‍👧‍👦 🇩🇪 é é",
    "<s>not special</s> <|x|> \u00a0\u2009\ufeff zero\u200bwidth",
    "a" * 300 + "!" * 70 + "  " * 40 + "…—–",
    "tab\there\x0bvertical\x0cfeed\x1f\x7f",
)
# What each quantization may be made of; anything else is a fallback for rows that are no whole blocks.
_MADE_OF = {
    "Q8_0": {"Q8_0"},
    "Q6_K": {"Q6_K"},
    "Q5_K_M": {"Q5_K", "Q6_K"},
    "Q4_K_M": {"Q4_K", "Q6_K"},
    "Q4_0": {"Q4_0", "Q6_K"},
    "Q3_K_M": {"Q3_K", "Q4_K", "Q5_K", "Q6_K"},
    "Q2_K": {"Q2_K", "Q3_K", "Q4_K", "Q6_K"},
}


@pytest.fixture(scope="module")
def ladder() -> Ladder:
    """The two-minute variant."""
    return ladder_model.ladder()


def test_training_teaches_more_than_the_frequency_of_tokens(ladder: Ladder) -> None:
    record = ladder.record
    assert record["loss_before"] == pytest.approx(math.log(ladder_text.VOCABULARY_TOKENS), abs=0.3)
    assert record["loss_after"] < record["unigram_loss"] - 0.5
    assert record["losses"][-1] < record["losses"][0]


def test_llama_cpp_computes_what_was_trained(ladder: Ladder, tmp_path: Path) -> None:
    # A wrong order of rows, norm or vocabulary would show here: these are the losses that torch had in float32.
    windows = np.load(ladder.held_out)[:4]
    with LoggedClient("llama_cpp", tmp_path / "worker.log") as worker:
        worker.load(ladder.f16, ENGINE)
        found = [score(worker, window.tolist(), 0).logprobs for window in windows]
    losses = [-float(np.frombuffer(logprobs, "<f4").mean()) for logprobs in found]
    assert losses == pytest.approx(ladder.record["window_losses"][:4], abs=0.01)


def test_llama_cpp_cuts_text_as_the_tokenizer_does(ladder: Ladder, tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_file(str(ladder.tokenizer))
    texts = (*ODD_TEXTS, TEXT.read_text(encoding="utf-8"))
    with LoggedClient("llama_cpp", tmp_path / "worker.log") as worker:
        worker.load(ladder.f16, ENGINE)
        found = [tokenize(worker, text) for text in texts]
    for text, token_ids in zip(texts, found, strict=True):
        assert token_ids == (ladder_text.BEGIN_ID, *_plain_ids(tokenizer, text)), text[:60]


def test_no_tensor_falls_back_to_another_type(ladder: Ladder) -> None:
    for name in QUANTIZATIONS:
        tensors = gguf.GGUFReader(ladder.quantized(name)).tensors
        matrices = {str(tensor.name): tensor.tensor_type.name for tensor in tensors if len(tensor.shape) == 2}
        assert {kind for kind in matrices.values() if kind not in _MADE_OF[name]} == set(), (name, matrices)
        assert all(tensor.tensor_type.name == "F32" for tensor in tensors if len(tensor.shape) == 1)


def test_divergence_rises_with_every_coarser_quantization(ladder: Ladder, tmp_path: Path) -> None:
    scorer = WindowScorer(tmp_path, ladder.f16, TEXT.read_text(encoding="utf-8"), 4)
    found = {name: scorer.scores(ladder.quantized(name)) for name in LADDER}
    for finer, coarser in itertools.pairwise(LADDER):
        difference = statistics.difference(coarser, found[coarser], finer, found[finer])
        assert difference is not None
        assert difference.is_real, difference
        assert difference.kl > 0, difference
    means = {name: statistics.quality(scores).kl_mean for name, scores in found.items()}
    assert means["Q8_0"] < 0.001, means
    assert means["Q2_K"] > 10 * means["Q6_K"], means


def test_f16_against_itself_is_nothing(ladder: Ladder, tmp_path: Path) -> None:
    quality = WindowScorer(tmp_path, ladder.f16, TEXT.read_text(encoding="utf-8"), 2).quality(ladder.f16)
    assert f"{quality.kl_mean:.4f}" == "0.0000"
    assert quality.same_top == 1.0


def test_quantizing_gives_the_same_bytes_with_any_number_of_threads(ladder: Ladder, tmp_path: Path) -> None:
    for name in ("Q4_K_M", "Q2_K"):
        made = ladder_model.quantized(ladder.f16, name, tmp_path, threads=3)
        assert made.read_bytes() == ladder.quantized(name).read_bytes()


def _plain_ids(tokenizer: Tokenizer, text: str) -> list[int]:
    """Return the ids of a text in which nothing is special."""
    tokenizer.encode_special_tokens = True
    return tokenizer.encode(text, add_special_tokens=False).ids
