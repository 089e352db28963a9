"""An invented library for the models screen: entries, shapes, fits and measurements that agree with each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from app.models.entry import ModelEntry
from app.models.fit_types import Device, Fit, Machine, Measured, MemoryEstimate, Verdict
from app.models.shape import LayerShape, ModelShape
from backends.protocol import MemorySplit

GIB = 2**30
MIB = 2**20
MACHINE = Machine((Device("CPU", "This computer", int(15.6 * GIB), int(12.1 * GIB), 3.1e10),))
DIGEST = "sha256:" + "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"

# Quantization, bits per weight, largest context with f16, tokens/s.
LADDER = (
    ("Q2_K", 3.16, 73_728, 11.4),
    ("Q3_K_M", 4.0, 66_560, 9.1),
    ("Q4_K_M", 4.89, 59_392, 7.42),
    ("Q5_K_M", 5.7, 53_248, 6.31),
    ("Q6_K", 6.56, 46_080, 5.5),
    ("Q8_0", 8.5, 31_744, 4.2),
    ("F16", 16.0, 0, None),
)


def shape(layers: int = 32, kv_heads: int = 8) -> ModelShape:
    return ModelShape(architecture="llama", layers=(LayerShape(kv_heads, 128, 128),) * layers)


def entry(name: str, quantization: str, bits: float = 0.0, **fields: object) -> ModelEntry:
    """Return an entry of a library; a weight takes `bits`."""
    weights = fields.get("parameters_count", 8_030_000_000)
    assert isinstance(weights, int)
    made: dict[str, object] = {
        "architecture": "llama",
        "parameters_count": weights,
        "size_bytes": int(weights * bits / 8),
        "bits_per_weight": bits,
        "context_tokens": 131_072,
        "shape": shape(),
        "identity": f"provisional:{name}{quantization}",
        "has_chat_template": True,
        **fields,
    }
    path = made.pop("path", Path(f"/models/{name}-{quantization}.gguf"))
    return ModelEntry(f"{name}:{quantization}", name, path, quantization, **made)  # type: ignore[arg-type]


def fit(found: ModelEntry, largest: int | None, speed: float | None = 7.0, **fields: object) -> Fit:
    """Return that an entry has room for `largest` tokens; 0 for none, None when nobody can tell."""
    if largest is None:
        unknown = "The architecture “mamba9” is new: how much memory it takes cannot be told from its header."
        return Fit(Verdict.UNKNOWN, None, 0, dict.fromkeys(("f16", "q8_0", "q4_0")), reason=unknown)
    context = min(16_384, largest) or 4096
    kv_bytes_per_token = 131_072 if found.parameters_count > 1e9 else 23_040
    estimate = MemoryEstimate(
        weights_bytes=found.size_bytes,
        kv_bytes=context * kv_bytes_per_token,
        compute_bytes=264 * MIB,
        output_bytes=0,
        draft_bytes=0,
        projector_bytes=0,
        floor_bytes=92 * MIB,
        source="probe",
    )
    trained = found.context_tokens
    most = {"f16": largest, "q8_0": min(trained, largest * 15 // 8), "q4_0": min(trained, largest * 7 // 2)}
    made = Fit(
        verdict=Verdict.FITS if largest else Verdict.TOO_LARGE,
        estimate=estimate,
        context_tokens=context,
        max_context_tokens=most,
        layers_count=32,
        decode_tokens_per_s=speed,
        free_bytes=MACHINE.cpu.free_bytes,
        device=MACHINE.cpu,
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def measured(found: ModelEntry, of: Fit, kv_type: str = "f16") -> Measured:
    """Return a load that took a little more than was predicted."""
    assert of.estimate is not None
    split = MemorySplit(
        weights_bytes=of.estimate.weights_bytes,
        kv_reserved_bytes=of.estimate.kv_bytes,
        compute_bytes=of.estimate.compute_bytes + 8 * MIB,
    )
    total = split.weights_bytes + split.kv_reserved_bytes + split.compute_bytes + 97 * MIB
    return Measured("llama_cpp", "CPU", of.context_tokens, kv_type, 512, "chat", 1, split, total, 97 * MIB, 7.3)


def ladder(name: str = "Llama-3.1-8B-Instruct", **fields: object) -> list[ModelEntry]:
    """Return one model in seven quantizations."""
    return [entry(name, quantization, bits, **fields) for quantization, bits, _most, _speed in LADDER]


def ladder_fits(entries: Sequence[ModelEntry]) -> dict[str, Fit]:
    """Return what fits of a ladder."""
    known = {quantization: (most, speed) for quantization, _bits, most, speed in LADDER}
    return {found.key: fit(found, *known[found.quantization]) for found in entries}


def library() -> tuple[list[ModelEntry], dict[str, Fit]]:
    """Return a library as a person has it after some months, and what fits of it."""
    llama = ladder()
    llama[2] = replace(
        llama[2],
        origin="lm_studio",
        identity=DIGEST,
        owner="bartowski",
        fallback_tensors=12,
        has_importance_matrix=True,
        path=Path("/home/ada/.lmstudio/models/bartowski/Llama-3.1-8B-Instruct-GGUF/Llama-3.1-8B-Instruct-Q4_K_M.gguf"),
        note="The one for letters.",
    )
    llama[3] = replace(llama[3], origin="huggingface")
    copy = replace(
        llama[2], key="ollama/" + llama[2].key, origin="ollama", path=Path("/home/ada/.ollama/blobs/sha256-9f")
    )
    qwen = entry("Qwen3-8B", "Q4_K_M", 4.9, parameters_count=8_190_000_000, context_tokens=40_960, origin="folder")
    gemma = entry("Gemma-3-12B-it", "Q3_K_M", 4.1, parameters_count=12_200_000_000, origin="ollama")
    huge = entry("Llama-3.3-70B-Instruct", "Q4_K_M", 4.8, parameters_count=70_600_000_000, origin="imported")
    smol = entry(
        "SmolLM2-135M-Instruct", "Q4_1", 5.9, parameters_count=134_515_008, context_tokens=8192, origin="starter"
    )
    odd = entry("Mamba9-3B", "Q5_K_M", 5.6, parameters_count=3_000_000_000, architecture="mamba9", origin="imported")
    gone = entry("Mistral-Nemo-12B", "Q6_K", 6.6, fault="Part 2 of 3 is not there.", origin="jan")
    fits = ladder_fits(llama) | {copy.key: fit(copy, 59_392, 7.42)}
    fits |= {qwen.key: fit(qwen, 40_960, 7.38), gemma.key: fit(gemma, 24_576, 4.9), huge.key: fit(huge, 0, 0.9)}
    fits |= {smol.key: fit(smol, 8192, 151.0, is_speed_measured=True), odd.key: fit(odd, None)}
    return [smol, *llama, copy, qwen, gemma, huge, odd, gone], fits
