"""llama.cpp's own perplexity tool: run it, keep what it prints, read the figures.

tests/benchmarks/build_peers.sh builds it. What it printed for the starter's quantizations lies in
tests/data/perplexity/, each file with the commands that made it; to make them again:

    python tests/helpers/perplexity_tool.py

A batch of one window, since the tool would otherwise compute four side by side: the same sums in another order. Another
kind of processor adds in another order, too. That moves a Q4_K_M's mean KL over four windows by half a hundredth and
its percentiles by six (measured with llama.cpp's `--no-repack`), so each file names the processor's features.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from tests.helpers import ladder_model  # found only once the tree is on sys.path

ROOT = Path(__file__).resolve().parent.parent.parent
OUTPUTS = ROOT / "tests" / "data" / "perplexity"
TEXT = ROOT / "resources" / "evaluation" / "encyclopaedia.txt"
WINDOW_TOKENS = 512
CHUNKS = {"starter": 4, "ladder": 8}
_SIZES = (*("-c", str(WINDOW_TOKENS), "-b", str(WINDOW_TOKENS), "-ub", str(WINDOW_TOKENS)), *("-t", "2"))
_TIMEOUT_S = 3600.0
_LAST_WORDS, _ATTEMPTS = "Same top p:", 6
_NUMBER = r"\s*(-?[0-9.]+|-?nan)"
_LINES = {
    "perplexity": (r"Mean PPL\(Q\)\s*:" + _NUMBER, 1.0),
    "perplexity_error": (r"Mean PPL\(Q\)\s*:.*±" + _NUMBER, 1.0),
    "reference_perplexity": (r"Mean PPL\(base\)\s*:" + _NUMBER, 1.0),
    "perplexity_ratio": (r"Mean PPL\(Q\)/PPL\(base\)\s*:" + _NUMBER, 1.0),
    "perplexity_ratio_error": (r"Mean PPL\(Q\)/PPL\(base\)\s*:.*±" + _NUMBER, 1.0),
    "log_perplexity_correlation": (r"Cor\(.*\):" + _NUMBER, 0.01),
    "kl_mean": (r"Mean    KLD:" + _NUMBER, 1.0),
    "kl_error": (r"Mean    KLD:.*±" + _NUMBER, 1.0),
    "kl_median": (r"Median  KLD:" + _NUMBER, 1.0),
    "kl_p90": (r"90.0%   KLD:" + _NUMBER, 1.0),
    "kl_p95": (r"95.0%   KLD:" + _NUMBER, 1.0),
    "kl_p99": (r"99.0%   KLD:" + _NUMBER, 1.0),
    "kl_p999": (r"99.9%   KLD:" + _NUMBER, 1.0),
    "kl_max": (r"Maximum KLD:" + _NUMBER, 1.0),
    "delta_p_mean": (r"Mean    Δp:" + _NUMBER, 0.01),
    "delta_p_rms": (r"RMS Δp    :" + _NUMBER, 0.01),
    "same_top": (r"Same top p:" + _NUMBER, 0.01),
    "same_top_error": (r"Same top p:.*±" + _NUMBER, 0.01),
}
_ROW = re.compile(r"^ *\d+" + r" +(-?[0-9.]+) ± +([0-9.]+)(?: %)?" * 5 + "$", re.MULTILINE)
_ROW_FIGURES = (
    *(("perplexity", 1.0), ("perplexity_error", 1.0), ("", 1.0), ("", 1.0), ("kl_mean", 1.0), ("kl_error", 1.0)),
    *(("delta_p_rms", 0.01), ("", 1.0), ("same_top", 0.01), ("same_top_error", 0.01)),
)
_FEATURES = re.compile(r"CPU : [A-Z].*(?= \|)")
_HASH_LINE = re.compile(r"^# (text|model|reference) (\S+) sha256 ([0-9a-f]{64})$", re.MULTILINE)


@dataclass(frozen=True)
class Printed:
    """A figure as the tool prints it.

    Attributes:
        value: in our units: shares of 1, nats.
        step: what the last printed digit is worth.
    """

    value: float
    step: float


@dataclass(frozen=True)
class Output:
    """What the tool printed for one quantization.

    Attributes:
        raw: all of it, under the commands.
    """

    raw: str

    @property
    def figures(self) -> dict[str, Printed]:
        """Its figures under the names of app/compare/results.Quality."""
        return {name: self._figure(pattern, unit) for name, (pattern, unit) in _LINES.items()}

    @property
    def chunks(self) -> int:
        """How many windows were scored."""
        return len(self.rows)

    @property
    def rows(self) -> list[dict[str, Printed]]:
        """Some figures after each window, over all windows until then."""
        return [
            {name: _printed(text, unit) for text, (name, unit) in zip(row, _ROW_FIGURES, strict=True) if name}
            for row in _ROW.findall(self.raw)
        ]

    @property
    def hashes(self) -> dict[str, str]:
        """SHA-256 of the "text", the "model" and the "reference" that it read."""
        return {kind: digest for kind, _name, digest in _HASH_LINE.findall(self.raw)}

    @property
    def features(self) -> str:
        """The processor's features that its llama.cpp used."""
        return features_in(self.raw)

    def _figure(self, pattern: str, unit: float) -> Printed:
        match = re.search(pattern, self.raw)
        if match is None:
            raise ValueError(f"the tool printed nothing like {pattern}")
        return _printed(match[1], unit)


def tool_path() -> Path | None:
    """Return the tool; None where it was not built."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = cache / "cutaway" / "peers" / metadata.version("llama-cpp-python") / "bin" / "llama-perplexity"
    return path if path.is_file() else None


def features_in(text: str) -> str:
    """Return llama.cpp's list of a processor's features, "" where the text holds none."""
    match = _FEATURES.search(text)
    return match[0] if match else ""


def compare(tool: Path, reference: Path, candidates: list[Path], text: Path, chunks: int) -> list[Output]:
    """Have the tool score a text with the reference and with each candidate; returns what it printed of these.

    Raises:
        RuntimeError: it failed.
    """
    with tempfile.TemporaryDirectory(prefix="perplexity") as folder:
        base = Path(folder) / "reference.logits"
        first = _command(tool, reference, "-f", text, "--chunks", str(chunks), "--kl-divergence-base", base)
        _table, log = _run(first)
        found = []
        for candidate in candidates:
            second = _command(tool, candidate, "--kl-divergence", "--kl-divergence-base", base)
            head = [
                "# What llama.cpp's perplexity tool printed after these two commands, its log and its times left out.",
                *(f"# $ {_without_folders(command)}" for command in (first, second)),
                f"# llama.cpp of llama-cpp-python {tool.parent.parent.name}, built by tests/benchmarks/build_peers.sh",
                f"# {features_in(log)} |",
                *(
                    f"# {kind} {path.name} sha256 {sha256(path)}"
                    for kind, path in (("text", text), ("reference", reference), ("model", candidate))
                ),
            ]
            printed = _run_whole(second)
            found.append(Output("\n".join([*head, "", "".join(printed.partition("chunk ")[1:])])))
    return found


def sha256(path: Path) -> str:
    """Return the hash of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def checked_in(model: str, quantization: str) -> Output:
    """Return what was printed for a quantization of this model ("starter") when the files were made."""
    return Output((OUTPUTS / f"{model}-{quantization}.txt").read_text(encoding="utf-8"))


def _printed(text: str, unit: float) -> Printed:
    return Printed(float(text) * unit, unit * 10.0 ** -len(text.partition(".")[2]))


def _command(tool: Path, model: Path, *arguments: str | Path) -> list[str]:
    return [str(tool), "-m", str(model), *_SIZES, *(str(argument) for argument in arguments)]


def _without_folders(command: list[str]) -> str:
    return " ".join(Path(part).name if part.startswith("/") else part for part in command)


def _run_whole(command: list[str]) -> str:
    """Return what the tool printed, to the last line: its log's thread may be cut off when it exits."""
    for _attempt in range(_ATTEMPTS):
        printed, log = _run(command)
        if _LAST_WORDS in printed:
            return printed
    raise RuntimeError(f"{_without_folders(command)} printed no statistics:\n{printed}{log}")


def _run(command: list[str]) -> tuple[str, str]:
    """Return what the tool printed and what it logged."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=_TIMEOUT_S,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{_without_folders(command)}: {done.returncode}\n{done.stderr}")
    return done.stdout, done.stderr


def main(starter: Path) -> None:
    """Make the checked-in files of the starter model again."""
    tool = tool_path()
    if tool is None:
        raise SystemExit("llama-perplexity is not there: run tests/benchmarks/build_peers.sh")
    OUTPUTS.mkdir(parents=True, exist_ok=True)
    paths = [ladder_model.starter_quantized(starter, name) for name in ladder_model.QUANTIZATIONS]
    reference = ladder_model.starter_quantized(starter, "F16")
    outputs = compare(tool, reference, paths, TEXT, CHUNKS["starter"])
    for name, output in zip(ladder_model.QUANTIZATIONS, outputs, strict=True):
        (OUTPUTS / f"starter-{name}.txt").write_text(output.raw, encoding="utf-8")
        print(name, output.figures["kl_mean"].value)


if __name__ == "__main__":
    from tests.benchmarks.measure import starter_model

    main(starter_model())
