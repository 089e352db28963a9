"""Files of well-known models without their weights: the true header in front of a hole of the true size.

They take no room on the disk, and llama.cpp accepts them as long as nothing is read of the weights (`no_alloc`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.helpers import gguf_files, shape_catalogue, shape_parts
from tests.helpers.gguf_files import u32, u64


@dataclass(frozen=True)
class ShapeFile:
    """One model's file.

    Attributes:
        name: such as "llama-3.1-8b".
        make: describes it; see Draft.
    """

    name: str
    make: Callable[[], shape_parts.Draft]

    def header(self, *, is_full: bool = False) -> bytes:
        """Return the file up to its weights.

        Args:
            is_full: whether its vocabulary is as large in bytes as the real one; else it has the right number of
                short words and one merge, which an engine reads faster.
        """
        draft = self.make()
        entries = draft.metadata(is_full=is_full)
        tensors, _size = shape_parts.tensor_entries(draft.tensors)
        head = b"GGUF" + u32(3) + u64(len(draft.tensors)) + u64(len(entries)) + b"".join(entries) + tensors
        return head + bytes(-len(head) % gguf_files.ALIGNMENT)

    @property
    def weights_bytes(self) -> int:
        """What all tensors take, without the padding between them."""
        return sum(tensor.size_bytes for tensor in self.make().tensors)

    @property
    def data_bytes(self) -> int:
        """What follows the header."""
        return shape_parts.tensor_entries(self.make().tensors)[1]

    @property
    def parameters_count(self) -> int:
        """How many weights there are."""
        return sum(tensor.elements for tensor in self.make().tensors)


class _Shapes(Mapping[str, ShapeFile]):
    """Every shape by its name."""

    def __getitem__(self, name: str) -> ShapeFile:
        return ShapeFile(name, shape_catalogue.MODELS[name])

    def __iter__(self) -> Iterator[str]:
        return iter(shape_catalogue.MODELS)

    def __len__(self) -> int:
        return len(shape_catalogue.MODELS)


SHAPES: Mapping[str, ShapeFile] = _Shapes()


def write_shape(name: str, folder: Path, *, is_full: bool = False) -> Path:
    """Write the file of this shape into the folder and return its path; for is_full see ShapeFile.header."""
    shape = SHAPES[name]
    header = shape.header(is_full=is_full)
    path = folder / f"{name}.gguf"
    path.write_bytes(header)
    os.truncate(path, len(header) + shape.data_bytes)
    return path
