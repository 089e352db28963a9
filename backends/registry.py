"""Which backends exist. A new one is a folder and a line here.

The engine's module is imported only in a worker: nothing heavy is loaded by reading this table.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from importlib import metadata

from backends.engine import Engine

# Kinds of model: a GGUF file, a folder of safetensors with a config.
GGUF, FOLDER = "gguf", "folder"


@dataclass(frozen=True, slots=True)
class Backend:
    """A kind of engine, and what the program must know of it before a worker has said anything.

    Attributes:
        name: what commands and settings call it.
        title: what people read.
        module: the module that holds the engine class.
        class_name: the engine class.
        distribution: the installed package that is the engine's library, "" for none.
        loads: the kinds of model it loads: GGUF, FOLDER; none for an engine that is not for people's models.
        kv_types: how it can keep K and V, the exact one first; none where it does not matter.
        devices: what may follow --device, without a number behind a colon.
        takes_gpu_layers: whether single layers can be put on a card; else a model lies on one device as a whole.
        serves_many: whether it works on several requests in one step; else they wait for each other.
        can_probe: whether its allocator tells what a load would take, without one.
        has_rungs: whether KV cache, batching and reuse can be switched off one by one, for `cutaway bench --ladder`.
        packages: what to install where the library is missing; "" where it always comes along.
    """

    name: str
    title: str
    module: str
    class_name: str
    distribution: str = ""
    loads: frozenset[str] = frozenset()
    kv_types: tuple[str, ...] = ()
    devices: tuple[str, ...] = ("cpu",)
    takes_gpu_layers: bool = False
    serves_many: bool = False
    can_probe: bool = False
    has_rungs: bool = False
    packages: str = ""

    @property
    def version(self) -> str:
        """The library's installed version; "" when it is not installed."""
        try:
            return metadata.version(self.distribution) if self.distribution else "1"
        except metadata.PackageNotFoundError:
            return ""

    @property
    def is_installed(self) -> bool:
        """Whether the engine's library is there."""
        return self.version != ""

    def can_store(self, kv_type: str) -> bool:
        """Say whether K and V can be kept as this type."""
        return not self.kv_types or kv_type in self.kv_types


# The order is that of preference: of the backends that load a model, the first one that is installed takes it.
BACKENDS = {
    backend.name: backend
    for backend in (
        Backend(
            name="llama_cpp",
            title="llama.cpp",
            module="backends.llama_cpp_engine.engine",
            class_name="LlamaCppEngine",
            distribution="llama-cpp-python",
            loads=frozenset({GGUF}),
            kv_types=("f16", "f32", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"),
            takes_gpu_layers=True,
            can_probe=True,
        ),
        Backend(
            name="torch",
            title="torch",
            module="backends.torch_engine.engine",
            class_name="TorchEngine",
            distribution="torch",
            loads=frozenset({GGUF, FOLDER}),
            kv_types=("f16", "bf16", "f32"),
            devices=("cpu", "gpu", "cuda", "mps"),
            serves_many=True,
            has_rungs=True,
            packages="torch transformers",
        ),
        Backend("echo", "echo", "backends.echo_engine", "EchoEngine", can_probe=True, has_rungs=True),
    )
}


def create_engine(name: str) -> Engine:
    """Return a fresh engine of this backend; raises KeyError for an unknown name, ImportError for a missing library."""
    backend = BACKENDS[name]
    engine: Engine = getattr(importlib.import_module(backend.module), backend.class_name)()
    return engine
