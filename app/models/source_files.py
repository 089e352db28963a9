"""Which files of a folder make up which model, told by their names.

Split sets are put together, vision projectors go to the models they belong to, folders of safetensors are known by
what lies in them. Opens nothing.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from app.i18n import _, ngettext
from app.models.model_name import file_name
from app.models.safetensors_header import INDEX_NAME, SINGLE_NAME, is_shard
from app.models.source_candidate import Candidate, is_file, is_folder, is_link, is_there
from app.models.split_set import part_name

_UNFINISHED = "incomplete-"  # how GPT4All calls a download that goes on
# A folder has two or three; more are somebody's collection, which is matched with nothing.
_MAX_PROJECTORS = 32
# In the folder of a file that a person points at.
_MAX_NEIGHBOURS = 20_000
# The one that loses nothing and takes least, first.
_PROJECTOR_TYPES = ("f16", "bf16", "q8", "f32")
_PROJECTOR_WORDS = re.compile(r"mm-?proj(ector)?|model", re.IGNORECASE)
_PICKLES = (".bin", ".pt", ".pth", ".ckpt")
_ADAPTER = "adapter_config.json"
# What a model of safetensors brings besides its weights.
_COMPANIONS = frozenset(
    {"config.json", "generation_config.json", "tokenizer.json", "tokenizer.model", "tokenizer_config.json"}
    | {"special_tokens_map.json", "added_tokens.json", "vocab.json", "merges.txt", "vocab.txt"}
    | {"chat_template.jinja", "chat_template.json", "preprocessor_config.json", "processor_config.json"}
    | {"quantize_config.json", "hf_quant_config.json", "quantization_config.json", _ADAPTER}
)


@dataclass
class _Set:
    """The parts of a split model that are there, by number."""

    count: int
    parts: dict[int, Path] = field(default_factory=dict)

    def missing(self) -> str:
        missing = self.count - len(self.parts)
        if missing <= 0:
            return ""
        number = next(number for number in range(1, self.count + 1) if number not in self.parts)
        words = ngettext(
            "Part {number} of {count} is missing. Put it into the folder of the others.",
            "{missing} of the {count} parts are missing, part {number} first. Put them into the folder of the others.",
            missing,
        )
        return words.format(number=number, count=self.count, missing=missing)


def is_model_file(name: str) -> bool:
    """Whether a file's name is that of a GGUF that is no download under way."""
    lower = name.lower()
    return lower.endswith(".gguf") and not lower.startswith((".", _UNFINISHED))


def is_projector(name: str) -> bool:
    """Whether a GGUF's name is that of a vision projector."""
    return "mmproj" in name.lower()


def gguf_candidates(
    paths: Sequence[Path], origin: str, *, owner: str = "", name: str = ""
) -> tuple[list[Candidate], int]:
    """Return the models that these GGUF files are, and how many projectors belong to none of them.

    Args:
        paths: of one folder, or of one publication.
        origin: see entry.Origin.
        owner: who published them.
        name: of the publication; given to its models when they are quantizations of one.
    """
    projectors = [path for path in paths if is_projector(path.name)]
    models = _put_together([path for path in paths if not is_projector(path.name)], origin)
    if not models or not (projectors or name or owner):
        return models, len(projectors)
    called = {file_name(model.path).casefold() for model in models} if projectors or name else set()
    given_name = name if len(called) == 1 else ""
    models = [replace(model, owner=owner, name=given_name) for model in models]
    if not projectors or len(projectors) > _MAX_PROJECTORS:
        return models, len(projectors)
    projectors.sort(key=_projector_rank)
    with_eyes = [replace(model, projector=_projector_of(model, projectors, len(called))) for model in models]
    used = {model.projector for model in with_eyes}
    return with_eyes, sum(path not in used for path in projectors)


def _put_together(paths: Iterable[Path], origin: str) -> list[Candidate]:
    whole: list[Candidate] = []
    sets: dict[tuple[Path, str, int], _Set] = {}
    for path in paths:
        named = part_name(path.name)
        if named is None:
            whole.append(Candidate(path, origin, (path,)))
        else:
            found = sets.setdefault((path.parent, named.prefix, named.num_parts), _Set(named.num_parts))
            found.parts[named.part] = path
    for found in sets.values():
        parts = tuple(found.parts[number] for number in sorted(found.parts))
        whole.append(Candidate(parts[0], origin, parts, missing=found.missing()))
    return sorted(whole, key=lambda model: model.path)


def _projector_rank(path: Path) -> tuple[int, str]:
    words = re.split(r"[-_.]", path.stem.lower())
    ranks = [rank for rank, label in enumerate(_PROJECTOR_TYPES) if label in words]
    return (min(ranks, default=len(_PROJECTOR_TYPES)), path.name)


def _projector_of(model: Candidate, projectors: Sequence[Path], names_count: int) -> Path | None:
    """Return the best projector that names this model; one that names none goes to the quantizations of one model."""
    called = _squeezed(file_name(model.path))
    fallback: Path | None = None
    for path in projectors:
        subject = _squeezed(_PROJECTOR_WORDS.sub("", file_name(path)))
        if subject in ("", *_PROJECTOR_TYPES):
            fallback = fallback or (path if names_count == 1 else None)
        elif called.startswith(subject) or subject.startswith(called):
            return path
    return fallback


def _squeezed(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.casefold())


def safetensors_candidate(folder: Path, names: Collection[str], origin: str) -> Candidate | None:
    """Return the model that a folder of safetensors is; None when it is none.

    Args:
        folder: where it lies.
        names: of the files in it, links included.
        origin: see entry.Origin.
    """
    if not {"config.json", _ADAPTER} & set(names) or "model_index.json" in names:
        return None  # pictures' models are made of several folders, and their weights alone say nothing
    weights = {name for name in names if name.lower().endswith(".safetensors")}
    indexes = {name for name in names if name.lower().endswith(".safetensors.index.json")}
    pickles = {name for name in names if name.lower().endswith(_PICKLES) and name.startswith(("pytorch_", "model"))}
    if not weights and not indexes and not pickles:
        return None
    parts = sorted({*_used(weights, indexes), *(_COMPANIONS & set(names))})
    found = Candidate(folder, origin, tuple(folder / name for name in parts), format="safetensors")
    if _ADAPTER in names and "config.json" not in names:
        return replace(found, fault=adapter_fault(), is_fault_lasting=True)
    if not weights and not indexes:
        found = replace(found, parts=tuple(folder / name for name in sorted({"config.json"} | pickles)))
        return replace(found, fault=_pickle_fault(), is_fault_lasting=True)
    return found


def _used(weights: set[str], indexes: set[str]) -> set[str]:
    """Return the weight files that make up the model, and its index; some folders hold the same weights twice."""
    if SINGLE_NAME in weights:
        return {SINGLE_NAME}
    if INDEX_NAME in indexes:
        return {INDEX_NAME} | ({name for name in weights if is_shard(Path(name))} or weights)
    return weights | indexes


def adapter_fault() -> str:
    """Return why an adapter cannot be used, in words."""
    return _("This is an adapter (LoRA), a change to another model. It cannot be used alone.")


def _pickle_fault() -> str:
    return _(
        "This folder holds its weights as pickles only, which can run code when they are opened, so Cutaway never opens"
        " them. Look for the same model as safetensors or GGUF."
    )


def by_folder(paths: Iterable[Path]) -> Mapping[Path, list[Path]]:
    """Return files by the folder that they lie in, in their order."""
    folders: dict[Path, list[Path]] = {}
    for path in paths:
        folders.setdefault(path.parent, []).append(path)
    return folders


def candidate_at(path: Path, origin: str, *, name: str = "", owner: str = "") -> Candidate:
    """Return the model that a person points at: a GGUF, any part of a split set, safetensors or their folder."""
    alone = Candidate(path, origin, (path,), name=name, owner=owner)
    if path.name.lower().endswith((".safetensors", ".safetensors.index.json")) and is_file(path):
        found = safetensors_candidate(path.parent, _names(path.parent), origin)
        words = _("There is no config.json beside this file, so nothing says what kind of model it is.")
        return replace(found, name=name, owner=owner) if found else replace(alone, format="safetensors", fault=words)
    if is_folder(path):
        found = safetensors_candidate(path, _names(path), origin)
        words = _("This folder holds no model of safetensors. Choose the model file in it, or add the folder.")
        return replace(found, name=name, owner=owner) if found else replace(alone, parts=(), fault=words)
    if is_link(path) and not is_there(path):
        return replace(alone, fault=_("This link leads to a file that is not there."))
    if not is_model_file(path.name) or is_projector(path.name):
        return alone
    beside = [path.parent / other for other in sorted({*_names(path.parent), path.name}) if is_model_file(other)]
    models, _lone = gguf_candidates(beside, origin)
    own = next((model for model in models if path in model.parts), alone)
    return replace(own, name=name, owner=owner)


def _names(folder: Path) -> list[str]:
    """Return the names in a folder, few enough to be looked at; none when it cannot be listed."""
    try:
        with os.scandir(folder) as listing:
            return [entry.name for entry in itertools.islice(listing, _MAX_NEIGHBOURS)]
    except (OSError, ValueError):
        return []
