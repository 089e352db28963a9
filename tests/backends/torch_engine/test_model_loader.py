"""From files to a model that writes the same text, offline; what lies is refused in words before it takes memory."""

from __future__ import annotations

import http.server
import importlib.util
import json
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from backends.errors import EngineError, ErrorCode, NoticeCode
from backends.protocol import LoadParams
from backends.torch_engine import device as devices
from backends.torch_engine import model_loader
from backends.torch_engine.attention_hook import NAME
from backends.torch_engine.model_loader import LoadedModel, computes_in, load_model
from tests.helpers.safetensors_files import dumped, mutated, mutated_text
from tests.helpers.tiny_models import tiny_model
from tests.helpers.torch_folders import TEMPLATE, change_json, tiny_folder, tiny_gguf, write_model

CPU = torch.device("cpu")
ROOT = Path(__file__).resolve().parents[3]


def load(path: Path, **params: object) -> LoadedModel:
    return load_model(path, LoadParams(**params), CPU, lambda _event: None)


def refused(path: Path, **params: object) -> EngineError:
    with pytest.raises(EngineError) as caught:
        load(path, **params)
    return caught.value


def logits(module: torch.nn.Module) -> torch.Tensor:
    """Return [1, 9, V] of a fixed text by the model's own eager attention."""
    module.set_attn_implementation("eager")
    with torch.inference_mode():
        return module(input_ids=torch.arange(3, 12)[None], use_cache=False).logits


# ------------------------------------------------------------------------------------------------ honest


@pytest.mark.parametrize("kind", ["llama", "qwen3", "gemma3_text", "qwen3_moe", "mixtral", "phi3"])
def test_a_folder_becomes_the_model_that_was_saved(tmp_path, kind) -> None:
    model = tiny_model(kind)
    write_model(tmp_path / "model", model)
    loaded = load(tmp_path / "model")
    torch.testing.assert_close(logits(loaded.module), logits(model), rtol=0, atol=1e-6)
    assert loaded.parameters == sum(one.numel() for one in model.parameters())


@pytest.mark.parametrize("kind", ["llama", "qwen2", "qwen3", "gemma2", "phi3"])
def test_a_gguf_becomes_the_model_that_was_written(tmp_path, kind) -> None:
    model = tiny_model(kind)
    loaded = load(tiny_gguf(tmp_path / "x.gguf", model))
    torch.testing.assert_close(logits(loaded.module), logits(model), rtol=0, atol=2e-5)
    assert loaded.quantization == "F32"


def test_what_is_known_of_a_model(tmp_path) -> None:
    reported = []
    folder = tiny_folder(tmp_path / "model", tie_word_embeddings=True)
    loaded = load_model(folder, LoadParams(), CPU, reported.append)
    assert (loaded.architecture, loaded.quantization, loaded.dtype, loaded.notices) == (
        "llama",
        "F32",
        torch.float32,
        (),
    )
    assert loaded.config._attn_implementation == NAME
    assert not loaded.module.training
    assert not any(one.requires_grad for one in loaded.module.parameters())
    assert loaded.weight_bytes >= 4 * loaded.parameters
    assert (loaded.chat_template, loaded.vocabulary.bos_text) == (TEMPLATE, "<|im_start|>")
    done = [event.done for event in reported]
    assert done == sorted(done)
    assert done[-1] == 1.0


def test_the_number_format_is_the_file_s_or_what_was_asked_for(tmp_path) -> None:
    folder = tmp_path / "model"
    write_model(folder, tiny_model("llama").bfloat16())
    assert (load(folder).dtype, load(folder).quantization) == (torch.bfloat16, "BF16")
    loaded = load(folder, dtype="float32")
    assert (loaded.dtype, loaded.quantization) == (torch.float32, "BF16 as f32")
    assert {one.dtype for one in loaded.module.parameters()} == {torch.float32}
    assert refused(folder, dtype="int3").code is ErrorCode.BAD_PARAMS


def test_a_device_that_does_not_compute_in_the_file_s_format_is_told(tmp_path, monkeypatch) -> None:
    folder = tmp_path / "model"
    write_model(folder, tiny_model("llama").bfloat16())
    monkeypatch.setattr(model_loader, "computes_in", lambda _device, dtype: dtype is not torch.bfloat16)
    loaded = load(folder)
    assert (loaded.dtype, loaded.notices) == (torch.float16, (NoticeCode.DTYPE_CHANGED.value,))
    assert computes_in(CPU, torch.bfloat16)
    assert not computes_in(CPU, torch.float64)


def test_a_load_inside_inference_mode_gives_a_model_that_runs(tmp_path) -> None:
    with torch.inference_mode():
        loaded = load(tiny_folder(tmp_path / "model"))
    assert torch.isfinite(logits(loaded.module)).all()


# ------------------------------------------------------------------------------------------------ offline

_CHILD = """
import sys, socket
sys.path.insert(0, {root!r})
from pathlib import Path
import torch
asked = []
connect = socket.socket.connect
socket.socket.connect = lambda self, address: (asked.append(address), connect(self, address))[1]
from backends.protocol import LoadParams
from backends.torch_engine.model_loader import load_model
for path in sys.argv[1:]:
    load_model(Path(path), LoadParams(), torch.device("cpu"), lambda event: None)
sys.exit(f"connected to {{asked}}" if asked else 0)
"""


class _Counter(http.server.BaseHTTPRequestHandler):
    """Stands in for the hub and counts."""

    requests: list[str]

    def do_GET(self) -> None:
        self.requests.append(self.path)
        self.send_error(404)

    do_HEAD = do_GET  # noqa: N815 - as the library calls it

    def log_message(self, *_args: object) -> None:
        """Say nothing."""


def test_a_load_asks_no_hub_and_writes_nothing_on_the_terminal(tmp_path) -> None:
    folder, file = tiny_folder(tmp_path / "model"), tiny_gguf(tmp_path / "x.gguf", tiny_model("qwen3"))
    handler = type("Handler", (_Counter,), {"requests": []})
    server = http.server.HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("HF_", "TRANSFORMERS"))
        }
        environment |= {"HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}", "HF_HOME": str(tmp_path / "home")}
        child = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", _CHILD.format(root=str(ROOT)), folder, file],
            env=environment, capture_output=True, text=True, timeout=240, check=False,
        )  # fmt: skip
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert (child.returncode, child.stdout, child.stderr) == (0, "", "")
    assert handler.requests == []


def test_nothing_is_installed_that_fetches_code() -> None:
    assert importlib.util.find_spec("kernels") is None


def test_the_environment_is_left_as_it_was(tmp_path) -> None:
    import huggingface_hub.constants

    before, was_offline = dict(os.environ), huggingface_hub.constants.HF_HUB_OFFLINE
    load(tiny_folder(tmp_path / "model"))
    assert dict(os.environ) == before
    assert was_offline == huggingface_hub.constants.HF_HUB_OFFLINE


# ------------------------------------------------------------------------------------------------ hostile


@pytest.fixture
def folder(tmp_path) -> Path:
    return tiny_folder(tmp_path / "model")


def test_a_kind_that_transformers_does_not_know_is_named(folder) -> None:
    for kind in ("mamba9", "vit", "clip_text_model"):
        change_json(folder / "config.json", model_type=kind)
        error = refused(folder)
        assert (error.code, error.parameters["architecture"]) == (ErrorCode.UNKNOWN_ARCHITECTURE, kind)


@pytest.mark.parametrize(
    "changes",
    [{"auto_map": {"AutoModelForCausalLM": "x--y.Z"}}, {"_attn_implementation_internal": "someone/kernel"}],
)
def test_a_config_that_asks_for_code_is_refused(folder, changes) -> None:
    change_json(folder / "config.json", **changes)
    assert refused(folder).code is ErrorCode.RUNS_CODE


@pytest.mark.parametrize(
    "changes",
    [
        {"hidden_size": 2**20, "num_attention_heads": 4},
        {"vocab_size": 2**24},
        {"intermediate_size": 2**24},
        {"num_hidden_layers": 500},
        {"num_hidden_layers": 1},
        {"head_dim": 2**16},
        {"vocab_size": 200},
    ],
)
def test_dims_that_are_not_the_weights_are_refused_before_memory_is_taken(folder, changes) -> None:
    change_json(folder / "config.json", **changes)
    with devices.PeakMeter(CPU) as meter:
        assert refused(folder).code is ErrorCode.HEADER_INVALID
    assert meter.peak_bytes < 2**29


def test_numbers_that_are_none_and_missing_weights_are_named(folder) -> None:
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"][3] = float("nan")
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    assert "model.norm.weight" in str(refused(folder).parameters["detail"])
    # As many numbers under a name that the model does not have.
    weights["model.other.weight"] = weights.pop("model.norm.weight").nan_to_num()
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    error = refused(folder)
    assert error.code is ErrorCode.HEADER_INVALID
    assert "model.norm.weight" in str(error.parameters["detail"])


def test_a_tokenizer_of_another_model_is_refused(folder) -> None:
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    content["model"]["vocab"] |= {f"word{number}": number for number in range(300, 330)}
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    error = refused(folder)
    assert error.code is ErrorCode.LOAD_FAILED
    assert "token" in str(error.parameters["detail"])


def test_memory_is_asked_for_before_anything_is_taken(folder, monkeypatch) -> None:
    monkeypatch.setattr(devices, "free_bytes", lambda _device: 1_000)
    monkeypatch.setattr(model_loader, "_build", lambda *_args: pytest.fail("weights were read"))
    error = refused(folder)
    assert error.code is ErrorCode.OUT_OF_MEMORY
    assert error.parameters["needed_bytes"] > 10_000
    assert error.parameters["free_bytes"] == 1_000


def _mutate(folder: Path, seed: int) -> None:
    """Spoil one of the folder's files; the seed alone decides how."""
    draw = random.Random(seed)
    name = ("config.json", "tokenizer.json", "model.safetensors", "tokenizer_config.json", "config.json")[seed % 5]
    data = (folder / name).read_bytes()
    if name == "model.safetensors":
        length = 8 + int.from_bytes(data[:8], "little")
        changed = mutated_text(data[: length + 64], draw) + data[length + 64 :]
    elif seed % 2:
        changed = mutated_text(data, draw)
    else:
        changed = dumped(mutated(json.loads(data), draw))
    (folder / name).write_bytes(changed)


def _load_mutated(folder: Path, seed: int) -> None:
    _mutate(folder, seed)
    with devices.PeakMeter(CPU) as meter:
        try:
            loaded = load(folder)
        except EngineError as error:
            assert error.parameters or error.code is ErrorCode.OUT_OF_MEMORY  # noqa: PT017 - both ends are fine
        else:
            assert loaded.parameters < 10**6
    assert meter.peak_bytes < 2**30


# The count per change; the seeds after them in the full run.
@pytest.mark.parametrize("seed", range(50))
def test_a_mutated_folder_is_refused_in_words_or_loads(folder, seed, allow_log) -> None:
    _load_mutated(folder, seed)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(50, 350))
def test_many_mutated_folders_are_refused_in_words_or_load(folder, seed, allow_log) -> None:
    _load_mutated(folder, seed)
