"""A window whose backends are both scripts: the worker is the real one, and so are the names, but for the weights.

What the program knows of llama.cpp and torch comes from the registry as always; only the engines in the worker are
echo engines under those names, so that a switch from one to the other can be tried without a model.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import msgspec

from app.context import AppContext, build_context
from backends import protocol
from backends.client import WorkerCommand
from backends.echo_engine import EchoEngine, EchoScript
from tests.helpers.echo_window import ANSWER, EchoLibrary, entry_for
from tests.helpers.engine_client import write_script
from tests.helpers.gguf_files import TinyGguf

ROOT = Path(__file__).resolve().parent.parent.parent
NAME = "SmolLM2-135M-Instruct"

_WORKER = """\
import sys
sys.path.insert(0, {root!r})
from tests.helpers import two_engines
two_engines.run({script!r}, {torch!r})
"""

# What the stand-in for torch says of its load beside what a script can say, and why it fails to load: set by run().
_TOLD: dict[str, object] = {}
_SCRIPT: list[str] = []


class LlamaLike(EchoEngine):
    """An echo engine that goes by llama.cpp's name; the model's file is not read."""

    backend: ClassVar[str] = "llama_cpp"

    def load(self, command, report):
        """Load the script whatever the model."""
        told = super().load(protocol.LoadModel(_SCRIPT[0], command.params), report)
        return msgspec.structs.replace(
            told, model_path=command.model_path, quantization="Q4_1", memory=_memory(91), kv_type=command.params.kv_type
        )


class TorchLike(LlamaLike):
    """The same by torch's name."""

    backend: ClassVar[str] = "torch"

    def load(self, command, report):
        """Load the script, or fail as it was told to."""
        if _TOLD.get("fails"):
            os._exit(1)
        told = super().load(command, report)
        fields = {"quantization": "Q4_1 as bf16", "attention_path": "paged", "attention_kernel": "sdpa", **_TOLD}
        return msgspec.structs.replace(told, memory=_memory(257), kv_type="bf16", **fields)


def _memory(weights_mib: int) -> protocol.MemorySplit:
    return protocol.MemorySplit(
        weights_bytes=weights_mib * 2**20, kv_reserved_bytes=180 * 2**20, compute_bytes=30 * 2**20
    )


def run(script: str, torch: str) -> None:
    """Be the worker."""
    from backends import registry, worker
    from tests.helpers import two_engines

    two_engines._SCRIPT.append(script)
    two_engines._TOLD.update(json.loads(torch))
    for name, class_name in (("llama_cpp", "LlamaLike"), ("torch", "TorchLike")):
        registry.BACKENDS[name] = replace(
            registry.BACKENDS[name], module=two_engines.__name__, class_name=class_name, distribution=""
        )
    code = worker.main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)


def two_engine_context(folder: Path, script: EchoScript | None = None, **torch: object) -> AppContext:
    """Return a context with one GGUF that both backends load.

    Args:
        folder: where the script and the model are written.
        script: what both engines answer.
        **torch: fields of ModelLoaded that the stand-in for torch says; fails=True has it end while it loads.
    """
    path = write_script(folder / "script.json", script or EchoScript(ANSWER, context_tokens=8192))
    worker = folder / "backends" / "worker.py"  # told from other processes by this name
    worker.parent.mkdir()
    worker.write_text(_WORKER.format(root=str(ROOT), script=str(path), torch=json.dumps(torch)), encoding="utf-8")
    model = TinyGguf().write(folder / "SmolLM2.gguf")
    entry = entry_for(model, NAME, quantization="Q4_1", origin="starter", architecture="llama")
    command = WorkerCommand((sys.executable, "-I", str(worker)))
    return build_context(command=command, library=EchoLibrary([entry]))
