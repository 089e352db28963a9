"""The honest ladder: a small Llama that is trained here, whose F16 was never quantized, and its quantizations.

The starter model exists only as Q4_1; curves made from it are bent. This one gives the true curve. It is trained once,
by ladder_training.py in a process of its own, and kept in <cache>/cutaway/inputs/ under a name that its recipe, its
text and its makers' versions decide. "ci" takes about two minutes, "full" about forty:

    python tests/helpers/ladder_model.py [ci | full]

Quantizations are kept beside it; llama.cpp makes them (quantize_file.py), and the program's own code is not asked.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import filelock

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from tests.helpers import ladder_text  # found only once the tree is on sys.path

QUANTIZATIONS = ("Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q4_0", "Q3_K_M", "Q2_K")
LADDER = ("Q8_0", "Q6_K", "Q5_K_M", "Q4_K_M", "Q3_K_M", "Q2_K")  # each coarser than the one before
TRAINING_TIMEOUT_S = 1800.0  # for a test that may be the first to need it, on a machine that does other work, too

_HELPERS = Path(__file__).resolve().parent
_RECIPE_FILES = ("ladder_text.py", "ladder_training.py")
_MAKERS = ("torch", "transformers", "tokenizers", "gguf")
_MINUTES = {"ci": 2, "full": 40}
# One thread and no more: it stands beside other work, and the order of additions must not change.
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}


@dataclass(frozen=True)
class Ladder:
    """A trained model on disk.

    Attributes:
        folder: where its files lie.
    """

    folder: Path

    @property
    def f16(self) -> Path:
        """The model as it was trained, rounded to F16."""
        return self.folder / "model-F16.gguf"

    @property
    def tokenizer(self) -> Path:
        """The vocabulary in the tokenizers package's form."""
        return self.folder / "tokenizer.json"

    @property
    def held_out(self) -> Path:
        """Windows that it never learned from, .npy, int32 [windows, 512]."""
        return self.folder / "held_out.npy"

    @property
    def record(self) -> dict[str, Any]:
        """How the training went: losses in nats a token, sizes, seconds."""
        found: dict[str, Any] = json.loads((self.folder / "training.json").read_text(encoding="utf-8"))
        return found

    def quantized(self, quantization: str) -> Path:
        """Return a quantization of it, which is made when it is not there yet."""
        return quantized(self.f16, quantization, self.folder)


def ladder(variant: Literal["ci", "full"] = "ci") -> Ladder:
    """Return the trained model; the first call of a variant trains it."""
    folder = inputs_folder() / f"ladder-{variant}-{recipe_hash()}"
    with _only_one(folder):
        if not folder.is_dir():
            with tempfile.TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent) as made:
                part = Path(made) / folder.name
                part.mkdir()
                _run(_HELPERS / "ladder_training.py", variant, str(part), environment=_ONE_THREAD)
                part.rename(folder)
    return Ladder(folder)


def starter_quantized(starter: Path, quantization: str) -> Path:
    """Return a quantization of the starter model by way of F16: bent, since it was Q4_1, but the same everywhere."""
    folder = inputs_folder() / f"starter-{_file_hash(starter)}"
    folder.mkdir(parents=True, exist_ok=True)
    f16 = quantized(starter, "F16", folder)
    return f16 if quantization == "F16" else quantized(f16, quantization, folder)


def quantized(source: Path, quantization: str, folder: Path, threads: int = 1) -> Path:
    """Return the source in a quantization, which llama.cpp makes when it is not in the folder yet."""
    version = importlib.metadata.version("llama-cpp-python")
    target = folder / f"model-{quantization}-{version}.gguf"
    with _only_one(target):
        if not target.is_file():
            part = target.with_suffix(".part")
            _run(_HELPERS / "quantize_file.py", str(source), str(part), quantization, str(threads))
            part.rename(target)
    return target


def inputs_folder() -> Path:
    """Return the folder outside the tree where made and downloaded inputs of tests are kept."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "cutaway" / "inputs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def recipe_hash() -> str:
    """Return what names a trained model: another recipe, text or maker makes another one."""
    parts = [(_HELPERS / name).read_bytes() for name in _RECIPE_FILES]
    parts += [f"{name} {importlib.metadata.version(name)}".encode() for name in _MAKERS]
    parts.append(ladder_text.training_text().encode())
    return hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()[:12]


def _only_one(path: Path) -> filelock.BaseFileLock:
    """Two runs of the tests never make the same file at once; the second waits and finds it."""
    return filelock.FileLock(f"{path}.lock")


def _file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:12]


def _run(program: Path, *arguments: str, environment: dict[str, str] | None = None) -> None:
    done = subprocess.run(
        [sys.executable, str(program), *arguments],
        capture_output=True, text=True, errors="replace", env={**os.environ, **(environment or {})}, check=False,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"{program.name} ended with {done.returncode}:\n{done.stderr[-4000:]}")


if __name__ == "__main__":
    asked = sys.argv[1] if len(sys.argv) > 1 else "ci"
    print(f"Some {_MINUTES[asked]} minutes, unless it is there.")
    found = ladder("full" if asked == "full" else "ci")
    print(found.folder, json.dumps({key: value for key, value in found.record.items() if key != "losses"}))
