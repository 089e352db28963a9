"""Another quantization of a model file, by llama.cpp itself.

A dry run first: it tells the exact size, what falls back and what is missing before a byte is written. The result is
written beside its place and renamed when it is whole; whatever goes wrong leaves nothing behind. What was made from
weights that were quantized before says so in its own metadata, and so does all that is made from it later on.
Reference: src/llama-quant.cpp and tools/quantize/quantize.cpp of the llama.cpp in llama-cpp-python 0.3.36.
"""

from __future__ import annotations

import ctypes
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import llama_cpp as llama
import numpy as np

from backends import protocol
from backends.engine import Report
from backends.errors import EngineError, ErrorCode
from backends.llama_cpp_engine import loading
from backends.llama_cpp_engine.engine_log import EngineLog
from backends.llama_cpp_engine.ggml_calls import ggml_calls
from backends.llama_cpp_engine.gguf_draft import GgufDraft
from backends.llama_cpp_engine.importance_file import Importance, read_importance
from backends.llama_cpp_engine.quantize_log import QuantizeLog, type_numbers
from backends.processors import physical_cores

# llama.cpp's own names; the values are those of llama_ftype.
QUANTIZATIONS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "F32": 0, "F16": 1, "BF16": 32, "Q8_0": 7, "Q6_K": 18, "Q5_K_M": 17, "Q5_K_S": 16, "Q5_1": 9, "Q5_0": 8,
        "Q4_K_M": 15, "Q4_K_S": 14, "IQ4_NL": 25, "IQ4_XS": 30, "Q4_1": 3, "Q4_0": 2, "Q3_K_L": 13, "Q3_K_M": 12,
        "Q3_K_S": 11, "IQ3_M": 27, "IQ3_S": 26, "IQ3_XS": 22, "IQ3_XXS": 23, "Q2_K": 10, "Q2_K_S": 21, "IQ2_M": 29,
        "IQ2_S": 28, "IQ2_XS": 20, "IQ2_XXS": 19, "IQ1_M": 31, "IQ1_S": 24, "TQ2_0": 37, "TQ1_0": 36,
        "MXFP4_MOE": 38, "Q2_0": 41, "Q1_0": 40,
    }
)  # fmt: skip
ALIASES: Final[Mapping[str, str]] = MappingProxyType({"Q3_K": "Q3_K_M", "Q4_K": "Q4_K_M", "Q5_K": "Q5_K_M"})

# The key in a file's metadata that says what its weights were quantized to before.
REQUANTIZED_KEY: Final = "cutaway.requantized_from"
# What a file is called until it is whole.
PART_SUFFIX: Final = ".part"

_PLAIN_TYPES = frozenset({"f32", "f16", "bf16", "f64"})
_NAMES = {number: name for name, number in QUANTIZATIONS.items()}
# llama.cpp keeps up to so much of one tensor in memory; its own 8 GiB are more than many machines have.
_BUFFER_BYTES = 256 * 2**20
_MOST_KEPT_BYTES = 127  # of a text in llama_model_kv_override, its end left out
_DEFAULT_BUFFER_BYTES = 8 * 2**30
_PROGRESS_INTERVAL_S = 0.1
_ALIGNMENT = 32  # llama.cpp pads every tensor it writes to this, whatever the source says
_GUESSED_FILE_TYPE = 1024  # a flag of llama.cpp on top of the file type
_MISSING_IMPORTANCE = re.compile(r"[Mm]issing importance matrix for tensor (\S+)")


def quantization_number(name: str) -> int:
    """Return llama.cpp's number of a quantization, in any case; raises EngineError, UNKNOWN_QUANTIZATION."""
    plain = name.upper()
    number = QUANTIZATIONS.get(ALIASES.get(plain, plain))
    if number is None:
        raise EngineError(ErrorCode.UNKNOWN_QUANTIZATION, quantization=name, known=", ".join(QUANTIZATIONS))
    return number


def quantize(command: protocol.Quantize, log: EngineLog, report: Report) -> protocol.Quantized:
    """Write a model in another quantization, or say how large it would be.

    Args:
        command: what is wanted.
        log: takes llama.cpp's log again when this is over.
        report: takes Progress events of the phase "quantize", in bytes of the result.

    Raises:
        EngineError: FILE_MISSING, FILE_UNREADABLE, NOT_A_MODEL or UNKNOWN_ARCHITECTURE for the source;
            UNKNOWN_QUANTIZATION; SOURCE_QUANTIZED unless that was allowed; IMPORTANCE_NEEDED, IMPORTANCE_UNREADABLE;
            WRITE_FAILED where the target exists or cannot be written; OUT_OF_MEMORY; QUANTIZE_FAILED for the rest.
    """
    began_s = time.monotonic()
    number = quantization_number(command.quantization)
    source = Path(command.source_path)
    if source.is_dir():
        raise EngineError(ErrorCode.NOT_A_MODEL, path=str(source), detail="it is a folder")
    loading.check_file(source)
    importance = read_importance(Path(command.importance_path)) if command.importance_path else None
    try:
        plan = _dry_run(command, number, importance)
        if not command.dry_run:
            _check_wish(command, plan, importance)
            _write(command, plan, importance, report)
    finally:
        log.install()
    return protocol.Quantized(
        request_id=command.request_id,
        size_bytes=plan.size_bytes,
        bits_per_weight=8 * sum(plan.tensor_bytes) / plan.weights if plan.weights else 0.0,
        tensors=len(plan.tensor_bytes),
        fallback_tensors=plan.fallback_tensors,
        took_s=time.monotonic() - began_s,
        needs_importance=plan.needs_importance,
        requantized_from=plan.requantized_from,
    )


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a dry run tells.

    Attributes:
        number: llama.cpp's, of the quantization.
        size_bytes: of the file.
        tensor_bytes: of each tensor, in the order in which they are written.
        weights: how many there are.
        fallback_tensors: see Quantized.
        needs_importance: whether it cannot be made without an importance matrix.
        converted_from: what quantized weights are converted from; "" when none are.
        requantized_from: what the result's metadata says of that; "" for nothing.
        values: what is set in the result's metadata besides.
    """

    number: int
    size_bytes: int
    tensor_bytes: tuple[int, ...]
    weights: int
    fallback_tensors: int
    needs_importance: bool
    converted_from: str
    requantized_from: str
    values: Mapping[str, str | int]


# ------------------------------------------------------------------------------------------------------ dry run


def _dry_run(command: protocol.Quantize, number: int, importance: Importance | None) -> _Plan:
    """Let llama.cpp decide everything without writing; raises EngineError where the source cannot be read."""
    log = QuantizeLog(lambda _done: None)
    params = _params(command, number)
    keeps = _give_importance(params, importance)
    params.dry_run = True
    code = _run(command.source_path, command.target_path, params, log)
    del keeps  # alive until here
    if code:
        raise _source_error(command, log)
    call = ggml_calls()
    types = type_numbers(call["ggml_type_name"], llama.GGML_TYPE_COUNT)
    if any(line.new_type_name not in types for line in log.tensors):
        raise EngineError(ErrorCode.ENGINE_MISSING, backend="llama.cpp", detail="its log lines cannot be read")
    sizes = [
        call["ggml_row_size"](types[line.new_type_name], line.dims[0]) * (line.elements // line.dims[0])
        for line in log.tensors
    ]
    quantized = [line.type_name for line in log.tensors if line.is_converted and line.type_name not in _PLAIN_TYPES]
    with GgufDraft(Path(command.source_path)) as draft:
        known = _NAMES.get(draft.number("general.file_type") & ~_GUESSED_FILE_TYPE, "")
        most = max(set(quantized), key=quantized.count).upper() if quantized else ""
        converted_from = (known or most) if quantized else ""
        requantized_from = _kept(" > ".join(filter(None, (draft.text(REQUANTIZED_KEY), converted_from))))
        values = _metadata(command, importance)
        if converted_from:
            values[REQUANTIZED_KEY] = requantized_from
        header_bytes = draft.header_bytes(number, values)
    return _Plan(
        number=number,
        size_bytes=header_bytes + sum(-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes),
        tensor_bytes=tuple(sizes),
        weights=sum(line.elements for line in log.tensors),
        fallback_tensors=log.fallback_tensors,
        needs_importance=log.needs_importance,
        converted_from=converted_from,
        requantized_from=requantized_from,
        values=values,
    )


def _metadata(command: protocol.Quantize, importance: Importance | None) -> dict[str, str | int]:
    """Return what the result's metadata says of its importance matrix, under the keys of llama.cpp's own tool."""
    if importance is None:
        return {}
    values: dict[str, str | int] = {
        "quantize.imatrix.file": _kept(Path(command.importance_path).name),
        "quantize.imatrix.entries_count": len(importance.means),
    }
    if importance.source:
        values["quantize.imatrix.dataset"] = _kept(importance.source)
    if importance.chunks:
        values["quantize.imatrix.chunks_count"] = importance.chunks
    return values


def _source_error(command: protocol.Quantize, log: QuantizeLog) -> EngineError:
    problems = [*log.problems, log.reason]
    if loading.is_out_of_memory(problems):
        return EngineError(ErrorCode.OUT_OF_MEMORY, needed_bytes=0, free_bytes=loading.free_memory_bytes())
    error = loading.load_error(Path(command.source_path), problems)
    if error.code is ErrorCode.UNKNOWN_ARCHITECTURE:
        return error
    return _failure(command, log.reason)


# ------------------------------------------------------------------------------------------------------ writing


def _check_wish(command: protocol.Quantize, plan: _Plan, importance: Importance | None) -> None:
    """Refuse what cannot be, before a byte is written."""
    if plan.needs_importance and importance is None:
        raise EngineError(ErrorCode.IMPORTANCE_NEEDED, quantization=command.quantization)
    if plan.converted_from and not command.allow_requantize:
        raise EngineError(ErrorCode.SOURCE_QUANTIZED, path=command.source_path, quantization=plan.converted_from)
    if Path(command.target_path).exists():
        raise EngineError(ErrorCode.WRITE_FAILED, path=command.target_path, detail="there is one already")


def _write(command: protocol.Quantize, plan: _Plan, importance: Importance | None, report: Report) -> None:
    target = Path(command.target_path)
    part = target.with_name(target.name + PART_SUFFIX)
    done_bytes = np.concatenate(([0], np.cumsum(plan.tensor_bytes)))
    reported_s = 0.0

    def on_tensor(done: int) -> None:
        nonlocal reported_s
        if time.monotonic() - reported_s > _PROGRESS_INTERVAL_S:
            reported_s = time.monotonic()
            _tell(command, report, int(done_bytes[done]), int(done_bytes[-1]))

    log = QuantizeLog(on_tensor)
    params = _params(command, plan.number)
    keeps = _give_importance(params, importance), _give_values(params, plan.values)
    try:
        part.open("wb").close()  # says why, where a file cannot be made; llama.cpp would not
        code = _run(command.source_path, str(part), params, log)
        if code:
            raise _write_error(command, log)
        size_bytes = part.stat().st_size
        if size_bytes != plan.size_bytes:  # llama.cpp does not notice every write that fails
            raise EngineError(
                ErrorCode.WRITE_FAILED, path=str(target), detail=_short_words(size_bytes, plan.size_bytes)
            )
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.rename(target)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise EngineError(ErrorCode.WRITE_FAILED, path=str(target), detail=error.strerror or str(error)) from error
    except EngineError:
        part.unlink(missing_ok=True)
        raise
    finally:
        del keeps  # alive until here
    _tell(command, report, int(done_bytes[-1]), int(done_bytes[-1]))


def _tell(command: protocol.Quantize, report: Report, done_bytes: int, total_bytes: int) -> None:
    report(protocol.Progress(request_id=command.request_id, phase="quantize", done=done_bytes, total=total_bytes))


def _write_error(command: protocol.Quantize, log: QuantizeLog) -> EngineError:
    """Return the error that llama.cpp's log lines tell of, once the dry run went well."""
    if match := _MISSING_IMPORTANCE.search(log.reason):
        detail = f"it says nothing of {match[1]}, which {command.quantization} needs"
        return EngineError(ErrorCode.IMPORTANCE_UNREADABLE, path=command.importance_path, detail=detail)
    if "imatrix" in log.reason:
        return EngineError(ErrorCode.IMPORTANCE_UNREADABLE, path=command.importance_path, detail=log.reason)
    if "iostream" in log.reason or "basic_ios" in log.reason:
        detail = "the disk took no more of it"
        return EngineError(ErrorCode.WRITE_FAILED, path=command.target_path, detail=detail)
    if loading.is_out_of_memory([log.reason]):
        return EngineError(ErrorCode.OUT_OF_MEMORY, needed_bytes=0, free_bytes=loading.free_memory_bytes())
    return _failure(command, log.reason)


def _failure(command: protocol.Quantize, reason: str) -> EngineError:
    return EngineError(
        ErrorCode.QUANTIZE_FAILED,
        path=command.source_path,
        quantization=command.quantization,
        detail=reason or "llama.cpp gives no reason",
    )


def _short_words(size_bytes: int, wanted_bytes: int) -> str:
    return f"{size_bytes:,} of {wanted_bytes:,} bytes were written"


# ------------------------------------------------------------------------------------------------------ the call


def _run(source: str, target: str, params: Any, log: QuantizeLog) -> int:
    log.install()
    return int(llama.llama_model_quantize(os.fsencode(source), os.fsencode(target), ctypes.byref(params)))


def _params(command: protocol.Quantize, number: int) -> Any:
    params = llama.llama_model_quantize_default_params()
    # Known defaults: a shifted struct would show here.
    if (params.ftype, params.quantize_output_tensor, params.max_buf_size) != (7, True, _DEFAULT_BUFFER_BYTES):
        raise EngineError(ErrorCode.ENGINE_MISSING, backend="llama.cpp", detail="the library and its bindings differ")
    params.ftype = number
    params.nthread = command.threads or physical_cores()
    params.allow_requantize = True  # asked for and checked beforehand
    params.max_buf_size = _BUFFER_BYTES
    return params


def _give_importance(params: Any, importance: Importance | None) -> object:
    """Hand an importance matrix over; returns what must live until the call is over."""
    if importance is None:
        return None
    entries = (llama.llama_model_imatrix_data * (len(importance.means) + 1))()  # the last one's name stays NULL
    for entry, (name, values) in zip(entries, importance.means.items(), strict=False):
        entry.name = name.encode()
        entry.data = values.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        entry.size = len(values)
    params.imatrix = entries
    return entries


def _give_values(params: Any, values: Mapping[str, str | int]) -> object:
    """Hand metadata over; returns what must live until the call is over."""
    if not values:
        return None
    overrides = (llama.llama_model_kv_override * (len(values) + 1))()  # the last one's key stays empty
    for override, (key, value) in zip(overrides, values.items(), strict=False):
        override.key = key.encode()
        if isinstance(value, str):
            override.tag = llama.LLAMA_KV_OVERRIDE_TYPE_STR
            override.value.val_str = value.encode()
        else:
            override.tag = llama.LLAMA_KV_OVERRIDE_TYPE_INT
            override.value.val_i64 = value
    params.kv_overrides = overrides
    return overrides


def _kept(words: str) -> str:
    """Return as much of a text as llama.cpp takes, in whole characters."""
    return words.replace("\0", " ").encode(errors="replace")[:_MOST_KEPT_BYTES].decode(errors="ignore")
