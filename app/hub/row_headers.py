"""One row's headers, read over the network before anything is downloaded: what is really in its files.

Of a set in several parts the first header says what the model is, and each part which weights lie in it; those of the
later parts are small. Of a safetensors model in very many files some are read: see shard_headers.py. Knows the
formats' readers and the network's, no table and no window.
"""

from __future__ import annotations

import dataclasses
import math
import threading
import time
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import TypeVar
from urllib.parse import quote

import msgspec

from app.downloads.types import FileRef
from app.errors import one_line
from app.http_clients import HttpClients
from app.hub.shard_headers import Filled, check_index, files_to_read, fill_in
from app.hub.table import CONFIG_NAME, INDEX_NAME
from app.hub.types import QuantizationRow
from app.i18n import _
from app.models.bounded_json import read_whole
from app.models.byte_source import ByteSource, HeaderError
from app.models.gguf_header import MAX_TENSORS, GgufHeader, read_header_from
from app.models.http_faults import RemoteError
from app.models.http_source import HttpLimits, open_url
from app.models.quantization import effective_bits, fallback_tensors, has_importance_matrix
from app.models.quantization_safetensors import bits_of_safetensors, quantization_of_safetensors
from app.models.safetensors_config import MAX_CONFIG_BYTES, code_request, parse_config
from app.models.safetensors_header import MAX_INDEX_BYTES, SafetensorsModel, parse_index
from app.models.safetensors_quantization import quantization_facts
from app.models.safetensors_tensors import SafeTensor, read_tensors
from app.models.shape import ModelShape
from app.models.shape_config import shape_of_config
from app.models.shape_gguf import shape_of_gguf
from app.models.shape_scale import scaled_shape

Read = TypeVar("Read")

_KIB, _MIB = 2**10, 2**20
# How many files of one model are looked into; beyond that it takes too many requests.
MAX_FILES_READ = 40
FIRST_LIMITS = HttpLimits(total_s=40.0)
# Headers without a vocabulary are small: a hundred weights take 8 KiB.
PART_LIMITS = HttpLimits(pieces_bytes=(256 * _KIB, 2 * _MIB, 8 * _MIB), total_bytes=32 * _MIB, total_s=40.0)


class CancelledError(Exception):
    """Whoever asked does not want to know any more."""


class RowFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a row's headers say; may be kept, since the files of a commit never change.

    Attributes:
        read_bytes: what reading them cost.
        The others are those of QuantizationRow.
    """

    quantization: str = ""
    bits_per_weight: float = 0.0
    fallback: int = 0
    imatrix: bool | None = None
    shape: ModelShape | None = None
    is_shape_exact: bool = False
    has_chat_template: bool | None = None
    fault: str = ""
    read_bytes: int = 0


def resolve_url(file: FileRef) -> str:
    """Return the address of a file at its commit."""
    return f"{file.endpoint}/{file.repo}/resolve/{quote(file.revision, safe='')}/{quote(file.path)}"


def with_facts(row: QuantizationRow, facts: RowFacts) -> QuantizationRow:
    """Return a row with what its headers say."""
    return msgspec.structs.replace(
        row,
        quantization=row.quantization or facts.quantization,
        bits_per_weight=facts.bits_per_weight or None,
        fallback=facts.fallback,
        imatrix=facts.imatrix,
        shape=facts.shape,
        is_shape_exact=facts.is_shape_exact,
        has_chat_template=facts.has_chat_template,
        state="failed" if facts.fault else "read",
        fault=facts.fault,
        is_broken=bool(facts.fault),
    )


def with_fault(row: QuantizationRow, error: Exception) -> QuantizationRow:
    """Return a row whose headers could not be read, with the reason in words."""
    if isinstance(error, RemoteError):
        words = f"{error.words.message} {error.words.hint}".strip()
        return msgspec.structs.replace(row, state="failed", fault=words)
    words = _("The file at the hub cannot be used. {detail}").format(detail=one_line(str(error)))
    return msgspec.structs.replace(row, state="failed", fault=words, is_broken=True)


class RowReader:
    """Reads the headers of rows, one after the other; several threads may use one.

    Args:
        clients: the way to the network; they say which token goes along.
        cancel: ends reading between two pieces.
        first_limits: what the first file of a row may cost.
        part_limits: what each further one may.
        clock: seconds that only go forward.
    """

    def __init__(
        self,
        clients: HttpClients,
        cancel: threading.Event | None = None,
        first_limits: HttpLimits = FIRST_LIMITS,
        part_limits: HttpLimits = PART_LIMITS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clients = clients
        self._cancel = cancel or threading.Event()
        self._first_limits = first_limits
        self._part_limits = part_limits
        self._clock = clock

    def read(self, row: QuantizationRow) -> RowFacts:
        """Return what a row's headers say.

        Raises:
            RemoteError: the hub does not give them.
            HeaderError: the files are no models.
            CancelledError: the caller gave up.
        """
        return self._read_gguf(row) if row.format == "gguf" else self._read_safetensors(row)

    # GGUF.

    def _read_gguf(self, row: QuantizationRow) -> RowFacts:
        first, read_bytes = self._open(row.files[0], self._first_limits, _part_header)
        count = first.number("split.count")
        if count > 1 and first.number("split.no") != 0:
            raise HeaderError(f"It says that it is part {first.number('split.no') + 1:,} of a model.")
        if (count if count > 1 else 1) != len(row.files):
            raise HeaderError(f"Its header speaks of {max(1, count):,} parts, and there are {len(row.files):,}.")
        merged: GgufHeader | None = first
        if len(row.files) > 1:
            merged, more_bytes = self._merged(first, row.files)
            read_bytes += more_bytes
        if merged is not None and not merged.tensors:
            raise HeaderError("It holds no weights, only a vocabulary.")
        header = merged or first
        shape = shape_of_gguf(header)
        weights = shape.parameters_count if merged else 0
        bits = effective_bits(header) if merged else 0.0
        return RowFacts(
            quantization=first.quantization if first.tensors or merged else "",
            bits_per_weight=bits if weights and math.isfinite(bits) else 0.0,
            fallback=fallback_tensors(header),
            imatrix=has_importance_matrix(first),
            shape=shape if merged else scaled_shape(shape, row.size_bytes),
            is_shape_exact=merged is not None,
            has_chat_template=bool(first.chat_template) or _is_noted(first, "tokenizer.chat_template"),
            read_bytes=read_bytes,
        )

    def _merged(self, first: GgufHeader, files: Sequence[FileRef]) -> tuple[GgufHeader | None, int]:
        """Return the header with the weights of all parts, and what that cost; None where the parts are too many.

        Where the hub does not give a later part now, the first one has to do.
        """
        if len(files) > MAX_FILES_READ:
            return None, 0
        tensors, read_total = list(first.tensors), 0
        for number, file in enumerate(files[1:], 1):
            try:
                header, read_bytes = self._open(file, self._part_limits, _part_header)
            except RemoteError:
                return None, read_total
            read_total += read_bytes
            if header.number("split.no", absent=-1) != number or header.number("split.count") != len(files):
                raise HeaderError(f"Part {number + 1:,} of {len(files):,} belongs to another model.")
            tensors += header.tensors
            if len(tensors) > MAX_TENSORS:
                raise HeaderError(f"The parts hold more than {MAX_TENSORS:,} tensors.")
        if len({tensor.name for tensor in tensors}) != len(tensors):
            raise HeaderError("A tensor stands in two parts.")
        size_bytes = sum(file.size_bytes for file in files)
        return dataclasses.replace(first, tensors=tuple(tensors), file_bytes=size_bytes), read_total

    # Safetensors.

    def _read_safetensors(self, row: QuantizationRow) -> RowFacts:
        config_file = next((file for file in row.files if file.path == CONFIG_NAME), None)
        weights = [file for file in row.files if file.path.endswith(".safetensors")]
        if config_file is None or not weights:
            raise HeaderError("There is no config.json, or there are no weights.")
        config, read_bytes = self._open(config_file, self._part_limits, _config)
        if code_request(config):
            words = _("This model needs code of its own to run, and Cutaway never runs code that comes with a model.")
            return RowFacts(fault=words, read_bytes=read_bytes)
        filled, more_bytes = self._all_tensors(row, weights)
        size_bytes = sum(file.size_bytes for file in weights)
        facts = quantization_facts(config)
        model = SafetensorsModel(filled.tensors, MappingProxyType(config), facts, (), size_bytes, "")
        bits = bits_of_safetensors(model)
        shape = shape_of_config(config, filled.tensors)
        return RowFacts(
            quantization=quantization_of_safetensors(model),
            bits_per_weight=bits if math.isfinite(bits) else 0.0,
            shape=shape if filled.is_exact else scaled_shape(shape, size_bytes),
            is_shape_exact=filled.is_exact,
            read_bytes=read_bytes + more_bytes,
        )

    def _all_tensors(self, row: QuantizationRow, weights: Sequence[FileRef]) -> tuple[Filled, int]:
        """Return the tensors of all files, and what that cost; of too many files some are read, and the index."""
        names = {file.path: file for file in weights}
        chosen, read_bytes, places = list(names), 0, None
        if len(weights) > MAX_FILES_READ:
            index = next((file for file in row.files if file.path == INDEX_NAME), None)
            if index is None:
                raise HeaderError(f"The list of the model's parts is missing: {INDEX_NAME}.")
            places, read_bytes = self._open(index, self._first_limits, _index)
            check_index(places, names)
            chosen = files_to_read(places, MAX_FILES_READ)
        read: dict[str, Sequence[SafeTensor]] = {}
        for name in chosen:
            read[name], more_bytes = self._open(names[name], self._part_limits, read_tensors)
            read_bytes += more_bytes
        if places is None:
            return Filled(tuple(tensor for found in read.values() for tensor in found), is_exact=True), read_bytes
        return fill_in(places, read, {file.path: file.size_bytes for file in weights}), read_bytes

    def _open(self, file: FileRef, limits: HttpLimits, read: Callable[[ByteSource], Read]) -> tuple[Read, int]:
        """Return what a reader finds in a file, and how many bytes that took."""
        if self._cancel.is_set():
            raise CancelledError
        url = resolve_url(file)
        try:
            source = open_url(url, self._clients.authorization(url), limits, self._time, self._clients)
            try:
                if source.size_bytes != file.size_bytes:
                    listed, given = f"{file.size_bytes:,}", f"{source.size_bytes:,}"
                    raise HeaderError(f"The hub lists {listed} bytes, and its server has {given}.")
                return read(source), source.read_bytes
            finally:
                source.close()
        except RemoteError as error:
            if self._cancel.is_set():
                raise CancelledError from error
            raise

    def _time(self) -> float:
        """Return the clock, or the end of all time once the caller gave up: then the source takes too long."""
        return math.inf if self._cancel.is_set() else self._clock()


def _part_header(source: ByteSource) -> GgufHeader:
    return read_header_from(source, is_part_enough=True)


def _config(source: ByteSource) -> dict[str, object]:
    return parse_config(read_whole(source, CONFIG_NAME, MAX_CONFIG_BYTES))


def _index(source: ByteSource) -> dict[str, str]:
    return parse_index(read_whole(source, INDEX_NAME, MAX_INDEX_BYTES))


def _is_noted(header: GgufHeader, key: str) -> bool:
    """Whether a value is there that was too long to be kept."""
    return key in header.metadata and not isinstance(header.metadata[key], str)
