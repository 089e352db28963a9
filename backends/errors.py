"""Why an engine could not do a command: a code and parameters, never words.

The words for people are made in app/errors.py, which holds a sentence and a hint for every code of this file.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

Parameter = str | int | float


class ErrorCode(enum.StrEnum):
    """Every way a command fails. The parameters of a code stand behind it."""

    FILE_MISSING = "file_missing"  # path
    FILE_UNREADABLE = "file_unreadable"  # path, detail
    NOT_A_MODEL = "not_a_model"  # path, detail: not a GGUF at all
    HEADER_INVALID = "header_invalid"  # path, detail: a GGUF whose header cannot be true
    ENGINE_MISSING = "engine_missing"  # backend, detail: the engine's library cannot be loaded
    ENGINE_NOT_INSTALLED = "engine_not_installed"  # backend, packages: what brings the engine's library
    WRONG_KIND = "wrong_kind"  # path, backend, takes: the engine loads models of another kind
    RUNS_CODE = "runs_code"  # path, detail: what in the model asks for code of its own, such as auto_map
    UNKNOWN_ARCHITECTURE = "unknown_architecture"  # path, architecture
    WEIGHTS_UNSUPPORTED = "weights_unsupported"  # path, detail: how the weights are stored, such as gptq
    OUT_OF_MEMORY = "out_of_memory"  # needed_bytes, free_bytes (0 when unknown)
    LOAD_FAILED = "load_failed"  # path, detail
    NO_VOCABULARY = "no_vocabulary"  # path
    CONTEXT_FAILED = "context_failed"  # context_tokens, detail
    NO_MODEL = "no_model"
    ALREADY_LOADED = "already_loaded"
    EMPTY_PROMPT = "empty_prompt"
    PROMPT_TOO_LONG = "prompt_too_long"  # prompt_tokens, context_tokens
    CHAT_TOO_LARGE = "chat_too_large"  # text_bytes, limit_bytes: more text than is ever rendered
    BAD_PARAMS = "bad_params"  # detail
    NO_KV_ROOM = "no_kv_room"  # context_tokens
    DECODE_FAILED = "decode_failed"  # detail
    INTERRUPTED = "interrupted"  # command: it was ended in the middle, by an Abort or a Shutdown
    REFERENCE_UNREADABLE = "reference_unreadable"  # path, detail: a window of log-probabilities
    WRITE_FAILED = "write_failed"  # path, detail: such as a disk that is full
    IMPORTANCE_UNREADABLE = "importance_unreadable"  # path, detail
    IMPORTANCE_NEEDED = "importance_needed"  # quantization: it cannot be made without an importance matrix
    UNKNOWN_QUANTIZATION = "unknown_quantization"  # quantization, known: those there are
    SOURCE_QUANTIZED = "source_quantized"  # path, quantization: of the source, and nobody agreed to that
    QUANTIZE_FAILED = "quantize_failed"  # path, quantization, detail
    UNSUPPORTED_COMMAND = "unsupported_command"  # command, backend
    PROTOCOL_MISMATCH = "protocol_mismatch"  # ours, theirs
    ENGINE_FAULT = "engine_fault"  # detail: an error nobody foresaw; the worker lives on
    TEMPLATE_MISSING = "template_missing"
    TEMPLATE_BROKEN = "template_broken"  # detail, line (0 when unknown)
    TEMPLATE_TOO_SLOW = "template_too_slow"  # limit_s
    TEMPLATE_TOO_LONG = "template_too_long"  # limit_bytes


class NoticeCode(enum.StrEnum):
    """Facts a person must be told though nothing failed; they stay on screen until dismissed."""

    CONTEXT_CLAMPED = "context_clamped"  # the asked context was larger than the model's own
    CONTEXT_BEYOND_TRAINING = "context_beyond_training"  # asked for in so many words, and in use
    GPU_NOT_USED = "gpu_not_used"  # layers were asked for a GPU and lie on the CPU
    FLASH_ATTENTION_OFF = "flash_attention_off"
    DTYPE_CHANGED = "dtype_changed"  # the device does not compute in the number format of the file
    PLAIN_PATH = "plain_path"  # note (ModelLoaded.path_note): the model runs without KV blocks
    KV_TYPE_NOT_USED = "kv_type_not_used"  # asked, kv_type, backend: K and V are kept in another type than asked for


class EngineError(Exception):
    """A command failed in a foreseen way; the worker turns it into EngineFailed and lives on.

    Attributes:
        code: why.
        parameters: what the sentence for the code needs.
    """

    def __init__(self, code: ErrorCode, **parameters: Parameter) -> None:
        super().__init__(f"{code.value} {parameters}")
        self.code = code
        self.parameters: Mapping[str, Parameter] = parameters
