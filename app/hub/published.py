"""Quality figures that others published, for the very models they measured and no other.

The mean KL divergence from the unquantized model, over the test text of WikiText-2. One quantization is not one
quality: it differs between models by a factor of two to four, so nobody's figure stands for another model's. A screen
shows them in italics, with their source.
Reference: tools/perplexity/README.md of llama.cpp, the scoreboards of Llama 3 8B and Llama 2 7B.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from app.i18n import _
from app.models.quantization import meaning

_ARCHITECTURE = "llama"
_LLAMA_3_8B, _LLAMA_2_7B = "Llama 3 8B", "Llama 2 7B"
# With an importance matrix where one was used, and without; None where that was not measured.
_Pair = tuple[float | None, float | None]
_FIGURES: Mapping[str, Mapping[str, _Pair]] = {
    _LLAMA_3_8B: {
        "Q8_0": (None, 0.00136),
        "Q6_K": (None, 0.00545),
        "Q5_K_M": (None, 0.01076),
        "Q4_K_M": (0.02815, 0.03127),
        "IQ4_XS": (0.03633, None),
        "Q4_0": (None, 0.07194),
        "Q3_K_M": (0.08436, 0.10191),
        "IQ3_M": (0.10253, None),
        "IQ3_XXS": (0.18363, None),
        "Q2_K": (0.332, 0.445),
        "IQ2_M": (0.326, None),
        "IQ2_XXS": (0.812, None),
        "IQ1_M": (1.39, None),
        "IQ1_S": (2.21, None),
    },
    _LLAMA_2_7B: {
        "Q8_0": (None, 0.00037),
        "Q6_K": (None, 0.0021),
        "Q4_K_M": (None, 0.0127),
        "Q2_K": (None, 0.109),
    },
}
# The base model and its own chat version; Llama 3.1 and every fine-tune are other models.
_NAMES: Mapping[str, re.Pattern[str]] = {
    _LLAMA_3_8B: re.compile(r"(?:meta-)?llama-?3-8b(?:-instruct)?"),
    _LLAMA_2_7B: re.compile(r"(?:meta-)?llama-?2-7b(?:-chat)?(?:-hf)?"),
}
# llama.cpp stores these the same way with an importance matrix and without.
_MATRIX_IS_NO_MATTER = frozenset({"Q8_0"})


@dataclass(frozen=True, slots=True)
class Published:
    """A figure that was measured elsewhere.

    Attributes:
        kl_mean: in nats a token.
        source: who measured it and how, one sentence.
    """

    kl_mean: float
    source: str


def published(
    model: str, quantization: str, architecture: str = _ARCHITECTURE, has_importance_matrix: bool | None = None
) -> Published | None:
    """Return what was published of one quantization of this very model; None for every other model.

    Args:
        model: its name or the base model's, with an owner or without, such as "meta-llama/Meta-Llama-3-8B-Instruct".
        quantization: in any spelling.
        architecture: as the header has it; "" when it is not known.
        has_importance_matrix: whether it was quantized with one; None when that is not known.
    """
    measured = _measured_model(model)
    if not measured or architecture not in ("", _ARCHITECTURE):
        return None
    name = meaning(quantization).name
    pair = _FIGURES[measured].get(name)
    if pair is None:
        return None
    with_matrix, without = pair
    if name in _MATRIX_IS_NO_MATTER:
        with_matrix = without
    chosen = with_matrix if has_importance_matrix else without
    if has_importance_matrix is None and chosen is None:
        chosen = with_matrix
    if chosen is None:
        return None
    words = _("Published by the llama.cpp project for {model}: mean KL divergence over WikiText-2 in windows of 512.")
    return Published(chosen, words.format(model=measured))


def _measured_model(model: str) -> str:
    name = model.rpartition("/")[2].casefold()
    name = re.sub(r"[-_.](?:gguf|i1-gguf)$", "", name).replace("_", "-").replace(" ", "-")
    return next((measured for measured, pattern in _NAMES.items() if pattern.fullmatch(name)), "")
