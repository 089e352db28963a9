"""What the header of a GGUF file says, as plain values: metadata, tensors and the facts made of them.

Knows no file and checks nothing; app/models/gguf_header.py reads and checks.
Reference: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from app.models.ggml_types import FILE_TYPES

_GUESSED_FILE_TYPE = 1024  # a flag of llama.cpp on top of the file type

Scalar = bool | int | float


@dataclass(frozen=True, slots=True)
class ArrayNote:
    """A value that was passed over.

    Attributes:
        type: the type of its elements, such as "string"; "text" for one very long text.
        length: the number of elements, or the bytes of the text.
    """

    type: str
    length: int


Value = Scalar | str | tuple[Scalar, ...] | ArrayNote


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One tensor of the file.

    Attributes:
        name: such as "blk.0.attn_q.weight".
        dims: the number of weights along each axis, row length first, as the file has it.
        type_name: how its weights are stored, such as "Q4_K".
        offset: where it begins, counted from the header's data_offset.
        size_bytes: what it takes.
    """

    name: str
    dims: tuple[int, ...]
    type_name: str
    offset: int
    size_bytes: int

    @property
    def elements(self) -> int:
        """The number of weights."""
        product = 1
        for dim in self.dims:
            product *= dim
        return product


@dataclass(frozen=True, slots=True)
class GgufHeader:
    """What a GGUF file says about itself, checked against the size of the file.

    Attributes:
        version: of the format, 2 or 3.
        alignment: tensors begin at multiples of it.
        metadata: the keys and values; long ones are an ArrayNote.
        tensors: in the order of the file.
        data_offset: where in the file the tensors begin.
        file_bytes: the size of the file.
    """

    version: int
    alignment: int
    metadata: Mapping[str, Value]
    tensors: tuple[TensorInfo, ...]
    data_offset: int
    file_bytes: int

    @property
    def architecture(self) -> str:
        """The model's architecture, such as "llama"."""
        return self.text("general.architecture")

    @property
    def name(self) -> str:
        """The model's own name as its maker wrote it; "" without one."""
        return self.text("general.name")

    @property
    def context_length(self) -> int:
        """The tokens the model was trained for; 0 when the file does not say."""
        return self.number(f"{self.architecture}.context_length")

    @property
    def block_count(self) -> int:
        """The number of layers; 0 when the file does not say."""
        return self.number(f"{self.architecture}.block_count")

    @property
    def chat_template(self) -> str:
        """The Jinja chat template; "" without one."""
        return self.text("tokenizer.chat_template")

    @property
    def parameters_count(self) -> int:
        """The number of weights in all tensors."""
        return sum(tensor.elements for tensor in self.tensors)

    @property
    def tensor_bytes(self) -> int:
        """What all tensors take in the file, without the gaps of the alignment."""
        return sum(tensor.size_bytes for tensor in self.tensors)

    @property
    def quantization(self) -> str:
        """How the weights are stored: the file's own label, else the type that holds most of the weights."""
        label = FILE_TYPES.get(self.number("general.file_type", absent=-1) & ~_GUESSED_FILE_TYPE)
        if label:
            return label
        weights: Counter[str] = Counter()
        for tensor in self.tensors:
            weights[tensor.type_name] += tensor.elements
        return weights.most_common(1)[0][0] if weights else ""

    def text(self, key: str) -> str:
        """Return the text under this key; "" when there is none."""
        value = self.metadata.get(key)
        return value if isinstance(value, str) else ""

    def number(self, key: str, absent: int = 0) -> int:
        """Return the whole number under this key; `absent` when there is none."""
        value = self.metadata.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) else absent
