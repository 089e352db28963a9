"""Which backends can load a model, and which one does when nobody chose.

All of it follows from the registry's facts: a backend that is added there is offered everywhere. A person's own choice
for a model goes before the settings', and both before the registry's order. Knows no engine and no library.
"""

from __future__ import annotations

from app.errors import Words, words_for
from app.i18n import _
from app.models.entry import ModelEntry
from backends import protocol
from backends.errors import EngineError, ErrorCode, NoticeCode, Parameter
from backends.registry import BACKENDS, FOLDER, GGUF, Backend

# What a person's model file is called in words; ModelEntry.format is what the library calls it.
_KINDS = {"gguf": GGUF, "safetensors": FOLDER}


def backends_for(entry: ModelEntry) -> tuple[Backend, ...]:
    """Return the backends that load models of this kind, the preferred one first; installed or not."""
    return tuple(backend for backend in BACKENDS.values() if kind_of_entry(entry) in backend.loads)


def kind_of_entry(entry: ModelEntry) -> str:
    """Return the kind of a model as the registry calls it."""
    return _KINDS[entry.format]


def is_loadable(entry: ModelEntry) -> bool:
    """Say whether a backend that is installed loads models of this kind."""
    return not entry.fault and any(backend.is_installed for backend in backends_for(entry))


def chosen_backend(entry: ModelEntry, setting: str = "") -> str:
    """Return the name of the backend that takes a model.

    Args:
        entry: the model, whose own default counts first.
        setting: what the person chose for every model; "" for nothing.
    """
    fitting = backends_for(entry)
    names = [backend.name for backend in fitting]
    for wished in (entry.defaults.backend, setting):
        if wished in names:
            return str(wished)
    installed = [backend.name for backend in fitting if backend.is_installed]
    return (installed or names)[0]


def own_choice(entry: ModelEntry, backend: str, setting: str = "") -> str | None:
    """Return what to keep as the model's own default so that this backend takes it; None where it does anyway."""
    names = [found.name for found in backends_for(entry)]
    installed = [found.name for found in backends_for(entry) if found.is_installed]
    anyway = setting if setting in names else (installed or names)[0]
    return None if backend == anyway else backend


def check_backend(name: str, path: str, kind: str) -> None:
    """Raise EngineError when a backend is not installed or loads no models of this kind.

    Args:
        name: of the registry.
        path: of the model, for the words.
        kind: GGUF or FOLDER.
    """
    backend = BACKENDS[name]
    if not backend.is_installed and backend.packages:
        raise EngineError(ErrorCode.ENGINE_NOT_INSTALLED, backend=backend.title, packages=backend.packages)
    if kind not in backend.loads:
        raise EngineError(ErrorCode.WRONG_KIND, path=path, backend=backend.title, takes=takes_words(backend))


def takes_words(backend: Backend) -> str:
    """Return what a backend loads, for a sentence."""
    words = {GGUF: _("GGUF files"), FOLDER: _("folders of safetensors")}
    return _(" and ").join(text for kind, text in words.items() if kind in backend.loads)


def quantization_text(own: str, told: str) -> str:
    """Return how the weights are stored, and how they are computed with where the engine says so: "Q4_1 as bf16".

    Args:
        own: the library's name of the quantization.
        told: the engine's (ModelLoaded.quantization).
    """
    stored, told_as, computed = told.partition(" as ")
    if not told_as:
        return own or told
    return _("{stored} as {computed}").format(stored=own or stored, computed=computed)


def load_notices(wanted: protocol.LoadParams, loaded: protocol.ModelLoaded) -> list[tuple[str, Words]]:
    """Return what a person must be told of a load that came out otherwise than asked for, each with its code.

    Args:
        wanted: how the person wanted it loaded, whatever the backend.
        loaded: what came of it.
    """
    backend = BACKENDS.get(loaded.backend)
    parameters: dict[str, Parameter] = {
        "context_tokens": loaded.context_tokens,
        "path": loaded.model_path,
        "note": loaded.path_note,
        "asked": wanted.kv_type,
        "kv_type": loaded.kv_type,
        "backend": backend.title if backend is not None else loaded.backend,
        "device": loaded.device,
        "quantization": loaded.quantization,
    }
    codes = list(loaded.notices)
    if loaded.attention_path == "plain":
        codes.append(NoticeCode.PLAIN_PATH)
    if backend is not None and not backend.can_store(wanted.kv_type):
        codes.append(NoticeCode.KV_TYPE_NOT_USED)
    return [(code, words_for(code, parameters)) for code in dict.fromkeys(codes)]
