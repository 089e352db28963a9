"""What a model file's header is built of: entries, tensors with the types that llama-quantize gives them, a vocabulary.

Knows the format's bytes by way of gguf_files and shares no code with app/models, so that it can judge it.
"""

from __future__ import annotations

import array
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tests.helpers import gguf_files
from tests.helpers.gguf_files import text, u32, u64

Value = int | float | str | bool | Sequence[int] | Sequence[bool]
Q4_K_M, MXFP4_MOE = 15, 38  # general.file_type

# Number of the type, weights in a block, bytes of a block: ggml.h and ggml-common.h.
TYPES: Mapping[str, tuple[int, int, int]] = {
    "F32": (0, 1, 4),
    "F16": (1, 1, 2),
    "Q5_0": (6, 32, 22),
    "Q5_1": (7, 32, 24),
    "Q8_0": (8, 32, 34),
    "Q4_K": (12, 256, 144),
    "Q5_K": (13, 256, 176),
    "Q6_K": (14, 256, 210),
    "MXFP4": (39, 32, 17),
}
# What a K-type becomes where a row is no whole number of its blocks: tensor_type_fallback in llama-quant.cpp.
_FALLBACKS = {"Q4_K": "Q5_0", "Q5_K": "Q5_1", "Q6_K": "Q8_0"}
_NEVER_QUANTIZED = ("_norm", "ffn_gate_inp", "ssm_conv1d", "shortconv.conv", "altup", "laurel", "per_layer_model_proj")


@dataclass(frozen=True)
class Tensor:
    """One tensor as the header names it; the first dimension is that of a row."""

    name: str
    dims: tuple[int, ...]
    type: str

    @property
    def size_bytes(self) -> int:
        """What its data take."""
        _number, weights, block_bytes = TYPES[self.type]
        return self.elements // weights * block_bytes

    @property
    def elements(self) -> int:
        """How many weights it has."""
        count = 1
        for dim in self.dims:
            count *= dim
        return count


@dataclass(frozen=True)
class Vocabulary:
    """The tokenizer's part of a header: as many tokens as the model has, with made-up words.

    Attributes:
        model: "gpt2" for byte-pair encoding, "llama" for SentencePiece.
        pre: the pre-tokenizer's name; "" for SentencePiece.
        tokens: how many.
        merges: how many merges the real file has; only written with is_full.
    """

    model: str
    pre: str
    tokens: int
    merges: int = 0

    def entries(self, *, is_full: bool) -> list[bytes]:
        """Return the metadata; with is_full the words are as long and the merges as many as in a real file."""
        words = _long_words(self.tokens) if is_full else [b"t%d" % number for number in range(self.tokens)]
        words[:3] = [b"<unk>", b"<s>", b"</s>"]
        types = array.array("i", [1]) * self.tokens
        types[:3] = array.array("i", (2, 3, 3))
        if self.model == "llama":
            words[3:259] = [b"<0x%02X>" % byte for byte in range(256)]
            types[3:259] = array.array("i", [6]) * 256
        else:
            words[3] = "Ċ".encode()  # the newline, without which an engine warns
        made = [gguf_files.string_entry("tokenizer.ggml.model", self.model)]
        if self.pre:
            made.append(gguf_files.string_entry("tokenizer.ggml.pre", self.pre))
        made.append(_words_entry("tokenizer.ggml.tokens", words))
        if self.model == "llama":
            scores = array.array("f", [-1.0]) * self.tokens
            made.append(gguf_files.array_entry("tokenizer.ggml.scores", 6, self.tokens, scores.tobytes()))
        made.append(gguf_files.array_entry("tokenizer.ggml.token_type", 5, self.tokens, types.tobytes()))
        if self.model != "llama":
            made.append(_words_entry("tokenizer.ggml.merges", _merges(self.merges) if is_full else [b"t 4"]))
        made += [_entry("tokenizer.ggml.bos_token_id", 1), _entry("tokenizer.ggml.eos_token_id", 2)]
        return made


@dataclass
class Draft:
    """A header in the making.

    Attributes:
        architecture: such as "llama".
        title: for people, such as "Llama 3.1 8B Instruct".
        layers: how many.
        vocabulary: see Vocabulary.
        experts: how many a layer has; 0 for a dense model.
        file_type: Q4_K_M or MXFP4_MOE.
        values: metadata without the architecture's prefix.
        has_wide_values: whether attn_v gets more bits, as llama-quantize does for Llama 70B.
        tensors: in the file's order.
        is_tied: whether the embedding is the output too.
    """

    architecture: str
    title: str
    layers: int
    vocabulary: Vocabulary
    experts: int = 0
    file_type: int = Q4_K_M
    has_wide_values: bool = False
    values: dict[str, Value] = field(default_factory=dict)
    tensors: list[Tensor] = field(default_factory=list)
    is_tied: bool = False

    def add(self, name: str, *dims: int) -> None:
        """Add a tensor of the type that llama-quantize chooses for it; layer tensors come with their number."""
        self.tensors.append(Tensor(name, dims, self._type_of(name, dims)))

    def block(self, layer: int, shapes: Mapping[str, Sequence[int]]) -> None:
        """Add a layer's tensors; a name without a suffix gets ".weight", one that ends in a dot loses that."""
        for name, dims in shapes.items():
            whole = name if name.endswith((".bias", ".weight", ".")) else f"{name}.weight"
            self.add(f"blk.{layer}.{whole.removesuffix('.')}", *dims)

    def ends(self, width: int, *, is_tied: bool, norm: str = "output_norm") -> None:
        """Add the embedding and the output."""
        self.is_tied = is_tied
        self.add("token_embd.weight", width, self.vocabulary.tokens)
        if not is_tied:
            self.add("output.weight", width, self.vocabulary.tokens)
        self.add(f"{norm}.weight", width)

    def metadata(self, *, is_full: bool) -> list[bytes]:
        """Return every entry of the header."""
        made = [
            gguf_files.string_entry("general.architecture", self.architecture),
            gguf_files.string_entry("general.name", self.title),
            _entry("general.file_type", self.file_type),
            _entry("general.quantization_version", 2),
            _entry(f"{self.architecture}.block_count", self.layers),
        ]
        made += [_entry(f"{self.architecture}.{key}", value) for key, value in self.values.items()]
        return made + self.vocabulary.entries(is_full=is_full)

    def _type_of(self, name: str, dims: tuple[int, ...]) -> str:
        """Follow llama-quant.cpp for the two mixes used here."""
        if len(dims) < 2 or not name.endswith(".weight") or any(part in name for part in _NEVER_QUANTIZED):
            return "F32"
        if self.file_type == MXFP4_MOE:
            return "MXFP4" if len(dims) > 2 else "Q8_0"
        wanted = self._wanted_type(name)
        return _FALLBACKS[wanted] if dims[0] % TYPES[wanted][1] else wanted

    def _wanted_type(self, name: str) -> str:
        part = name.split(".")[-2]
        if part == "output" or (part == "token_embd" and self.is_tied):
            return "Q6_K"
        if part in {"attn_v", "attn_v_b"}:
            earlier = sum(f".{part}.weight" in tensor.name for tensor in self.tensors)
            wanted = "Q6_K" if self._has_more_bits(earlier) else "Q5_K" if self.has_wide_values else "Q4_K"
            return "Q8_0" if self.experts == 8 else wanted
        if part == "attn_k" and self.experts == 8:
            return "Q8_0"
        if part == "attn_output" and self.experts == 8:
            return "Q5_K"
        if part == "attn_qkv":
            return "Q5_K"
        if part in {"ffn_down", "ffn_down_exps", "ffn_down_shexp"} and self._has_more_bits(int(name.split(".")[1])):
            return "Q6_K"
        return "Q4_K"

    def _has_more_bits(self, layer: int) -> bool:
        eighth = self.layers // 8
        return layer < eighth or layer >= 7 * self.layers // 8 or (layer - eighth) % 3 == 2


def tensor_entries(tensors: Sequence[Tensor]) -> tuple[bytes, int]:
    """Return what the header says of the tensors, and the bytes of their data."""
    made, offset = [], 0
    for tensor in tensors:
        made.append(gguf_files.tensor(tensor.name, tensor.dims, TYPES[tensor.type][0], offset))
        offset += tensor.size_bytes + -tensor.size_bytes % gguf_files.ALIGNMENT
    return b"".join(made), offset


def _entry(key: str, value: Value) -> bytes:
    if isinstance(value, str):
        return gguf_files.string_entry(key, value)
    if isinstance(value, bool):
        return gguf_files.entry(key, gguf_files.BOOL, bytes([value]))
    if isinstance(value, int):
        return gguf_files.entry(key, gguf_files.U32, u32(value))
    if isinstance(value, float):
        return gguf_files.entry(key, gguf_files.F32, struct.pack("<f", value))
    if all(isinstance(item, bool) for item in value):
        return gguf_files.array_entry(key, gguf_files.BOOL, len(value), bytes(value))
    return gguf_files.array_entry(key, gguf_files.I32, len(value), struct.pack(f"<{len(value)}i", *value))


def _words_entry(key: str, words: Sequence[bytes]) -> bytes:
    lengths = {length: u64(length) for length in {len(word) for word in words}}
    return text(key) + u32(9) + u32(8) + u64(len(words)) + b"".join([lengths[len(word)] + word for word in words])


# A vocabulary's words are some 6.6 bytes long, its merges some 11 with the space between their halves.
_WORD_LENGTHS = (4, 5, 6, 6, 7, 8, 9, 8)
_MERGE_LENGTHS = (7, 9, 11, 12, 13, 14)


def _long_words(count: int) -> list[bytes]:
    return [(b"%x" % number).rjust(_WORD_LENGTHS[number % len(_WORD_LENGTHS)], b"g") for number in range(1, count + 1)]


def _merges(count: int) -> list[bytes]:
    halves = ((b"%x" % number).rjust(_MERGE_LENGTHS[number % 6] - 3, b"g") for number in range(count))
    return [half + b" ab" for half in halves]
