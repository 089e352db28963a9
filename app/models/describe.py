"""One model on disk, described from its header: what the library lists and what the fit is asked about.

Never raises and never opens what is no regular file. Says in words what is wrong with a model that cannot be used;
the details of HeaderError inside them stay English. Knows no library and no engine.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from app.errors import one_line
from app.i18n import _
from app.models.byte_source import HeaderError
from app.models.entry import FoundModel
from app.models.gguf_header import GgufHeader, read_header, read_part
from app.models.identity import FULL, provisional_identity
from app.models.model_name import file_name, model_name, model_owner, plain_name
from app.models.quantization import (
    bits_of_safetensors,
    effective_bits,
    fallback_tensors,
    has_importance_matrix,
    quantization_of_safetensors,
)
from app.models.safetensors_header import SafetensorsModel, read_safetensors
from app.models.shape import ModelShape
from app.models.shape_config import shape_of_config
from app.models.shape_gguf import shape_of_gguf
from app.models.source_candidate import Candidate, is_file, read_small, size_of
from app.models.source_files import adapter_fault, candidate_at
from app.models.split_set import read_set
from backends.errors import ErrorCode

# Architectures that read and never write: llama.cpp loads them for embeddings.
_ENCODERS = frozenset(
    {"bert", "nomic-bert", "nomic-bert-moe", "neo-bert", "modern-bert", "eurobert", "jina-bert-v2", "jina-bert-v3"}
    | {"gemma-embedding", "t5encoder", "wavtokenizer-dec"}
)
_WRITERS = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel", "ForQuestionAnsweringAndGeneration")
_PROJECTOR_TYPE, _PROJECTOR_ARCHITECTURE, _ADAPTER_TYPE = "mmproj", "clip", "adapter"
_TOKENIZER_BYTES = 32 * 2**20
_POINTER, _POINTER_BYTES = b"version https://git-lfs", 1_024
_MAX_WORD = 64
# What SQLite and msgpack keep, and what no honest context comes near.
_MAX_NUMBER, _MAX_CONTEXT = 2**63 - 1, 2**40


def describe_model(path: Path, origin: str, *, name: str = "", owner: str = "") -> FoundModel:
    """Return what a file or folder says of itself; a fault where it is no model that can be used.

    Args:
        path: a GGUF, any part of a split set, or a folder of safetensors.
        origin: see entry.Origin.
        name: as the place where it lies calls it; "" to ask the header.
        owner: likewise.
    """
    candidate = candidate_at(path, origin, name=name, owner=owner)
    described = describe_candidate(candidate)
    if described is None:
        words = _("This is a vision projector. Cutaway takes it by itself with the model that it lies beside.")
        return _faulty(candidate, words)
    return described


def describe_candidate(candidate: Candidate) -> FoundModel | None:
    """Return what a candidate is; None for what belongs to another model and is no model itself."""
    if candidate.fault:
        return _faulty(candidate, candidate.fault, stamp=candidate.stamp())
    if candidate.format == "safetensors":
        return _describe_safetensors(candidate)
    try:
        header = _read_gguf(candidate)
    except HeaderError as error:
        if _is_importance_matrix(candidate.path):
            return None
        return _faulty(candidate, fault_of(error), stamp=_stamp_after(candidate, error))
    if header.text("general.type") == _PROJECTOR_TYPE or header.architecture == _PROJECTOR_ARCHITECTURE:
        return None
    return _describe_gguf(candidate, header)


def fault_of(error: HeaderError) -> str:
    """Return a header's fault in words for a person."""
    detail = one_line(str(error))
    if error.code is ErrorCode.FILE_MISSING:
        return _("The file is not there: it was moved, renamed or deleted.")
    if error.code is ErrorCode.FILE_UNREADABLE:
        return _("Cutaway cannot read the file. {detail} Check that you may read it.").format(detail=detail)
    if error.is_gguf:
        return _("The model file cannot be used. {detail}").format(detail=detail)
    return detail


# ------------------------------------------------------------------------------------------------------- GGUF


def _read_gguf(candidate: Candidate) -> GgufHeader:
    """Return the header; of a set with missing parts the one of the first part that is there."""
    if candidate.missing:
        header = read_part(candidate.path)
        return header if header.number("split.count") > 1 else read_header(candidate.path)
    return read_set(candidate.path).header


def _describe_gguf(candidate: Candidate, header: GgufHeader) -> FoundModel:
    is_part = bool(candidate.missing) and header.number("split.count") > 1
    shape = None if is_part else _checked_shape(shape_of_gguf(header))
    projector_bytes = _projector_bytes(candidate.projector)
    return FoundModel(
        path=str(candidate.path),
        origin=candidate.origin,
        parts=tuple(map(str, candidate.parts)),
        name=candidate.name or model_name(header, candidate.path),
        owner=candidate.owner or model_owner(header),
        quantization=one_line(header.quantization, _MAX_WORD),
        architecture=one_line(header.architecture, _MAX_WORD),
        size_bytes=size_of(candidate.parts),
        parameters_count=0 if is_part else _bounded(header.parameters_count),
        context_tokens=_bounded(header.context_length, _MAX_CONTEXT),
        bits_per_weight=0.0 if is_part else effective_bits(header),
        fallback_tensors=0 if is_part else fallback_tensors(header),
        has_importance_matrix=has_importance_matrix(header),
        has_chat_template=bool(header.chat_template),
        projector_path=str(candidate.projector) if projector_bytes else "",
        projector_bytes=projector_bytes,
        stamp=candidate.stamp(),
        identity="" if is_part else _identity(candidate),
        shape=shape,
        fault=candidate.missing if is_part else _gguf_fault(header),
    )


def _gguf_fault(header: GgufHeader) -> str:
    if header.text("general.type") == _ADAPTER_TYPE:
        return adapter_fault()
    if header.architecture in _ENCODERS:
        return _encoder_fault(header.architecture)
    return ""


def _encoder_fault(kind: str) -> str:
    words = _("This is a model of the kind {kind}, which turns text into numbers for searching and cannot answer.")
    return words.format(kind=one_line(kind, _MAX_WORD))


def _projector_bytes(path: Path | None) -> int:
    """Return what a projector's tensors take; 0 when there is none or it is none."""
    if path is None:
        return 0
    try:
        header = read_header(path)
    except HeaderError:
        return 0
    is_projector = header.text("general.type") == _PROJECTOR_TYPE or header.architecture == _PROJECTOR_ARCHITECTURE
    return _bounded(header.tensor_bytes) if is_projector else 0


def _is_importance_matrix(path: Path) -> bool:
    """Whether a file that is no model says by its name that it is none: what quantizing weighs weights with."""
    stem = path.stem.lower()
    return path.suffix.lower() == ".gguf" and (stem.startswith("imatrix") or stem.endswith("imatrix"))


# ------------------------------------------------------------------------------------------------ safetensors


def _describe_safetensors(candidate: Candidate) -> FoundModel:
    try:
        model = read_safetensors(candidate.path)
    except HeaderError as error:
        fault = _pointer_fault() if _has_pointer(candidate) else fault_of(error)
        return _faulty(candidate, fault, stamp=_stamp_after(candidate, error))
    shape = _checked_shape(shape_of_config(model.config, model.tensors))
    return FoundModel(
        path=str(candidate.path),
        origin=candidate.origin,
        format="safetensors",
        parts=tuple(map(str, candidate.parts)),
        name=candidate.name or plain_name(candidate.path.name) or file_name(candidate.path),
        owner=candidate.owner,
        quantization=one_line(quantization_of_safetensors(model), _MAX_WORD),
        architecture=one_line(model.architecture, _MAX_WORD),
        size_bytes=size_of(candidate.parts),
        parameters_count=_bounded(shape.parameters_count) if shape else 0,
        context_tokens=_bounded(shape.context_tokens, _MAX_CONTEXT) if shape else 0,
        bits_per_weight=bits_of_safetensors(model),
        has_chat_template=_has_chat_template(candidate.path),
        stamp=candidate.stamp(),
        identity=_identity(candidate),
        shape=shape,
        fault=_safetensors_fault(model),
    )


def _safetensors_fault(model: SafetensorsModel) -> str:
    if model.runs_code:
        return _("This model needs code of its own to run, and Cutaway never runs code that comes with a model.")
    kinds = model.config.get("architectures")
    if not isinstance(kinds, list) or not kinds or not all(isinstance(kind, str) for kind in kinds):
        return ""
    return "" if any(kind.endswith(_WRITERS) for kind in kinds) else _encoder_fault(kinds[0])


def _has_pointer(candidate: Candidate) -> bool:
    """Whether a weight file is a note of Git LFS, as a clone without LFS leaves it."""
    weights = (part for part in candidate.parts if part.suffix == ".safetensors")
    return any(read_small(part, _POINTER_BYTES).startswith(_POINTER) for part in weights)


def _pointer_fault() -> str:
    return _("A weight file is a Git LFS pointer, a note in place of the file. Run `git lfs pull` in the folder.")


def _has_chat_template(folder: Path) -> bool:
    if any(is_file(folder / name) for name in ("chat_template.jinja", "chat_template.json")):
        return True
    return b'"chat_template"' in read_small(folder / "tokenizer_config.json", _TOKENIZER_BYTES)


# ------------------------------------------------------------------------------------------------------ both


def _faulty(candidate: Candidate, fault: str, stamp: str = "") -> FoundModel:
    return FoundModel(
        path=str(candidate.path),
        origin=candidate.origin,
        format=candidate.format,
        parts=tuple(map(str, candidate.parts)),
        name=candidate.name or file_name(candidate.path),
        owner=candidate.owner,
        size_bytes=size_of(candidate.parts),
        stamp=stamp,
        fault=fault,
    )


def _stamp_after(candidate: Candidate, error: HeaderError) -> str:
    """Return the stamp of a faulty model; "" where the fault may go without the file changing."""
    passing = (ErrorCode.FILE_MISSING, ErrorCode.FILE_UNREADABLE)
    return "" if error.code in passing else candidate.stamp()


def _identity(candidate: Candidate) -> str:
    """Return what the program that keeps the model says its bytes are, else what a look at both ends says."""
    if candidate.sha256:
        return FULL + candidate.sha256
    weights = [part for part in candidate.parts if part.suffix.lower() in (".gguf", ".safetensors")]
    try:
        return provisional_identity(weights or candidate.parts)
    except HeaderError:
        return ""


def _checked_shape(shape: ModelShape) -> ModelShape | None:
    """Return a shape that can travel and be kept; None when its numbers are absurd."""
    try:
        msgspec.msgpack.encode(shape)
    except (OverflowError, UnicodeEncodeError):
        return None
    return shape


def _bounded(number: int, most: int = _MAX_NUMBER) -> int:
    return max(0, min(number, most))
