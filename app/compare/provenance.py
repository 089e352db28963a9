"""Whether the weights of a reference are its own, or were made from a quantization.

Weights that were quantized once lie on a coarse grid for ever, whatever type they are written in afterwards: a
comparison with such a reference flatters the quantizations of the same grid (quant.md, "The reference must be real").
Looks at a sample of some matrices; reads the files, never maps them: a mapped file that shrinks kills the process.
Knows no engine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from app.compare import weight_grid
from app.errors import one_line
from app.i18n import _
from app.models.byte_source import ByteSource, HeaderError, open_file
from app.models.gguf_header import read_header, read_part
from app.models.safetensors_header import read_safetensors
from app.models.safetensors_tensors import read_tensors
from app.models.split_set import part_name

# Written into files that were quantized here from a source that was quantized already; its value names that source.
REQUANTIZED_KEY = "cutaway.requantized_from"

MATRICES = 6  # of a model, spread over its length
PIECES = 4  # of a matrix, spread over its rows
PIECE_ROWS = 64
PIECE_ELEMENTS = 32_768
_GOLDEN = 0.618034
_SUFFICIENT = 0.5  # of the matrices looked at: mixtures hold some matrices in other types than most
_ROWS = 32  # rows of a matrix must be whole blocks of this many weights
_NUMPY: dict[str, str] = {"F32": "<f4", "F16": "<f2", "BF16": "<u2"}


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where the weights of a model come from, as far as they tell.

    Attributes:
        is_requantized: whether they were made from a quantization.
        detail: what was found, a sentence or two; a doubt where nothing could be found out; "" where all is well.
        is_known: whether there was anything to look at: the weights of a quantization tell nothing.
    """

    is_requantized: bool
    detail: str = ""
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class _Matrix:
    """A matrix in a file: where it begins and how it is stored."""

    path: Path
    name: str
    offset: int
    row_elements: int
    rows: int
    type_name: str


def check_file(path: Path) -> Provenance:
    """Look at a model's weights, a GGUF or a folder of safetensors; takes some hundredths of a second.

    Never raises for a file that is damaged or gone: that is a doubt, in words.
    """
    try:
        if path.is_dir() or path.suffix == ".safetensors":
            source, matrices = "", _safetensors_matrices(path)
        else:
            source, matrices = _gguf_matrices(path)
        if source:
            words = _("The file says that it was made from a quantization ({source}), not from the original weights.")
            return Provenance(True, words.format(source=one_line(source, 60)))
        return _judge(matrices)
    except HeaderError as error:
        words = _("Whether these are the original weights could not be found out: {reason}")
        return Provenance(False, words.format(reason=one_line(str(error))), is_known=False)
    except OSError as error:
        words = _("Whether these are the original weights could not be found out: {reason}")
        return Provenance(False, words.format(reason=one_line(error.strerror or str(error))), is_known=False)


def _judge(matrices: Sequence[_Matrix]) -> Provenance:
    """Look at the weights of some matrices that are stored in 16 or 32 bits."""
    found = [_grid_of(matrix) for matrix in _spread(matrices, MATRICES)]
    judged = [grid for grid in found if grid is not None]
    if not judged:
        return Provenance(False, is_known=False)
    coarse = [grid for grid in judged if grid.bits]
    if len(coarse) < _SUFFICIENT * len(judged):
        return Provenance(False)
    most = Counter(coarse).most_common(1)[0][0]
    if most.is_few_values:
        words = _(
            "In {count} of {total} matrices looked at, weights were rounded to few values ({bits} bits: at most 16 in "
            "a block of 32). They were made from a quantization, not from the original weights."
        )
    else:
        words = _(
            "In {count} of {total} matrices looked at, weights lie on an even grid ({bits} bits). They were made from "
            "a quantization, not from the original weights."
        )
    return Provenance(True, words.format(count=len(coarse), total=len(judged), bits=most.bits))


def _grid_of(matrix: _Matrix) -> weight_grid.Grid | None:
    """Return the grid of a matrix; None where its sample says nothing, such as one of zeros."""
    wide = _NUMPY[matrix.type_name]
    width = np.dtype(wide).itemsize
    rows = min(PIECE_ROWS, matrix.rows, max(1, PIECE_ELEMENTS // matrix.row_elements))
    starts = sorted({round(share * (matrix.rows - rows) / (PIECES - 1)) for share in range(PIECES)})
    pieces: list[npt.NDArray[np.float32]] = []
    source = open_file(matrix.path)
    try:
        for first in starts:
            count = rows * min(matrix.row_elements, PIECE_ELEMENTS // _ROWS * _ROWS)
            data = source.read(matrix.offset + first * matrix.row_elements * width, count * width)
            if len(data) < count * width:
                raise HeaderError(f"The matrix {matrix.name} ends too early.")
            pieces.append(_floats(data, matrix.type_name).reshape(rows, -1))
    finally:
        source.close()
    return weight_grid.grid_of(np.concatenate(pieces))


def _floats(data: bytes, type_name: str) -> npt.NDArray[np.float32]:
    raw = np.frombuffer(data, _NUMPY[type_name])
    if type_name == "BF16":
        return (raw.astype(np.uint32) << 16).view(np.float32)
    return raw.astype(np.float32)


def _is_matrix(name: str, type_name: str, row_elements: int, rows: int) -> bool:
    """Return whether a tensor is a weight matrix whose values can be looked at."""
    is_weight = name.endswith("weight") and "norm" not in name
    return is_weight and type_name in _NUMPY and rows >= _ROWS and row_elements >= _ROWS and not row_elements % _ROWS


def _spread(matrices: Sequence[_Matrix], most: int) -> list[_Matrix]:
    """Return some matrices from all over the model; by golden steps, which follow no layer's pattern."""
    if len(matrices) <= most:
        return list(matrices)
    return [matrices[int(number * _GOLDEN % 1 * len(matrices))] for number in range(1, most + 1)]


# ------------------------------------------------------------------------------------------------------ files


def _gguf_matrices(path: Path) -> tuple[str, list[_Matrix]]:
    """Return what the file says of its source and the matrices of its parts; of many parts, some."""
    named = part_name(path.name)
    matrices: list[_Matrix] = []
    source = ""
    numbers = range(1, (named.num_parts if named is not None else 1) + 1)
    for number in {numbers[0], numbers[len(numbers) // 2], numbers[-1]}:
        part = path if named is None else path.with_name(named.of_part(number))
        header = read_header(part) if number == 1 else read_part(part)
        source = source or header.text(REQUANTIZED_KEY)
        for tensor in header.tensors:
            row_elements, rows = tensor.dims[0], tensor.elements // tensor.dims[0]
            if _is_matrix(tensor.name, tensor.type_name, row_elements, rows):
                place = header.data_offset + tensor.offset
                matrices.append(_Matrix(part, tensor.name, place, row_elements, rows, tensor.type_name))
    return source, matrices


def _safetensors_matrices(path: Path) -> list[_Matrix]:
    """Return the matrices of a folder's files; of many files, some. The headers are checked as a whole first."""
    model = read_safetensors(path)
    if model.quantization is not None:
        return []  # a quantization by its own words
    parts = model.parts
    matrices: list[_Matrix] = []
    for part in dict.fromkeys((parts[0], parts[len(parts) // 2], parts[-1])):
        source = open_file(part)
        try:
            matrices += _file_matrices(source, part)
        finally:
            source.close()
    return matrices


def _file_matrices(source: ByteSource, part: Path) -> list[_Matrix]:
    """Return a file's matrices; tensors lie one behind the other up to its end, which read_tensors() has checked."""
    tensors = read_tensors(source)
    place = source.size_bytes - sum(tensor.size_bytes for tensor in tensors)
    matrices = []
    for tensor in tensors:
        if len(tensor.dims) == 2:
            rows, row_elements = tensor.dims
            if _is_matrix(tensor.name, tensor.dtype, row_elements, rows):
                matrices.append(_Matrix(part, tensor.name, place, row_elements, rows, tensor.dtype))
        place += tensor.size_bytes
    return matrices
