"""A model folder before anything of it is loaded: which files, and whether they can be what they claim.

Only safetensors are ever opened as weights; files that run code when they are opened are left alone, whatever lies
beside them. A link may leave the folder only the way the hub cache links: from snapshots/ to blobs/ of one model.
References: trust.md S-06 to S-08.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import msgspec

from backends.errors import EngineError, ErrorCode
from backends.torch_engine.folder_config import check_config, damaged, parse_object
from backends.torch_engine.folder_headers import FileTensor, header_bytes, read_header

INDEX_NAME = "model.safetensors.index.json"
SINGLE_NAME = "model.safetensors"
PICKLE_SUFFIXES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".pickle", ".joblib", ".npy", ".npz", ".h5", ".msgpack")
MAX_CONFIG_BYTES = 8 * 2**20
MAX_INDEX_BYTES = 64 * 2**20
MAX_TOKENIZER_BYTES = 128 * 2**20  # Gemma's takes 33 MB
MAX_TEMPLATE_BYTES = 4 * 2**20
MAX_SHARDS = 1_000
MAX_FOLDER_ENTRIES = 10_000
_PLAIN_NAME = re.compile(r"[^/\\:\0-\x1f.][^/\\:\0-\x1f]{0,250}\.safetensors")
_SHARD = re.compile(r".+-[0-9]{5}-of-[0-9]{5}\.safetensors", re.DOTALL)


@dataclass(frozen=True, slots=True)
class CheckedFolder:
    """A folder whose files can be what they claim.

    Attributes:
        path: the folder.
        config: config.json; its numbers are checked, it asks for no code.
        generation: generation_config.json, {} without one.
        tokenizer_config: tokenizer_config.json, {} without one.
        tokenizer: tokenizer.json as it is.
        chat_template: "" when it brings none.
        tensors: every tensor of its weight files, by name.
    """

    path: Path
    config: Mapping[str, object]
    generation: Mapping[str, object]
    tokenizer_config: Mapping[str, object]
    tokenizer: bytes
    chat_template: str
    tensors: Mapping[str, FileTensor]

    @property
    def elements(self) -> int:
        """The number of elements of all tensors."""
        return sum(tensor.elements for tensor in self.tensors.values())

    @property
    def weight_bytes(self) -> int:
        """What all tensors take in the files."""
        return sum(tensor.size_bytes for tensor in self.tensors.values())


class _Index(msgspec.Struct):
    """What we read of an index."""

    weight_map: dict[str, str]


_INDEX = msgspec.json.Decoder(_Index)


def check_folder(path: Path) -> CheckedFolder:
    """Return what lies in a model folder; a weight file stands for the folder it lies in.

    Raises:
        EngineError: FILE_MISSING, FILE_UNREADABLE, NOT_A_MODEL, RUNS_CODE, UNKNOWN_ARCHITECTURE, WEIGHTS_UNSUPPORTED,
            NO_VOCABULARY or HEADER_INVALID.
    """
    if path.suffix.lower() in PICKLE_SUFFIXES:
        raise _pickles(path, path.name)
    chosen = path.name if path.suffix == ".safetensors" else ""
    folder = path.parent if chosen else path
    names = _names(folder)
    config = parse_object(_read(folder, "config.json", MAX_CONFIG_BYTES, names), "config.json", folder)
    check_config(config, folder)
    if "tokenizer.json" not in names:
        raise EngineError(ErrorCode.NO_VOCABULARY, path=str(folder))
    tensors = _read_tensors(folder, _weight_files(folder, names, chosen))
    tokenizer_config = _optional(folder, "tokenizer_config.json", names)
    return CheckedFolder(
        path=folder,
        config=MappingProxyType(config),
        generation=MappingProxyType(_optional(folder, "generation_config.json", names)),
        tokenizer_config=MappingProxyType(tokenizer_config),
        tokenizer=_read(folder, "tokenizer.json", MAX_TOKENIZER_BYTES, names),
        chat_template=_chat_template(folder, names, tokenizer_config),
        tensors=MappingProxyType(tensors),
    )


# --------------------------------------------------------------------------------------------- which files


def _names(folder: Path) -> frozenset[str]:
    try:
        with os.scandir(folder) as entries:
            names = frozenset(entry.name for entry, _n in zip(entries, range(MAX_FOLDER_ENTRIES), strict=False))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise EngineError(ErrorCode.FILE_MISSING, path=str(folder)) from error
    except (OSError, ValueError) as error:
        raise _unreadable(folder, error) from error
    if "config.json" not in names:
        raise EngineError(ErrorCode.NOT_A_MODEL, path=str(folder), detail="there is no config.json in it")
    return names


def _weight_files(folder: Path, names: frozenset[str], chosen: str) -> dict[str, frozenset[str]]:
    """Return the names of the weight files, each with the tensors that the index says lie in it (none: not said)."""
    if chosen and not _SHARD.fullmatch(chosen):
        return {chosen: frozenset()}
    if SINGLE_NAME in names:
        return {SINGLE_NAME: frozenset()}
    if INDEX_NAME in names:
        return _read_index(folder, names)
    weights = sorted(name for name in names if name.endswith(".safetensors"))
    if len(weights) == 1 and not _SHARD.fullmatch(weights[0]):
        return {weights[0]: frozenset()}
    if weights:
        raise damaged(folder, f"the list of its parts is missing ({INDEX_NAME})")
    pickle = next((name for name in sorted(names) if name.lower().endswith(PICKLE_SUFFIXES)), None)
    if pickle is not None:
        raise _pickles(folder, pickle)
    raise EngineError(ErrorCode.NOT_A_MODEL, path=str(folder), detail="there is no safetensors file in it")


def _read_index(folder: Path, names: frozenset[str]) -> dict[str, frozenset[str]]:
    data = _read(folder, INDEX_NAME, MAX_INDEX_BYTES, names)
    try:
        places = _INDEX.decode(data).weight_map
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise damaged(folder, f"{INDEX_NAME} is not as the format wants it") from error
    files = sorted(set(places.values()))
    if not 1 <= len(files) <= MAX_SHARDS:
        raise damaged(folder, f"{INDEX_NAME} names {len(files):,} files")
    for name in files:
        if not _PLAIN_NAME.fullmatch(name):
            raise damaged(folder, f"{INDEX_NAME} names a file that no part may be called: {name[:80]!a}")
        if name not in names:
            raise damaged(folder, f"the part {name} is missing")
    told: dict[str, set[str]] = {name: set() for name in files}
    for tensor, name in places.items():
        told[name].add(tensor)
    return {name: frozenset(tensors) for name, tensors in told.items()}


def _read_tensors(folder: Path, files: Mapping[str, frozenset[str]]) -> dict[str, FileTensor]:
    tensors: dict[str, FileTensor] = {}
    for name, told in files.items():
        found = _read_part(folder, name)
        if twice := found.keys() & tensors.keys():
            raise damaged(folder, f"the tensor {min(twice)[:80]!a} stands in two of its parts")
        if told - found.keys():
            raise damaged(folder, f"the tensor {min(told - found.keys())[:80]!a} is not in {name}, where it should be")
        tensors |= found
    if not tensors:
        raise damaged(folder, "its files hold no weights")
    return tensors


def _read_part(folder: Path, name: str) -> dict[str, FileTensor]:
    path = folder / name
    with os.fdopen(_open(folder, name), "rb") as file:
        try:
            file_bytes = os.fstat(file.fileno()).st_size
            head = file.read(8)
            head += file.read(header_bytes(path, file_bytes, head, folder))
        except OSError as error:
            raise _unreadable(path, error) from error
    return read_header(path, file_bytes, head, folder)


# ---------------------------------------------------------------------------------------------- small files


def _chat_template(folder: Path, names: frozenset[str], tokenizer_config: Mapping[str, object]) -> str:
    """Return the template: of its own file, or of the tokenizer's config; among several, that called "default"."""
    if "chat_template.jinja" in names:
        return _read(folder, "chat_template.jinja", MAX_TEMPLATE_BYTES, names).decode(errors="replace")
    found = tokenizer_config.get("chat_template") or _optional(folder, "chat_template.json", names).get("chat_template")
    if isinstance(found, list):
        named = [one for one in found if isinstance(one, Mapping)]
        found = next((one.get("template") for one in named if one.get("name") == "default"), None)
    return found if isinstance(found, str) else ""


def _optional(folder: Path, name: str, names: frozenset[str]) -> dict[str, object]:
    return parse_object(_read(folder, name, MAX_CONFIG_BYTES, names), name, folder) if name in names else {}


def _read(folder: Path, name: str, limit_bytes: int, names: Iterable[str]) -> bytes:
    if name not in names:
        raise damaged(folder, f"{name} is missing")
    with os.fdopen(_open(folder, name), "rb") as file:
        try:
            data = file.read(limit_bytes + 1)
        except OSError as error:
            raise _unreadable(folder / name, error) from error
    if len(data) > limit_bytes:
        raise damaged(folder, f"{name} takes more than {limit_bytes:,} bytes")
    return data


def _open(folder: Path, name: str) -> int:
    """Open a regular file of the folder for reading and return its descriptor; a pipe or a device is no file."""
    path = folder / name
    try:
        check_inside(folder, path)
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        raise _unreadable(path, error) from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise EngineError(ErrorCode.FILE_UNREADABLE, path=str(path), detail="it is no ordinary file")
    return descriptor


def check_inside(folder: Path, path: Path) -> None:
    """Refuse a link that leads out of the folder.

    Raises:
        EngineError: FILE_UNREADABLE.
    """
    if not path.is_symlink():
        return
    real, home = path.resolve(), folder.resolve()
    if real.is_relative_to(home):
        return
    if home.parent.name == "snapshots" and real.parent == home.parent.parent / "blobs":
        return
    raise EngineError(ErrorCode.FILE_UNREADABLE, path=str(path), detail="it is a link that leads out of its folder")


def _pickles(path: Path, name: str) -> EngineError:
    detail = f"its weights are in files that can run code when they are opened ({name[:80]})"
    return EngineError(ErrorCode.NOT_A_MODEL, path=str(path), detail=detail)


def _unreadable(path: Path, error: OSError | ValueError) -> EngineError:
    if isinstance(error, FileNotFoundError):
        return EngineError(ErrorCode.FILE_MISSING, path=str(path))
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return EngineError(ErrorCode.FILE_UNREADABLE, path=str(path), detail=reason)
