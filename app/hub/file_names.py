"""What the name of a file in a repo says: its quantization, its set, whether it is a model at all.

Publishers name files as they like: `Model-Q4_K_M.gguf`, `model.q4_k_m.gguf`, `Model_UD-Q4_K_XL-00001-of-00003.gguf`,
`Q8_0/Model-00001-of-00002.gguf`, `Model.i1-IQ3_XXS.gguf`. Knows no header: what is really in a file, that says.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from app.models.quantization import meaning
from app.models.quantization_words import gguf_name
from app.models.split_set import MAX_PARTS, part_name

Role = Literal["model", "projector", "other", "pieces"]

_SEPARATOR = re.compile(r"[-._ ]")
_TOKENS = re.compile(r"[-. ]")
_FLOAT = re.compile(r"(?i)(?:fp|float)(16|32)")
# A quantization's name whoever made it: Q4_X_MINE, IQ7, FP6.
_LOOKS_LIKE_ONE = re.compile(r"(?i)(?:ud-?)?(?:i?q|tq|fp|bf|f|mxfp|nvfp|int|w)[0-9][0-9a-z_]{0,30}")
_LONGEST_LABEL = 32
# A GGUF file cut by hand, which must be joined before anything can read it.
_PIECES = re.compile(
    r"(?i)\.gguf[-._](?:(?:part|split|chunk)[-._]?(?:[a-z]{1,2}|[0-9]{1,3}(?:[-._]?of[-._]?[0-9]{1,3})?)|a[a-z]|[0-9]{1,3})"
)
_MATRIX = re.compile(r"(?i)(?:^|[-._ ])imatrix(?:$|[-._ ])")
_ADAPTER = re.compile(r"(?i)(?:^|[-._ ])(?:lora|adapter|control[-_]?vector)(?:$|[-._ ])")
_UNQUANTIZED = frozenset({"F16", "BF16", "F32", ""})


@dataclass(frozen=True, slots=True)
class ModelFile:
    """What the name of a GGUF file says.

    Attributes:
        role: "model" for what an engine loads, "projector" for a vision projector, "pieces" for a file cut by hand.
        quantization: in its usual spelling; a stranger's as it came; "" when the name does not say.
        model: the name in front of the quantization.
        set_key: equal for the parts of one set, and for nothing else.
        part: counted from 1; num_parts: 1 for a file that is no part.
        num_parts: of the whole set.
    """

    role: Role
    quantization: str = ""
    model: str = ""
    set_key: str = ""
    part: int = 1
    num_parts: int = 1


def model_file(path: str) -> ModelFile:
    """Return what a path in a repo says of the file."""
    folder, _slash, name = path.rpartition("/")
    lower = name.lower()
    if not lower.endswith(".gguf"):
        cut = _PIECES.search(name)
        if cut is not None and cut.end() == len(name):
            stem = name[: cut.start()]
            quantization, model = _labelled(stem, folder)
            return ModelFile("pieces", quantization, model, f"{folder}/{stem}")
        return ModelFile("other")
    found = part_name(f"{name[:-5]}.gguf")
    is_set = found is not None and 1 < found.num_parts <= MAX_PARTS
    stem = found.prefix if is_set and found is not None else name[:-5]
    quantization, model = _labelled(stem, folder)
    role = _role(lower, stem, quantization)
    if not is_set or found is None:
        return ModelFile(role, quantization, model, path)
    return ModelFile(role, quantization, model, f"{folder}/{stem}/{found.num_parts}", found.part, found.num_parts)


def quantization_in(stem: str) -> tuple[str, str]:
    """Return the quantization that a name ends in, or holds, and what stands in front of it; "" for none."""
    tail_from = max(0, len(stem) - _LONGEST_LABEL)
    for match in _SEPARATOR.finditer(stem, tail_from):
        if known := _known(stem[match.end() :]):  # the first is the longest
            return known, stem[: match.start()]
    if known := _known(stem):
        return known, ""
    tokens = _TOKENS.split(stem)
    for end in range(len(tokens) - 1, 0, -1):  # one in the middle: Model-Q4_K_M-imat, Q4_K_M-Model
        for count in (2, 1):
            label = "-".join(tokens[max(0, end - count) : end])
            if known := _known(label):
                return known, "-".join(tokens[: max(0, end - count)])
    if tokens[-1:] and _LOOKS_LIKE_ONE.fullmatch(tokens[-1]):
        return tokens[-1], stem[: -len(tokens[-1])].rstrip("-. _")
    return "", stem


def known_quantization(label: str) -> str:
    """Return a quantization's usual spelling, of GGUF or of safetensors; "" for a stranger."""
    found = meaning(label)
    return found.name if found.is_known else ""


def _labelled(stem: str, folder: str) -> tuple[str, str]:
    """Return quantization and model of a file's name, or else those of the folder that it lies in."""
    quantization, model = quantization_in(stem)
    if quantization or not folder:
        return quantization, model
    in_folder, _model = quantization_in(folder.rpartition("/")[2])
    return in_folder, stem


def _known(label: str) -> str:
    if not 2 <= len(label) <= _LONGEST_LABEL:
        return ""
    if plain := _FLOAT.fullmatch(label):
        return f"F{plain[1]}"
    known = gguf_name(label)
    return known.name if known is not None else ""


def _role(lower: str, stem: str, quantization: str) -> Role:
    if "mmproj" in lower:
        return "projector"
    if lower.startswith(("ggml-vocab-", "vocab-")) or (_MATRIX.search(stem) and not quantization):
        return "other"
    is_adapter = _ADAPTER.search(stem) is not None and "merge" not in lower
    return "other" if is_adapter and quantization in _UNQUANTIZED else "model"
