"""An invented hub for tests and pictures of the models screen: repos, rows, headers, downloads that agree."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from app.downloads.types import Download, DownloadState, FileRef
from app.errors import Words
from app.hub.curated import Pick, picks
from app.hub.types import Publisher, QuantizationRow, RepoDetail, RepoSummary, SearchPage
from app.models.fit import fit
from app.models.fit_types import Device, Fit, FitQuestion, Machine
from app.models.shape import LayerShape, ModelShape
from backends.protocol import LoadParams

GIB, MIB = 2**30, 2**20
ENDPOINT = "https://huggingface.co"
REVISION = "5a0d9ae2f1c3b4d5e6f708192a3b4c5d6e7f8091"
LLAMA = "bartowski/Llama-3.1-8B-Instruct-GGUF"
NOW_S = 1_796_040_000.0  # 30 November 2026
MACHINE = Machine(
    (
        Device("CPU", "This computer", int(15.6 * GIB), int(12.1 * GIB), 3.1e10),
        Device("CUDA0", "RTX 4060", 8 * GIB, int(7.1 * GIB), 2.4e11),
    )
)
LADDER = (
    ("Q2_K", 3.16),
    ("Q3_K_M", 4.0),
    ("Q4_K_M", 4.89),
    ("Q5_K_M", 5.7),
    ("Q6_K", 6.56),
    ("Q8_0", 8.5),
    ("F16", 16.0),
)
_WEIGHTS = 8_030_261_312


def file(repo: str, path: str, size_bytes: int) -> FileRef:
    """Return a file of a repo; its hash is that of its name."""
    sha256 = hashlib.sha256(f"{repo}/{path}".encode()).hexdigest()
    return FileRef(ENDPOINT, repo, REVISION, path, size_bytes, sha256, sha256)


def shape(bits: float, weights: int = _WEIGHTS, layers: int = 32) -> ModelShape:
    """Return the shape of a Llama of 8 B whose weights take so many bits each."""
    size = int(weights * bits / 8)
    layer = LayerShape(8, 128, 128, weights_bytes=int(size * 0.9) // layers, read_bytes=int(size * 0.9) // layers)
    return ModelShape(
        architecture="llama",
        context_tokens=131_072,
        embedding_length=4096,
        feed_forward_length=14_336,
        head_count=32,
        vocabulary_tokens=128_256,
        parameters_count=weights,
        weights_bytes=size,
        input_bytes=size // 20,
        output_bytes=size // 20,
        read_bytes=int(size * 0.95),
        layers=(layer,) * layers,
    )


def row(repo: str, quantization: str, bits: float, *, parts: int = 1, is_read: bool = True) -> QuantizationRow:
    """Return a row of a repo, in one file or in several."""
    name = repo.rpartition("/")[2].removesuffix("-GGUF")
    size = int(_WEIGHTS * bits / 8)
    names = [f"{name}-{quantization}.gguf"]
    if parts > 1:
        names = [f"{quantization}/{name}-{quantization}-{n:05}-of-{parts:05}.gguf" for n in range(1, parts + 1)]
    made = QuantizationRow(
        key=quantization,
        quantization=quantization,
        files=tuple(file(repo, path, size // parts) for path in names),
        size_bytes=size // parts * parts,
    )
    return read_row(made, bits) if is_read else made


def read_row(unread: QuantizationRow, bits: float, imatrix: bool = True) -> QuantizationRow:
    """Return a row as its header tells of it."""
    facts = {"bits_per_weight": bits, "fallback": 0, "imatrix": imatrix, "shape": shape(bits)}
    return msgspec.structs.replace(unread, **facts, is_shape_exact=True, has_chat_template=True, state="read")


def summary(repo: str = LLAMA, **fields: object) -> RepoSummary:
    """Return a repo as a list shows it."""
    owner, _slash, name = repo.partition("/")
    made: dict[str, object] = {
        "name": name,
        "owner": owner,
        "downloads": 1_204_000,
        "likes": 312,
        "updated": "2026-11-27T09:30:00+00:00",
        "licence": "llama3.1",
        "tags": ("gguf", "en"),
        "parameters_count": _WEIGHTS,
        "formats": ("gguf",),
        "context_tokens": 131_072,
        "architecture": "llama",
        "base_models": ("meta-llama/Llama-3.1-8B-Instruct",),
    }
    return RepoSummary(repo=repo, **{**made, **fields})


def detail(repo: str = LLAMA, *, is_read: bool = True, **fields: object) -> RepoDetail:
    """Return a repo with a ladder of quantizations."""
    about = fields.pop("summary", summary(repo))
    assert isinstance(about, RepoSummary)
    made: dict[str, object] = {
        "revision": REVISION,
        "card_markdown": CARD,
        "card_links": (
            ("Original model", "https://huggingface.co/meta-llama/Llama-3.1-8B-Instruct"),
            ("llama.cpp", "https://github.com/ggml-org/llama.cpp/releases/tag/b4000"),
        ),
        "rows": tuple(row(repo, name, bits, is_read=is_read) for name, bits in LADDER),
        "access": "open",
        "page_url": f"{ENDPOINT}/{repo}",
    }
    return RepoDetail(summary=about, **{**made, **fields})


def llama_3(**fields: object) -> RepoDetail:
    """Return the one model of which quality figures were published."""
    repo = "QuantFactory/Meta-Llama-3-8B-Instruct-GGUF"
    about = summary(repo, base_models=("meta-llama/Meta-Llama-3-8B-Instruct",), licence="llama3", downloads=48_100)
    return detail(repo, summary=about, **fields)


def large_repo() -> RepoDetail:
    """Return a vision model with split sets, a projector, a stranger's quantization and a broken set."""
    repo = "unsloth/Gemma-3-27B-it-GGUF"
    rows = [
        row(repo, "Q4_K_M", 4.85),
        row(repo, "UD-Q5_K_XL", 5.8),
        row(repo, "Q8_0", 8.5, parts=2),
        row(repo, "BF16", 16.0, parts=3),
        msgspec.structs.replace(row(repo, "ZQ3_X", 3.4), bits_per_weight=None, state="failed", fault="It is no GGUF."),
    ]
    broken = row(repo, "Q6_K", 6.6, parts=2, is_read=False)
    fault = "Part 2 of 2 is missing at the hub."
    rows.append(msgspec.structs.replace(broken, files=broken.files[:1], state="failed", fault=fault, is_broken=True))
    projectors = (file(repo, "mmproj-F32.gguf", 1_690 * MIB), file(repo, "mmproj-F16.gguf", 851 * MIB))
    about = summary(repo, licence="gemma", downloads=88_000, parameters_count=27_000_000_000, gated="manual")
    return detail(repo, summary=about, rows=tuple(rows), projectors=projectors, access="granted")


def fits(repo: RepoDetail, machine: Machine = MACHINE) -> dict[str, Fit]:
    """Return whether each row fits, as the program works it out."""
    return {one.key: fit_of(one.shape, machine) for one in repo.rows if one.shape is not None and not one.is_broken}


def fit_of(of: ModelShape | None, machine: Machine = MACHINE) -> Fit:
    """Return whether a shape fits."""
    return fit(of, FitQuestion(params=LoadParams(context_tokens=4096)), machine)


def picked(machine: Machine = MACHINE) -> list[Pick]:
    """Return the program's own picks for a machine."""
    return picks(machine, lambda of: fit_of(of, machine))


def search_page(**fields: object) -> SearchPage:
    """Return what a search found."""
    items = (
        summary(),
        summary("unsloth/Llama-3.2-3B-Instruct-GGUF", parameters_count=3_212_749_888, downloads=640_000),
        summary("meta-llama/Llama-3.3-70B-Instruct-GGUF", parameters_count=70_553_706_560, gated="manual"),
        summary(
            "QuantFactory/Meta-Llama-3-8B-Instruct-GGUF-with-a-name-that-goes-on",
            downloads=48_100,
            parameters_count=None,
        ),
        summary(
            "tiny/Llama-160M-GGUF", parameters_count=162_417_408, downloads=912, updated="2024-03-01T00:00:00+00:00"
        ),
    )
    return SearchPage(**{"items": items, "next_cursor": "next", **fields})


def publishers() -> list[Publisher]:
    """Return who offers the model."""
    names = tuple(name for name, _bits in LADDER)
    offers = (
        (LLAMA, "2026-11-27T09:30:00+00:00", True, names, 1_204_000),
        ("unsloth/Llama-3.1-8B-Instruct-GGUF", "2026-10-02T00:00:00+00:00", None, names[:3], 410_000),
        ("lmstudio-community/Llama-3.1-8B-Instruct-GGUF", "", False, names[2:4], 96_000),
    )
    return [
        Publisher(
            repo=repo,
            owner=repo.partition("/")[0],
            updated=updated,
            has_importance_matrix=matrix,
            quantizations=offered,
            downloads=count,
        )
        for repo, updated, matrix, offered, count in offers
    ]


def download(
    state: DownloadState, quantization: str = "Q4_K_M", part: float = 0.64, repo: str = LLAMA, **fields: object
) -> Download:
    """Return a download of a row."""
    bits = dict(LADDER).get(quantization, 4.89)
    found = row(repo, quantization, bits)
    made: dict[str, object] = {
        "download_id": f"{repo}:{quantization}",
        "title": f"{repo}:{quantization}",
        "files": found.files,
        "state": state,
        "done_bytes": int(found.size_bytes * part),
        "total_bytes": found.size_bytes,
    }
    if state is DownloadState.RUNNING:
        made |= {"speed_bytes_per_s": 48e6, "left_s": 40.0}
    if state is DownloadState.VERIFYING:
        made |= {"done_bytes": found.size_bytes, "checked_bytes": int(found.size_bytes * 0.38)}
    if state is DownloadState.DONE:
        made |= {"done_bytes": found.size_bytes, "path": Path(f"/models/{found.files[0].path}")}
    if state is DownloadState.WAITING:
        made |= {"retry_at": time.time() + 12, "words": Words("The connection broke off.", "It goes on by itself.")}
    return Download(**{**made, **fields})


def every_download() -> list[Download]:
    """Return one download in each state, and what an earlier time left."""
    state = DownloadState
    failed = Words("The server has no file of this name any more (status 404).", "Choose another file.")
    gated = Words("huggingface.co gives this only to those who accepted the licence.", "Accept it, then try again.")
    full = Words("The disk is full: nothing more can be written to /home/ada/.cache.", "Free some space, then resume.")
    leftover = download(state.PAUSED, "F16", 0.2, files=(), title="Mistral-Nemo-12B-Q6_K.gguf", is_leftover=True)
    return [
        download(state.RUNNING),
        download(state.RUNNING, "Q8_0", 0.02, speed_bytes_per_s=3.2e6, left_s=2_480.0),
        download(state.QUEUED, "Q5_K_M", 0.0),
        download(state.VERIFYING, "Q6_K"),
        download(state.PAUSED, "Q3_K_M", 0.31),
        download(state.WAITING, "Q2_K", 0.5),
        download(state.FAILED, "IQ4_XS", 0.12, words=failed, action="choose"),
        download(state.FAILED, "Q4_0", 0.0, repo="meta-llama/Llama-3.3-70B", words=gated, action="token"),
        download(state.PAUSED, "Q5_K_S", 0.8, words=full, action="free_space"),
        download(state.DONE, "Q4_K_S"),
        msgspec.structs.replace(leftover, download_id="leftover"),
    ]


def without_gpu(machine: Machine = MACHINE) -> Machine:
    """Return the machine without its graphics card."""
    return replace(machine, devices=machine.devices[:1])


def table_downloads() -> Sequence[Download]:
    """Return downloads of some rows of one repo, in different states."""
    state = DownloadState
    return [
        download(state.RUNNING),
        download(state.PAUSED, "Q3_K_M", 0.31),
        download(state.VERIFYING, "Q5_K_M"),
        download(state.QUEUED, "Q6_K", 0.0),
        download(state.FAILED, "Q8_0", 0.12, words=Words("The server is busy.", "Try again later."), action="retry"),
    ]


CARD = """# Llamacpp imatrix quantizations of Llama 3.1 8B Instruct

Using **llama.cpp** release b4000 for quantization.

## Prompt format

```
<|begin_of_text|><|start_header_id|>system<|end_header_id|>

{system_prompt}<|eot_id|>
```

## Which file should I choose?

The first thing to figure out is how big a model you can run. To do this, you need to know how much memory you have.

| Filename | Quant type | File size |
| -------- | ---------- | --------- |
| Llama-3.1-8B-Instruct-Q4_K_M.gguf | Q4_K_M | 4.92GB |
| Llama-3.1-8B-Instruct-Q8_0.gguf | Q8_0 | 8.54GB |

- If you want your model running as FAST as possible, fit the whole thing on your GPU.
- For the best quality add system RAM and VRAM together.

### Credits

Thank you to everybody who made the calibration data.
"""
