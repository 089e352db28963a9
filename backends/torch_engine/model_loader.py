"""From a folder of safetensors or a GGUF file to a model of transformers and its vocabulary.

transformers is given what was checked here, value by value: a config, and weights that are read one by one. It is never
given a path, so there is nothing for it to resolve, to fetch or to unpickle; and while it builds, it is told to be
offline. The model is built twice: first without memory, to see what it would take, then with its weights.
References: trust.md S-06 to S-09; PreTrainedModel.from_pretrained of https://github.com/huggingface/transformers.
"""

from __future__ import annotations

import contextlib
import logging
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import huggingface_hub.constants
import torch
import transformers
from transformers.initialization import no_init_weights
from transformers.utils import logging as transformers_logging

from backends import protocol
from backends.engine import Report
from backends.errors import EngineError, ErrorCode, NoticeCode
from backends.torch_engine import device as devices
from backends.torch_engine.attention_hook import NAME, register
from backends.torch_engine.folder_config import damaged
from backends.torch_engine.model_errors import ForeignErrors
from backends.torch_engine.model_source import ModelSource, open_source
from backends.torch_engine.model_weights import DTYPES, LazyWeight, LoadProgress
from backends.torch_engine.vocabulary import Vocabulary

_DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
_SHORT_NAMES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16"}
_SPECIAL_FLOATS = {"Infinity": float("inf"), "-Infinity": float("-inf"), "NaN": float("nan")}
# Positions and masks that a model computes for itself. Beyond this a config asks for memory, not for a model.
_MAX_BUFFER_BYTES = 2**30
# Some files carry tables that a model computes for itself, or a head for training.
_MAX_UNUSED = 0.01
_ONE_BY_ONE = "HF_DEACTIVATE_ASYNC_LOAD"  # otherwise threads read ahead of the model
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1", _ONE_BY_ONE: "1"}

_log = logging.getLogger(__name__)


@dataclass
class LoadedModel:
    """A model that can run, whose attention asks attention_hook.py.

    Attributes:
        module: transformers' model, for evaluation, without gradients.
        config: its config.
        dtype: what it computes in.
        device: where it lies.
        quantization: how the file stores the weights, and what became of them, such as "Q4_1 as bf16".
        architecture: the kind of model in transformers' words, such as "llama".
        parameters: how many numbers it has; shared ones count once.
        weight_bytes: what they take in memory, buffers included.
        notices: codes of what a person must be told.
        vocabulary: text to ids and back.
        chat_template: as the model brings it, "" when it brings none.
    """

    module: torch.nn.Module
    config: Any
    dtype: torch.dtype
    device: torch.device
    quantization: str
    architecture: str
    parameters: int
    weight_bytes: int
    notices: tuple[str, ...]
    vocabulary: Vocabulary
    chat_template: str


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a model takes, known before it takes anything.

    Attributes:
        kind: transformers' class.
        config: its config.
        attention: the name of the attention that it can be built with.
        shapes: of every parameter and kept buffer, by name.
        elements: numbers in parameters; shared ones count once.
        buffer_bytes: what buffers take.
    """

    kind: Any
    config: Any
    attention: str
    shapes: Mapping[str, tuple[int, ...]]
    elements: int
    buffer_bytes: int


def load_model(path: Path, params: protocol.LoadParams, device: torch.device, report: Report) -> LoadedModel:
    """Load a model.

    Args:
        path: a folder, one of its safetensors files, or a GGUF file.
        params: how; dtype is the only one that matters here.
        device: where it is to lie.
        report: told how far the load is.

    Raises:
        EngineError: whatever is wrong with the files, or OUT_OF_MEMORY before anything is taken.
    """
    wanted = _wanted_dtype(params)
    source = open_source(path)
    plan = _plan(source)
    dtype, notices = _chosen_dtype(wanted, source, device)
    _check_fit(source, plan)
    _check_memory(source, plan, dtype, device)
    vocabulary = source.vocabulary(_rows(plan))
    progress = LoadProgress(source.weight_bytes, report)
    module = _build(source, plan, dtype, source.weights(progress, dtype))
    with devices.memory_errors(device):
        module.to(device)
    progress.finish()
    unique = [*module.parameters(), *module.buffers()]
    return LoadedModel(
        module=module,
        config=module.config,
        dtype=dtype,
        device=device,
        quantization=_label(source.quantization, dtype),
        architecture=str(plan.config.model_type),
        parameters=sum(one.numel() for one in module.parameters()),
        weight_bytes=sum(one.numel() * one.element_size() for one in unique),
        notices=notices,
        vocabulary=vocabulary,
        chat_template=source.chat_template,
    )


# ----------------------------------------------------------------------------------------- number formats


def computes_in(device: torch.device, dtype: torch.dtype) -> bool:
    """Return whether a device computes in a number format itself rather than by way of another."""
    if dtype is torch.float64:
        return False  # twice the memory of float32 for nothing that a language model shows
    if dtype is torch.bfloat16 and device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return True


def _wanted_dtype(params: protocol.LoadParams) -> torch.dtype | None:
    if params.dtype and params.dtype not in _DTYPES:
        raise EngineError(ErrorCode.BAD_PARAMS, detail=f"unknown number format {params.dtype!r}")
    return _DTYPES.get(params.dtype)


def _chosen_dtype(
    wanted: torch.dtype | None, source: ModelSource, device: torch.device
) -> tuple[torch.dtype, tuple[str, ...]]:
    """Return what to compute in, and a notice when it is not what was asked for or what the file has."""
    first = wanted or DTYPES[source.dtype]
    if computes_in(device, first):
        return first, ()
    other = torch.float16 if first is torch.bfloat16 else torch.float32
    return other, (NoticeCode.DTYPE_CHANGED.value,)


def _label(quantization: str, dtype: torch.dtype) -> str:
    used = _SHORT_NAMES[dtype]
    return quantization if quantization.lower() == used else f"{quantization} as {used}"


# ---------------------------------------------------------------------------------------- before memory


def _plan(source: ModelSource) -> _Plan:
    """Build the model without memory and return what it is."""
    model_type = str(source.config["model_type"])
    with ForeignErrors(source.path, "transformers does not accept its config"), _quiet():
        if model_type not in transformers.CONFIG_MAPPING:
            raise _unknown(source)
        kind = transformers.CONFIG_MAPPING[model_type]
        if kind not in transformers.MODEL_FOR_CAUSAL_LM_MAPPING:
            raise _unknown(source)
        config = kind.from_dict(_with_floats(dict(source.config)))
        model_class: Any = transformers.MODEL_FOR_CAUSAL_LM_MAPPING[kind]
        empty, attention = _empty_model(model_class, config)
        empty.tie_weights()  # left out above, together with the initial values
        kept = {name: tuple(tensor.shape) for name, tensor in empty.state_dict().items()}
        elements = sum(parameter.numel() for parameter in empty.parameters())
        buffer_bytes = sum(buffer.numel() * buffer.element_size() for buffer in empty.buffers())
    return _Plan(model_class, config, attention, kept, elements, buffer_bytes)


def _empty_model(model_class: Any, config: Any) -> tuple[Any, str]:
    """Return the model without memory, and the attention it was built for: ours, or its own where it knows no other."""
    register()
    for attention in (NAME, "eager"):
        config._attn_implementation = attention
        try:
            with torch.device("meta"), no_init_weights():
                return model_class(config), attention
        except (KeyError, ValueError):  # some models look the name up in a table of their own
            if attention == "eager":
                raise
    raise AssertionError("unreachable")


def _with_floats(value: Any) -> Any:
    """Return a config with the numbers that JSON does not know; transformers writes {"__float__": "Infinity"}."""
    if isinstance(value, dict):
        if set(value) == {"__float__"} and value["__float__"] in _SPECIAL_FLOATS:
            return _SPECIAL_FLOATS[value["__float__"]]
        return {name: _with_floats(part) for name, part in value.items()}
    return [_with_floats(part) for part in value] if isinstance(value, list) else value


def _unknown(source: ModelSource) -> EngineError:
    architecture = str(source.config["model_type"])
    return EngineError(ErrorCode.UNKNOWN_ARCHITECTURE, path=str(source.path), architecture=architecture)


def _check_fit(source: ModelSource, plan: _Plan) -> None:
    """Refuse weights that are not those of the config, before memory is taken for either."""
    for name, shape in source.shapes.items():
        claimed = plan.shapes.get(name)
        if claimed is not None and claimed != shape:
            raise damaged(
                source.path, f"the tensor {name[:80]!a} is {_size(shape)} and should be {_size(claimed)} by its config"
            )
    if plan.elements > source.elements:
        raise damaged(
            source.path, f"its config means {plan.elements:,} numbers, its files hold {source.elements:,} of them"
        )
    if plan.buffer_bytes > _MAX_BUFFER_BYTES:
        raise damaged(source.path, f"its config asks for {plan.buffer_bytes:,} bytes beside the weights")


def _check_memory(source: ModelSource, plan: _Plan, dtype: torch.dtype, device: torch.device) -> None:
    """Refuse a model that does not fit; the weights pass through the machine's memory on their way to a GPU."""
    # One weight more than the model: it is there in the file's format before it is in the model's.
    largest = source.largest_elements * DTYPES[source.dtype].itemsize
    needed = plan.elements * dtype.itemsize + plan.buffer_bytes
    for place, needed_bytes in ((torch.device("cpu"), needed + largest), (device, needed)):
        free_bytes = devices.free_bytes(place)
        if needed_bytes > free_bytes:
            raise EngineError(ErrorCode.OUT_OF_MEMORY, needed_bytes=needed_bytes, free_bytes=free_bytes)


def _rows(plan: _Plan) -> int:
    """Return how many ids the model has: the rows of its embedding."""
    text = plan.config.get_text_config()
    rows = getattr(text, "vocab_size", 0)
    return rows if isinstance(rows, int) else 0


def _size(shape: tuple[int, ...]) -> str:
    return " x ".join(f"{dim:,}" for dim in shape) or "one number"


# -------------------------------------------------------------------------------------------- the model


def _build(source: ModelSource, plan: _Plan, dtype: torch.dtype, weights: dict[str, LazyWeight]) -> Any:
    """Return the model with its weights, on the CPU."""
    doing = ForeignErrors(source.path, "its weights do not fit its config")
    with doing, devices.memory_errors(torch.device("cpu")), _quiet():
        module, told = plan.kind.from_pretrained(
            None,
            config=plan.config,
            state_dict=weights,
            dtype=dtype,
            attn_implementation=plan.attention,
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
    if missing := told["missing_keys"]:
        raise damaged(source.path, f"{len(missing):,} of its weights are missing, such as {min(missing)[:80]!a}")
    if told["mismatched_keys"] or told["error_msgs"]:
        raise damaged(source.path, "some of its weights do not fit its config")
    _check_unused(source, told["unexpected_keys"])
    module.requires_grad_(False)
    return module.eval()


def _check_unused(source: ModelSource, names: set[str]) -> None:
    """Refuse weights of which the model takes a part only, such as layers more than its config has."""
    if not names:
        return
    _log.info("%d tensors of the files are not used by the model, such as %s", len(names), min(names))
    elements = sum(math.prod(source.shapes.get(name, ())) for name in names)
    if elements > _MAX_UNUSED * source.elements:
        detail = f"{len(names):,} of its weights have no place in the model of its config, such as {min(names)[:80]!a}"
        raise damaged(source.path, detail)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Keep transformers offline and off the terminal; its log goes the way of ours.

    Its table of weights that are missing or left over is kept out: what it tells is said in an error of ours.
    """
    log = logging.getLogger("transformers.modeling_utils")
    log.addFilter(_is_no_table)
    before = {name: os.environ.get(name) for name in _OFFLINE}
    was_offline = huggingface_hub.constants.HF_HUB_OFFLINE
    os.environ.update(_OFFLINE)
    huggingface_hub.constants.HF_HUB_OFFLINE = True
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    transformers_logging.disable_default_handler()
    transformers_logging.enable_propagation()
    try:
        yield
    finally:
        log.removeFilter(_is_no_table)
        huggingface_hub.constants.HF_HUB_OFFLINE = was_offline
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _is_no_table(record: logging.LogRecord) -> bool:
    return "LOAD REPORT" not in record.getMessage()
