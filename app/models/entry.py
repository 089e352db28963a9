"""A model of the library as the rest of the program sees it, and what a scan finds of one.

Plain values; knows no file and no database.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from app.models.shape import ModelShape

# Where a model was found. "imported": the person pointed at the file. "folder": our own models folder.
# "added": a folder that the person added.
Origin = Literal["starter", "imported", "folder", "huggingface", "lm_studio", "ollama", "jan", "gpt4all", "added"]
Format = Literal["gguf", "safetensors"]


class FoundModel(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What looking at one model on disk told; crosses the pipe from the scan child and is kept by the library.

    Attributes:
        path: the file an engine is given: a GGUF (of a split set the first part) or a folder of safetensors.
        origin: see Origin.
        format: see Format.
        parts: every file of the model, `path` among them where that is a file.
        name: for people, such as "SmolLM2-135M-Instruct"; the same for every quantization of a model.
        owner: who made or published it, one plain word; "" when unknown.
        quantization: such as "Q4_K_M"; "" when the header cannot be read.
        architecture: such as "llama"; "" likewise.
        size_bytes: all parts together, as they are on disk.
        parameters_count: the number of weights; 0 when unknown.
        context_tokens: what the model was trained for; 0 when unknown.
        bits_per_weight: effective, from the header: 8 x bytes of the tensors / weights; 0 when unknown.
        fallback_tensors: how many tensors are stored in another type than the quantization's name promises, because
            their rows are no whole blocks of it.
        has_importance_matrix: whether it was quantized with one.
        has_chat_template: whether the file brings one.
        projector_path: a vision projector (mmproj) found beside it; "" for none.
        projector_bytes: what its tensors take.
        stamp: changes when the size or time of change of any part does.
        identity: "provisional:" + hash of size, head and tail; "" when the file cannot be read.
        shape: for the fit; None when the header cannot be read.
        fault: why it cannot be used, in words for a person; "" when it can.
    """

    path: str
    origin: str = "imported"
    format: str = "gguf"
    parts: tuple[str, ...] = ()
    name: str = ""
    owner: str = ""
    quantization: str = ""
    architecture: str = ""
    size_bytes: int = 0
    parameters_count: int = 0
    context_tokens: int = 0
    bits_per_weight: float = 0.0
    fallback_tensors: int = 0
    has_importance_matrix: bool = False
    has_chat_template: bool = False
    projector_path: str = ""
    projector_bytes: int = 0
    stamp: str = ""
    identity: str = ""
    shape: ModelShape | None = None
    fault: str = ""


class ModelDefaults(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a person wants for one model; None leaves the settings' value. Bounds are those of the settings."""

    context_tokens: int | None = None
    kv_type: str | None = None
    threads: int | None = None
    temperature: float | None = None
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None
    repeat_penalty: float | None = None
    system_prompt: str | None = None
    backend: str | None = None


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One model of the library.

    Attributes:
        key: `owner/name:QUANT` or `name:QUANT`; unique in the library.
        name: for people, such as "SmolLM2-135M-Instruct".
        path: what an engine is given.
        origin: where it comes from.
        identity: "sha256:…" once its bytes were hashed, before that "provisional:…"; equal for copies.
        note: the person's own words.
        defaults: the person's choices for this model.
        The others are those of FoundModel.
    """

    key: str
    name: str
    path: Path
    quantization: str = ""
    architecture: str = ""
    size_bytes: int = 0
    parameters_count: int = 0
    context_tokens: int = 0
    origin: Origin = "imported"
    fault: str = ""
    format: Format = "gguf"
    owner: str = ""
    parts: tuple[Path, ...] = ()
    bits_per_weight: float = 0.0
    fallback_tensors: int = 0
    has_importance_matrix: bool = False
    has_chat_template: bool = False
    projector_path: Path | None = None
    projector_bytes: int = 0
    identity: str = ""
    shape: ModelShape | None = None
    note: str = ""
    defaults: ModelDefaults = field(default_factory=ModelDefaults)
