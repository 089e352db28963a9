"""A row's headers over the network: single files, sets, safetensors; the same facts as from the disk."""

from __future__ import annotations

import json
import threading

import pytest

from app.downloads.types import FileRef
from app.http_clients import HttpClients
from app.hub.row_headers import CancelledError, RowReader, resolve_url, with_facts, with_fault
from app.hub.table import sort_files
from app.models.byte_source import HeaderError
from app.models.gguf_header import read_header
from app.models.http_faults import RemoteError, RemoteFault
from app.models.http_source import HttpLimits
from app.models.quantization import effective_bits, fallback_tensors
from app.models.safetensors_header import read_safetensors
from app.models.shape_config import shape_of_config
from app.models.shape_gguf import shape_of_gguf
from tests.helpers import gguf_files, safetensors_files, shape_files
from tests.helpers.gguf_files import string_entry
from tests.helpers.hub_asking import row, small_gguf
from tests.helpers.hub_files import Generated
from tests.helpers.hub_server import HubServer

QUICK = HttpLimits(total_s=5.0, wait_s=0.4)


@pytest.fixture
def hub():
    with HubServer() as server:
        yield server


@pytest.fixture
def clients(hub):
    hub.add_token("hf_reader", "eve")
    made = HttpClients(token=lambda _endpoint: "hf_reader", environment={"HF_ENDPOINT": hub.endpoint})
    yield made
    made.close()


def rows_of(hub: HubServer, name: str) -> tuple:
    """The table of a repo, as its honest listing gives it."""
    repo = hub.routes.repos[name]
    commit = repo.branches["main"]
    files = [
        FileRef(hub.endpoint, name, commit, path, file.content.size_bytes, file.content.sha256 if file.is_lfs else "")
        for path, file in repo.find("main").files.items()
    ]
    return sort_files(files, name.rpartition("/")[2]).rows


def read(hub: HubServer, clients: HttpClients, name: str = "ann/M", limits: HttpLimits = QUICK) -> object:
    (found,) = rows_of(hub, name)
    return RowReader(clients, None, limits, limits).read(found)


def split(count: int = 3, **changes: gguf_files.TinyGguf) -> dict[str, bytes]:
    parts = gguf_files.split_model(count, string_entry("tokenizer.chat_template", "{{ x }}"))
    names = [f"M-Q8_0-{part:05d}-of-{count:05d}.gguf" for part in range(1, count + 1)]
    made = {name: part.to_bytes() for name, part in zip(names, parts, strict=True)}
    return made | {name.replace("__", "-") + ".gguf": part.to_bytes() for name, part in changes.items()}


def test_a_large_model_is_known_from_its_header_alone(hub, clients, tmp_path):
    path = shape_files.write_shape("llama-3.1-8b", tmp_path, is_full=True)
    hub.add_repo("ann/M", {"M-Q4_K_M.gguf": path})
    facts = read(hub, clients)
    header = read_header(path)
    assert facts.shape == shape_of_gguf(header)
    assert facts.bits_per_weight == effective_bits(header)
    assert (facts.fallback, facts.imatrix, facts.is_shape_exact) == (0, False, True)
    assert facts.quantization == "Q4_K_M"
    assert facts.read_bytes < 16 * 2**20 < path.stat().st_size
    assert len(hub.seen("cdn")) <= 2


def test_what_fell_back_is_counted(hub, clients, tmp_path):
    path = shape_files.write_shape("smollm2-135m", tmp_path)
    hub.add_repo("ann/M", {"M-Q4_K_M.gguf": path})
    facts = read(hub, clients)
    assert facts.fallback == fallback_tensors(read_header(path)) > 0
    assert facts.bits_per_weight > 5.5


def test_a_set_is_read_in_all_its_parts(hub, clients):
    hub.add_repo("ann/M", split())
    facts = read(hub, clients)
    assert facts.is_shape_exact
    assert facts.bits_per_weight == 32.0
    assert facts.shape.parameters_count == 3 * 32
    assert facts.has_chat_template is True
    assert len(hub.seen("cdn")) == 3


def test_where_a_later_part_is_not_given_now_the_first_one_has_to_do(hub, clients):
    hub.add_repo("ann/M", split())
    hub.fault("http_503", "resolve:*00002*")
    (found,) = rows_of(hub, "ann/M")
    facts = RowReader(clients, None, QUICK, QUICK).read(found)
    assert not facts.is_shape_exact
    assert facts.shape.weights_bytes == found.size_bytes
    assert facts.bits_per_weight == 0.0
    assert with_facts(found, facts).bits_per_weight is None


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"M-Q8_0.gguf": gguf_files.split_model(3)[1].to_bytes()}, "part 2"),
        ({"M-Q8_0.gguf": gguf_files.split_model(3)[0].to_bytes()}, "speaks of 3 parts"),
        (split(2) | {"M-Q8_0-00002-of-00002.gguf": gguf_files.split_model(3)[1].to_bytes()}, "another model"),
        (split(2) | {"M-Q8_0-00001-of-00002.gguf": gguf_files.TinyGguf().to_bytes()}, "speaks of 1 parts"),
        ({"M-Q8_0.gguf": b"GGUF" + bytes(100)}, "version 0"),
        ({"M-Q8_0.gguf": b"<html>" + b"x" * 100}, "web page"),
        ({"M-Q8_0.gguf": small_gguf()[:90]}, "ends in the middle"),
        ({"M-Q8_0.gguf": gguf_files.TinyGguf(tensors=(), data_bytes=64).to_bytes()}, "no weights"),
    ],
)
def test_a_file_that_is_no_model_is_a_fault_of_the_file(hub, clients, files, words):
    hub.add_repo("ann/M", files)
    with pytest.raises(HeaderError, match=words):
        read(hub, clients)


def test_two_parts_with_one_tensor_are_refused(hub, clients):
    parts = gguf_files.split_model(2)
    twin = gguf_files.TinyGguf(metadata=parts[1].metadata, architecture=b"", tensors=parts[0].tensors)
    hub.add_repo("ann/M", split(2) | {"M-Q8_0-00002-of-00002.gguf": twin.to_bytes()})
    with pytest.raises(HeaderError, match="stands in two parts"):
        read(hub, clients)


def test_a_size_that_the_listing_does_not_give_is_said(hub, clients):
    hub.add_repo("ann/M", {"M-Q8_0.gguf": small_gguf()})
    (found,) = rows_of(hub, "ann/M")
    hub.fault("longer_body", "cdn:*")
    with pytest.raises(HeaderError, match=r"The hub lists [0-9,]+ bytes, and its server has [0-9,]+\."):
        RowReader(clients).read(found)


# ------------------------------------------------------------------------------------------------ safetensors


def folder_files(folder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_safetensors_model_is_known_from_config_and_headers(hub, clients, tmp_path):
    folder = safetensors_files.write_model(tmp_path / "m")
    hub.add_repo("ann/M", folder_files(folder))
    facts = read(hub, clients)
    model = read_safetensors(folder)
    assert facts.shape == shape_of_config(model.config, model.tensors)
    assert (facts.quantization, facts.is_shape_exact, facts.has_chat_template) == ("BF16", True, None)
    assert 16 < facts.bits_per_weight < 17


def test_shards_are_read_each(hub, clients, tmp_path):
    names = list(safetensors_files.SHAPES)
    halves = [{name: safetensors_files.SHAPES[name] for name in part} for part in (names[:1], names[1:])]
    safetensors_files.write_shards(tmp_path / "m", halves)
    hub.add_repo("ann/M", folder_files(tmp_path / "m"))
    assert read(hub, clients).shape.parameters_count == 256 * 64 + 64 * 64 + 64


def many_shards(folder, count=60, last=(64, 128), changed=-1):
    """Write a model of so many layers, each in a file of its own; one layer may be of another shape."""
    config = {**safetensors_files.LLAMA_CONFIG, "num_hidden_layers": count - 1}
    shards = [{"model.embed_tokens.weight": ("BF16", [256, 64]), "model.norm.weight": ("F32", [64])}]
    for layer in range(count - 1):
        name, rows = f"model.layers.{layer}.", 20_000 if layer == changed else 64
        shards.append({name + "self_attn.q_proj.weight": ("BF16", [rows, 64]), name + "mlp.up.weight": ("I8", last)})
    safetensors_files.write_shards(folder, shards, config)
    return folder


def test_of_very_many_files_some_are_read_and_the_index_tells_of_all(hub, clients, tmp_path):
    # 60 files: looking into each took 61 requests, and was refused for that.
    folder = many_shards(tmp_path / "m")
    hub.add_repo("ann/M", folder_files(folder))
    facts = read(hub, clients)
    model = read_safetensors(folder)
    assert facts.shape == shape_of_config(model.config, model.tensors)
    assert (facts.is_shape_exact, facts.fault, facts.quantization) == (True, "", "int8")
    read_files = {request.target for request in hub.seen("cdn") if request.target.endswith(".safetensors")}
    assert len(read_files) == 2


def test_where_layers_differ_the_listed_sizes_say_that_it_is_an_estimate(hub, clients, tmp_path):
    folder = many_shards(tmp_path / "m", changed=50)
    hub.add_repo("ann/M", folder_files(folder))
    facts = read(hub, clients)
    weights = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
    assert (facts.is_shape_exact, facts.shape.weights_bytes, facts.fault) == (False, weights, "")
    (found,) = rows_of(hub, "ann/M")
    assert not with_facts(found, facts).is_broken


@pytest.mark.parametrize("index", [b"{}", b'{"weight_map": {"x": "model-00001-of-00060.safetensors"}}', b"x" * 100])
def test_very_many_files_with_another_index_are_no_model(hub, clients, tmp_path, index):
    files = folder_files(many_shards(tmp_path / "m")) | {"model.safetensors.index.json": index}
    hub.add_repo("ann/M", files)
    with pytest.raises(HeaderError):
        read(hub, clients)


def test_a_model_that_asks_for_code_says_so(hub, clients, tmp_path):
    config = {**safetensors_files.LLAMA_CONFIG, "auto_map": {"AutoModel": "modeling_x.X"}}
    hub.add_repo("ann/M", folder_files(safetensors_files.write_model(tmp_path / "m", config=config)))
    facts = read(hub, clients)
    assert facts.fault.startswith("This model needs code of its own to run")
    (found,) = rows_of(hub, "ann/M")
    assert (with_facts(found, facts).is_broken, with_facts(found, facts).state) == (True, "failed")


@pytest.mark.parametrize("config", [b"", b"[]", b"{" * 10_000, json.dumps({"hidden_size": 2**60}).encode(), b"\xff"])
def test_a_config_that_makes_no_sense_is_a_fault_of_the_file(hub, clients, tmp_path, config):
    files = folder_files(safetensors_files.write_model(tmp_path / "m")) | {"config.json": config or b" "}
    hub.add_repo("ann/M", files)
    with pytest.raises(HeaderError):
        read(hub, clients)


# ---------------------------------------------------------------------------------------------------- network


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("http_401", RemoteFault.NO_ACCESS),
        ("http_404", RemoteFault.MISSING),
        ("http_429_seconds", RemoteFault.BUSY),
        ("http_500", RemoteFault.SERVER_FAULT),
        ("html_page", RemoteFault.WEB_PAGE),
        ("stall_before_headers", RemoteFault.TOO_SLOW),
        ("redirect_loop", RemoteFault.REDIRECTS),
    ],
)
def test_what_the_hub_does_not_give_is_said_in_words(hub, clients, kind, fault):
    hub.add_repo("ann/M", {"M-Q8_0.gguf": small_gguf()})
    (found,) = rows_of(hub, "ann/M")
    hub.fault(kind, "resolve")
    with pytest.raises(RemoteError) as caught:
        RowReader(clients, None, QUICK, QUICK).read(found)
    assert caught.value.fault is fault
    failed = with_fault(found, caught.value)
    assert (failed.state, failed.is_broken) == ("failed", False)
    assert failed.fault.startswith(caught.value.words.message)


def test_a_gated_file_is_read_with_the_token_and_no_other_host_sees_it(hub, clients):
    hub.add_repo("ann/M", {"M-Q8_0.gguf": small_gguf()}, gated="auto")
    hub.add_token("hf_reader", "eve", ["ann/M"])
    assert read(hub, clients).is_shape_exact
    assert [one.token for one in hub.seen("resolve")] == ["hf_reader"]
    assert hub.leaked_tokens() == []


def test_whoever_gives_up_hears_no_more(hub, clients):
    hub.add_repo("ann/M", {"M-Q8_0.gguf": Generated(50_000_000)})
    (found,) = rows_of(hub, "ann/M")
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(CancelledError):
        RowReader(clients, cancel).read(found)
    assert hub.seen("resolve") == []


def test_giving_up_between_two_pieces_ends_the_reading(hub, clients, tmp_path):
    path = shape_files.write_shape("llama-3.1-8b", tmp_path, is_full=True)
    hub.add_repo("ann/M", {"M-Q4_K_M.gguf": path})
    (found,) = rows_of(hub, "ann/M")
    cancel = threading.Event()
    times = iter(range(1_000_000))

    def clock() -> float:
        if next(times) == 12:  # some pieces came
            cancel.set()
        return 0.0

    with pytest.raises(CancelledError):
        RowReader(clients, cancel, clock=clock).read(found)
    assert sum(one.sent_bytes for one in hub.seen("cdn")) < 8 * 2**20


def test_addresses_are_written_as_the_hub_wants_them():
    file = FileRef("https://h", "a/b", "refs/pr/1", "a b/ü#?.gguf", 5)
    assert resolve_url(file) == "https://h/a/b/resolve/refs%2Fpr%2F1/a%20b/%C3%BC%23%3F.gguf"


def test_a_row_keeps_its_own_name_and_takes_the_headers_where_it_has_none(hub, clients, tmp_path):
    hub.add_repo("ann/M", {"M.gguf": shape_files.write_shape("llama-3.1-8b", tmp_path)})
    (found,) = rows_of(hub, "ann/M")
    facts = RowReader(clients).read(found)
    assert with_facts(found, facts).quantization == "Q4_K_M"
    assert with_facts(row("UD-Q4_K_XL"), facts).quantization == "UD-Q4_K_XL"
