"""A model in safetensors: a folder with config.json and one file, or an index and its shards, checked without weights.

Knows no engine and no architecture. Opens what the index names and nothing else: files that can run code when they
are opened are left alone whatever they are called. The sentences of HeaderError stay English, as in gguf_header.py.
References: https://github.com/huggingface/safetensors and the index of transformers' save_pretrained().
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import msgspec

from app.models.bounded_json import check_values, decode_typed, read_whole
from app.models.byte_source import HeaderError, is_pickle, open_file
from app.models.gguf_checks import shown
from app.models.safetensors_config import MAX_CONFIG_BYTES, code_request, parse_config
from app.models.safetensors_quantization import QuantizationFacts, quantization_facts
from app.models.safetensors_tensors import SafeTensor, read_tensors
from backends.errors import ErrorCode

__all__ = ["HeaderError", "QuantizationFacts", "SafeTensor", "SafetensorsModel", "is_shard", "read_safetensors"]

INDEX_NAME = "model.safetensors.index.json"
SINGLE_NAME = "model.safetensors"
CONFIG_NAME = "config.json"
MAX_INDEX_BYTES = 64 * 2**20  # 91,000 tensors take 8 MB
MAX_TENSORS = 524_288  # of all shards together
MAX_SHARDS = 1_000
MAX_FOLDER_ENTRIES = 10_000
_SHARD = re.compile(r".+-[0-9]{5}-of-[0-9]{5}\.safetensors", re.DOTALL)


@dataclass(frozen=True, slots=True)
class SafetensorsModel:
    """A safetensors model on disk.

    Attributes:
        tensors: of all files, in the order of the parts and of the places in each.
        config: what config.json says; its numbers are checked, nested objects are plain dicts.
        quantization: what its quantization_config says; None without one.
        parts: the weight files in the order of their names.
        size_bytes: of all parts together.
        runs_code: what in config.json asks for code that its maker wrote, such as "auto_map"; "" when nothing does.
            Such a model is listed with this as its fault and never loaded.
    """

    tensors: tuple[SafeTensor, ...]
    config: Mapping[str, object]
    quantization: QuantizationFacts | None
    parts: tuple[Path, ...]
    size_bytes: int
    runs_code: str

    @property
    def architecture(self) -> str:
        """The kind of model in transformers' words, such as "llama"; "" when config.json does not say."""
        found = self.config.get("model_type")
        return found if isinstance(found, str) else ""

    @property
    def tensor_bytes(self) -> int:
        """What all tensors take."""
        return sum(tensor.size_bytes for tensor in self.tensors)


class _Index(msgspec.Struct):
    """What we read of an index."""

    weight_map: dict[str, str]


_INDEX = msgspec.json.Decoder(_Index)


def is_shard(path: Path) -> bool:
    """Return whether a file is called like a part of a larger safetensors model; asks the name alone."""
    return _SHARD.fullmatch(path.name) is not None


def read_safetensors(folder_or_file: Path) -> SafetensorsModel:
    """Return the model in a folder, or the one that a safetensors file is or belongs to.

    Raises:
        HeaderError: a header is not to be trusted, a shard or config.json is missing, or there is no such model.
    """
    single = None if folder_or_file.is_dir() else folder_or_file
    folder = folder_or_file if single is None else single.parent
    if single is not None and is_shard(single):
        single = None  # the index knows the others
    # Where a folder has both, transformers takes the single file.
    has_single = single is not None or os.path.lexists(folder / SINGLE_NAME)
    if not has_single and os.path.lexists(folder / INDEX_NAME):
        parts, tensors, size_bytes = _read_shards(folder)
    else:
        path = single or _single_file(folder)
        parts = (path,)
        tensors, size_bytes = _read_part(path)
    if not tensors:
        raise HeaderError("The files hold no weights.")
    config = _read_config(folder)
    return SafetensorsModel(
        tensors, MappingProxyType(config), quantization_facts(config), parts, size_bytes, code_request(config)
    )


def _single_file(folder: Path) -> Path:
    """Return the one weight file of a folder without an index."""
    names = _names_in(folder)
    if SINGLE_NAME in names:
        return folder / SINGLE_NAME
    weights = [name for name in names if name.endswith(".safetensors")]
    if any(_SHARD.fullmatch(name) for name in weights):
        raise HeaderError(f"The list of the model's parts is missing: {INDEX_NAME}.")
    if len(weights) == 1:
        return folder / weights[0]
    if weights:
        raise HeaderError(f"The folder holds {len(weights):,} safetensors files and no {INDEX_NAME}.")
    pickle = next((name for name in names if is_pickle(Path(name))), None)
    if pickle is not None:
        raise HeaderError(
            f"The weights are in files that can run code when they are opened ({shown(pickle)}), so Cutaway never "
            "opens them.",
            ErrorCode.NOT_A_MODEL,
        )
    raise HeaderError("The folder holds no safetensors file.", ErrorCode.NOT_A_MODEL)


def _names_in(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry, _count in zip(entries, range(MAX_FOLDER_ENTRIES), strict=False)]
    except (OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            raise HeaderError("There is no such folder.", ErrorCode.FILE_MISSING) from error
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise HeaderError(f"The folder could not be read: {reason}.", ErrorCode.FILE_UNREADABLE) from error
    return sorted(names)


def _read_part(path: Path) -> tuple[tuple[SafeTensor, ...], int]:
    """Return the tensors of one file and its size."""
    source = open_file(path)
    try:
        return read_tensors(source), source.size_bytes
    finally:
        source.close()


def _read_small(path: Path, max_bytes: int) -> bytes:
    source = open_file(path)
    try:
        return read_whole(source, path.name, max_bytes)
    finally:
        source.close()


def _read_config(folder: Path) -> dict[str, object]:
    try:
        data = _read_small(folder / CONFIG_NAME, MAX_CONFIG_BYTES)
    except HeaderError as error:
        if error.code is ErrorCode.FILE_MISSING:
            raise HeaderError(f"There is no {CONFIG_NAME}, so nothing says what kind of model this is.") from error
        raise HeaderError(f"{CONFIG_NAME}: {error}", error.code) from error
    return parse_config(data)


def _read_index(folder: Path) -> dict[str, str]:
    """Return which shard each tensor lies in."""
    try:
        data = _read_small(folder / INDEX_NAME, MAX_INDEX_BYTES)
    except HeaderError as error:
        raise HeaderError(f"{INDEX_NAME}: {error}") from error
    return parse_index(data)


def parse_index(data: bytes) -> dict[str, str]:
    """Return which shard each tensor lies in, by the text of an index.

    Raises:
        HeaderError: it is none, or names what no shard may be called.
    """
    check_values(data, INDEX_NAME, 2 * MAX_TENSORS)
    places = decode_typed(data, INDEX_NAME, _INDEX).weight_map
    if not places or len(places) > MAX_TENSORS:
        raise HeaderError(f"{INDEX_NAME} lists {len(places):,} tensors; 1 to {MAX_TENSORS:,} are allowed.")
    names = set(places.values())
    if len(names) > MAX_SHARDS:
        raise HeaderError(f"{INDEX_NAME} names {len(names):,} files; at most {MAX_SHARDS:,} are allowed.")
    for name in names:
        if not _is_plain_name(name):
            raise HeaderError(f"{INDEX_NAME} names a file that no shard may be called: {shown(name)}.")
    return places


def _is_plain_name(name: str) -> bool:
    """Return whether a name stays in its folder on every system and is that of a safetensors file."""
    return (
        name.endswith(".safetensors")
        and len(name.encode(errors="replace")) <= 255
        and not any(mark in name for mark in "/\\:")
        and not name.startswith(".")
        and name.isprintable()
    )


def _read_shards(folder: Path) -> tuple[tuple[Path, ...], tuple[SafeTensor, ...], int]:
    places = _read_index(folder)
    names = sorted(set(places.values()))
    _check_all_there(folder, names)
    tensors: list[SafeTensor] = []
    found: dict[str, str] = {}
    size_bytes = 0
    for name in names:
        try:
            read, file_bytes = _read_part(folder / name)
        except HeaderError as error:
            code = error.code if error.code is ErrorCode.FILE_UNREADABLE else ErrorCode.HEADER_INVALID
            raise HeaderError(f"{shown(name)}: {error}", code) from error
        for tensor in read:
            if tensor.name in found:
                raise HeaderError(f"The tensor {shown(tensor.name)} stands in {shown(found[tensor.name])} and again.")
            found[tensor.name] = name
        tensors += read
        size_bytes += file_bytes
        if len(tensors) > MAX_TENSORS:
            raise HeaderError(f"The shards hold more than {MAX_TENSORS:,} tensors.")
    _check_index(places, found)
    return tuple(folder / name for name in names), tuple(tensors), size_bytes


def _check_all_there(folder: Path, names: Sequence[str]) -> None:
    missing = [name for name in names if not os.path.exists(folder / name)]  # noqa: PTH110 - Path.exists() may raise
    if len(missing) == 1:
        raise HeaderError(f"Shard {names.index(missing[0]) + 1:,} of {len(names):,} is missing: {missing[0]}.")
    if missing:
        raise HeaderError(f"{len(missing):,} of {len(names):,} shards are missing; the first is {missing[0]}.")


def _check_index(places: Mapping[str, str], found: Mapping[str, str]) -> None:
    """Refuse an index that lies; a tensor that it does not name is nobody's harm."""
    for tensor, name in places.items():
        if tensor not in found:
            raise HeaderError(f"The tensor {shown(tensor)} is in none of the files; {INDEX_NAME} names {shown(name)}.")
        if found[tensor] != name:
            raise HeaderError(
                f"The tensor {shown(tensor)} is in {shown(found[tensor])}, and {INDEX_NAME} says {shown(name)}."
            )
