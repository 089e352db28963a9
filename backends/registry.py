"""Which backends exist. A new one is a folder and a line here.

The engine's module is imported only in a worker: nothing heavy is loaded by reading this table.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from importlib import metadata

from backends.engine import Engine


@dataclass(frozen=True, slots=True)
class Backend:
    """A kind of engine.

    Attributes:
        name: what commands and settings call it.
        title: what people read.
        module: the module that holds the engine class.
        class_name: the engine class.
        distribution: the installed package that is the engine's library, "" for none.
    """

    name: str
    title: str
    module: str
    class_name: str
    distribution: str = ""

    @property
    def version(self) -> str:
        """The library's installed version; "" when it is not installed."""
        try:
            return metadata.version(self.distribution) if self.distribution else "1"
        except metadata.PackageNotFoundError:
            return ""


BACKENDS = {
    backend.name: backend
    for backend in (
        Backend("llama_cpp", "llama.cpp", "backends.llama_cpp_engine.engine", "LlamaCppEngine", "llama-cpp-python"),
        Backend("echo", "echo", "backends.echo_engine", "EchoEngine"),
    )
}


def create_engine(name: str) -> Engine:
    """Return a fresh engine of this backend; raises KeyError for an unknown name, ImportError for a missing library."""
    backend = BACKENDS[name]
    engine: Engine = getattr(importlib.import_module(backend.module), backend.class_name)()
    return engine
