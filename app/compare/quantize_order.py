"""What a person orders: some quantizations of one model, perhaps with an importance matrix; done one after the other.

The window and the command line are two faces of this. What is made goes into the library; a warning about its source
becomes its note there, unless the person wrote one.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from app.compare.plan import TextSpec
from app.compare.quantize_words import lost_words, requantized_words
from app.compare.quantizing import Made, Phase, QuantizeError, Quantizer, Wish, check_room, check_target, target_path
from app.compare.texts import own_text, read_text
from app.errors import AppError, app_error, one_line
from app.models.entry import ModelEntry
from app.models.library import Library
from backends.errors import ErrorCode

OnProgress = Callable[[str, Phase, float], None]

_GGUF: Final = b"GGUF"
_IMATRIX_ENDINGS: Final = (".dat", ".imatrix", ".gguf")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizeOrder:
    """What is wanted.

    Attributes:
        source: the model.
        quantizations: by name, in the order in which they are made.
        folder: where the files go.
        importance: an importance matrix, or a text to make one from; None for none.
        allow_requantize: whether the source may be quantized already.
        threads: 0 for the engine's choice.
    """

    source: ModelEntry
    quantizations: tuple[str, ...]
    folder: Path
    importance: Path | TextSpec | None = None
    allow_requantize: bool = False
    threads: int = 0

    def target(self, quantization: str) -> Path:
        """Return where a quantization goes."""
        return target_path(self.folder, self.source.name, quantization)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of an order.

    Attributes:
        made: what was made, in order.
        entries: of the library, likewise.
        importance_path: the importance matrix that was made from a text; None for none.
    """

    made: tuple[Made, ...]
    entries: tuple[ModelEntry, ...]
    importance_path: Path | None = None


def importance_of(path: Path) -> Path | TextSpec:
    """Return what a file is: an importance matrix, or a text to make one from; raises TextError."""
    path = path.expanduser().absolute()
    with contextlib.suppress(OSError), path.open("rb") as file:
        if file.read(len(_GGUF)) == _GGUF or path.suffix.lower() in _IMATRIX_ENDINGS:
            return path
    return own_text(path)


def carry_out(order: QuantizeOrder, library: Library, quantizer: Quantizer, on_progress: OnProgress) -> Outcome:
    """Make everything that is ordered; what was made before one that fails or is cancelled stays.

    Args:
        order: what is wanted.
        library: takes what is made.
        quantizer: makes it.
        on_progress: told which quantization is at what, and how far that is; "" for what serves all of them.

    Raises:
        AppError: why it could not be done; the words say so.
        StoppedError: it was cancelled.
    """
    _check(order, quantizer)
    importance, own_matrix = _importance(order, quantizer, on_progress)
    made: list[Made] = []
    entries: list[ModelEntry] = []
    is_whole = False
    try:
        for quantization in order.quantizations:
            wish = Wish(
                source=order.source.path,
                quantization=quantization,
                target=order.target(quantization),
                importance=importance,
                allow_requantize=order.allow_requantize,
                threads=order.threads,
            )
            made.append(quantizer.make(wish, functools.partial(on_progress, quantization)))
            entries.append(_taken(library, made[-1]))
        is_whole = True
    finally:
        if own_matrix is not None and not is_whole and not made:
            with contextlib.suppress(OSError):
                own_matrix.unlink()
    return Outcome(tuple(made), tuple(entries), own_matrix)


def _check(order: QuantizeOrder, quantizer: Quantizer) -> None:
    """Refuse what cannot be done before hours are spent on its beginning."""
    if not order.folder.is_dir():
        raise QuantizeError(lost_words(order.folder))
    for quantization in order.quantizations:
        check_target(order.target(quantization))
    importance = order.importance if isinstance(order.importance, Path) else None
    planned = quantizer.plan(order.source.path, order.quantizations, importance)
    for one in planned:
        if one.fault is not None:
            raise QuantizeError(one.fault)
        if one.needs_importance and order.importance is None:
            raise app_error(ErrorCode.IMPORTANCE_NEEDED, {"quantization": one.quantization})
    check_room(sum(one.size_bytes for one in planned), order.folder)


def _importance(order: QuantizeOrder, quantizer: Quantizer, on_progress: OnProgress) -> tuple[Path | None, Path | None]:
    """Return the importance matrix to use, and the same where it was made here."""
    if not isinstance(order.importance, TextSpec):
        return order.importance, None
    path = order.folder / f"{order.source.name}-{order.importance.text_id}-imatrix.gguf"
    name = one_line(order.importance.title or order.importance.text_id, 80)
    quantizer.measure_importance(
        order.source.path,
        read_text(order.importance),
        name,
        path,
        functools.partial(on_progress, ""),
    )
    return path, path


def _taken(library: Library, made: Made) -> ModelEntry:
    """Put a new file into the library, with the warning that it carries."""
    entry = library.import_path(made.path)
    if made.planned.requantized_from and not entry.note:
        with contextlib.suppress(AppError):  # the file says it too
            library.set_note(entry.key, requantized_words(made.planned.requantized_from))
            entry = library.find(entry.key)
    return entry


def names_of(made: Sequence[Made]) -> list[str]:
    """Return the quantizations that were made."""
    return [one.planned.quantization for one in made]
