"""A repo's files as the rows of its table: what can be loaded, each with all files that belong to it.

Sets in several parts become one row, vision projectors and helpers are put aside, a safetensors model with its config
and tokenizer is one row, and files that can run code when they are opened are never part of any. Pure: knows paths and
sizes, no header and no network.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from app.downloads.types import FileRef
from app.hub.file_names import ModelFile, known_quantization, model_file, quantization_in
from app.hub.types import QuantizationRow
from app.i18n import _
from app.models.quantization import quantization_rank

MAX_ROWS = 500
INDEX_NAME = "model.safetensors.index.json"
CONFIG_NAME = "config.json"
_SHARD = re.compile(r"(?P<prefix>.+)-(?P<part>[0-9]{5})-of-(?P<count>[0-9]{5})\.safetensors", re.DOTALL)
# What a safetensors model needs beside its weights.
_COMPANIONS = frozenset(
    {
        *(CONFIG_NAME, INDEX_NAME, "generation_config.json", "quantize_config.json", "quant_config.json"),
        *("quantization_config.json", "hf_quant_config.json", "tokenizer.json", "tokenizer_config.json"),
        *("tokenizer.model", "special_tokens_map.json", "added_tokens.json", "vocab.json", "vocab.txt", "merges.txt"),
        *("chat_template.jinja", "chat_template.json", "preprocessor_config.json", "processor_config.json"),
        *("tekken.json", "spiece.model"),
    }
)
# Types as safetensors call them -> the quantization's name.
_TYPE_NAMES: Mapping[str, str] = {"F8_E4M3": "FP8", "F8_E5M2": "FP8-E5M2", "I8": "int8", "F64": "F64"}


@dataclass(frozen=True, slots=True)
class Table:
    """A repo's files, sorted out.

    Attributes:
        rows: few bits first; what cannot be used comes last.
        projectors: vision projectors.
        others: everything else.
    """

    rows: tuple[QuantizationRow, ...]
    projectors: tuple[FileRef, ...]
    others: tuple[FileRef, ...]


@dataclass(slots=True)
class _Set:
    """The files of one GGUF model.

    Attributes:
        facts: what the names say.
        files: by their part.
    """

    facts: ModelFile
    files: dict[int, FileRef] = field(default_factory=dict)


def sort_files(files: Sequence[FileRef], repo_name: str = "", types: Mapping[str, int] | None = None) -> Table:
    """Return the table of a repo.

    Args:
        files: of one revision.
        repo_name: without its owner; it may name a safetensors model's quantization.
        types: how many weights of each type the hub counts in safetensors files.
    """
    sets: dict[str, _Set] = {}
    projectors: list[FileRef] = []
    rest: list[FileRef] = []
    for file in files:
        facts = model_file(file.path)
        if facts.role == "projector":
            projectors.append(file)
        elif facts.role == "other":
            rest.append(file)
        elif facts.role == "pieces":
            one = sets.setdefault(facts.set_key, _Set(facts))
            one.files[len(one.files) + 1] = file
        else:
            sets.setdefault(facts.set_key, _Set(facts)).files[facts.part] = file
    shown = list(sets.values())[:MAX_ROWS]
    rest += [file for one in list(sets.values())[MAX_ROWS:] for file in one.files.values()]
    rows = _with_keys([(one.facts, _gguf_row(one)) for one in shown])
    model, rest = _safetensors_row(rest, repo_name, types or {}, {row.key for row in rows})
    rows += [model] if model else []
    return Table(tuple(sorted(rows, key=_order)), tuple(projectors), tuple(rest))


def quantizations_of(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the quantizations that a repo's file names tell of, few bits first."""
    found = {facts.quantization for path in paths if (facts := model_file(path)).role == "model"}
    return tuple(sorted(found - {""}, key=quantization_rank))


# ------------------------------------------------------------------------------------------------------- GGUF


def _gguf_row(one: _Set) -> QuantizationRow:
    facts = one.facts
    files = tuple(one.files[part] for part in sorted(one.files))
    fault = ""
    if facts.role == "pieces":
        fault = _("This file was cut into pieces by hand. They must be joined before any program can read them.")
    elif missing := [part for part in range(1, facts.num_parts + 1) if part not in one.files]:
        fault = _("Part {part} of {count} is missing at the hub.").format(part=missing[0], count=facts.num_parts)
    elif any(file.size_bytes == 0 for file in files):
        fault = _("A file of it is empty at the hub.")
    return QuantizationRow(
        key=facts.quantization,
        quantization=facts.quantization,
        files=files,
        size_bytes=sum(file.size_bytes for file in files),
        state="failed" if fault else "unread",
        fault=fault,
        is_broken=bool(fault),
    )


def _with_keys(found: list[tuple[ModelFile, QuantizationRow]]) -> list[QuantizationRow]:
    """Return the rows, each with a key of its own: its quantization where that says enough."""
    counts = Counter(row.quantization for _facts, row in found)
    rows: list[QuantizationRow] = []
    used: set[str] = set()
    for facts, row in found:
        key = row.quantization
        if not key or counts[key] > 1:
            path = row.files[0].path
            name = path.rpartition("/")[2]
            key = facts.set_key.split("/")[-2] if facts.num_parts > 1 else re.sub(r"(?i)\.gguf.*$", "", name)
            key = key if key not in used else path
        used.add(key)
        rows.append(_renamed(row, key))
    return rows


def _renamed(row: QuantizationRow, key: str) -> QuantizationRow:
    return QuantizationRow(
        key=key,
        quantization=row.quantization,
        files=row.files,
        size_bytes=row.size_bytes,
        state=row.state,
        fault=row.fault,
        format=row.format,
        is_broken=row.is_broken,
    )


def _order(row: QuantizationRow) -> tuple[bool, float, int, str]:
    return row.is_broken, quantization_rank(row.quantization)[0], row.size_bytes, row.key


# ------------------------------------------------------------------------------------------------ safetensors


def _safetensors_row(
    files: Sequence[FileRef], repo_name: str, types: Mapping[str, int], used: set[str]
) -> tuple[QuantizationRow | None, list[FileRef]]:
    """Return the model in the repo's own folder, and what is no part of it."""
    weights, fault = _weights(files)
    if not weights:
        return None, list(files)
    companions = [file for file in files if file.path in _COMPANIONS]
    if not fault and all(file.path != CONFIG_NAME for file in companions):
        fault = _("There is no config.json, so nothing says what kind of model this is.")
    quantization = _safetensors_quantization(repo_name, types)
    own = (*weights, *companions)
    row = QuantizationRow(
        key=quantization if quantization and quantization not in used else "safetensors",
        quantization=quantization,
        files=own,
        size_bytes=sum(file.size_bytes for file in own),
        state="failed" if fault else "unread",
        fault=fault,
        format="safetensors",
        is_broken=bool(fault),
    )
    taken = {file.path for file in own}
    return row, [file for file in files if file.path not in taken]


def _weights(files: Sequence[FileRef]) -> tuple[list[FileRef], str]:
    """Return the weight files of a safetensors model, and what is wrong with them."""
    named = {file.path: file for file in files if "/" not in file.path and file.path.endswith(".safetensors")}
    if "model.safetensors" in named:
        return [named["model.safetensors"]], ""
    shards: dict[tuple[str, int], dict[int, FileRef]] = {}
    for path, file in named.items():
        if (match := _SHARD.fullmatch(path)) is not None:
            shards.setdefault((match["prefix"], int(match["count"])), {})[int(match["part"])] = file
    if shards:
        prefix, count = min(shards, key=lambda key: (key[0] != "model", -len(shards[key])))
        parts = shards[prefix, count]
        fault = ""
        if not 1 <= count <= 1_000 or sorted(parts) != list(range(1, count + 1)):
            missing = next((part for part in range(1, min(count, 1_000) + 1) if part not in parts), 0)
            fault = _("Part {part} of {count} is missing at the hub.").format(part=missing, count=count)
        elif all(file.path != INDEX_NAME for file in files):
            fault = _("The list of the model's parts is missing at the hub: {name}.").format(name=INDEX_NAME)
        return [parts[part] for part in sorted(parts)], fault
    models = [file for path, file in named.items() if "adapter" not in path.lower() and "lora" not in path.lower()]
    return (models, "") if len(models) == 1 else ([], "")


def _safetensors_quantization(repo_name: str, types: Mapping[str, int]) -> str:
    """Return how the weights are stored, as far as the repo's name or the hub's count tells."""
    for match in re.finditer(r"[-._]", repo_name):
        label = repo_name[match.end() :]
        if re.match(r"(?i)(awq|gptq|fp8|nvfp4|mxfp4|int[248]|w[48]a|bnb|exl|[48]bit)", label):
            return known_quantization(label) or quantization_in(repo_name)[0] or label
    if not types:
        return ""
    most = max(types, key=lambda name: types[name])
    return _TYPE_NAMES.get(most) or known_quantization(most) or most
