"""Where memory lies: on the computer, on a card, or on both."""

from __future__ import annotations

import pytest

from app.models.fit_context import plan_context
from app.models.fit_memory import Sizes
from app.models.fit_place import GPU_CONTEXT_BYTES, CachePlan, gpu_of, place, read_parts
from tests.helpers.fit_models import GIB, MIB, card, computer, llama_8b, question


def placed(shape, asked, gpu, context_tokens=8192):
    owners = Sizes(shape, asked).owners("f16", context_tokens)
    plan = CachePlan(plan_context(asked.params, context_tokens), "f16")
    return owners, place(shape, asked, owners, gpu, plan)


@pytest.mark.parametrize(
    ("backend", "params", "name"),
    [
        ("llama_cpp", {}, None),
        ("llama_cpp", {"gpu_layers": -1}, "CUDA0"),
        ("llama_cpp", {"gpu_layers": 10}, "CUDA0"),
        ("llama_cpp", {"device": "CUDA0"}, "CUDA0"),
        ("llama_cpp", {"device": "CPU", "gpu_layers": 10}, None),
        ("torch", {}, "CUDA0"),
        ("torch", {"device": "CPU"}, None),
    ],
)
def test_a_card_takes_part_when_a_load_would_use_it(backend, params, name):
    found = gpu_of(question(backend, **params), computer(16, card(7)))
    assert (found.name if found else None) == name


def test_without_a_card_there_is_none():
    assert gpu_of(question(gpu_layers=-1), computer(16)) is None
    assert gpu_of(question("torch"), computer(16)) is None


def test_without_a_card_all_is_on_the_computer():
    owners, where = placed(llama_8b(), question(), None)
    assert (where.cpu_bytes, where.gpu, where.gpu_bytes) == (owners.needed_bytes, None, 0)


def test_all_layers_go_on_a_large_card_and_the_embedding_stays():
    gpu = card(7.9)
    owners, where = placed(llama_8b(), question(gpu_layers=-1), gpu)
    assert (where.gpu_layers, where.gpu) == (32, gpu)
    assert where.gpu_bytes == 32 * 136 * MIB + 411 * MIB + owners.kv_bytes + owners.compute_bytes + GPU_CONTEXT_BYTES
    made_there = 512 * 4096 * 4  # an embedding for each token of the micro-batch
    assert where.cpu_bytes == 282 * MIB + owners.output_bytes + owners.tables_bytes + made_there


def test_as_many_layers_as_fit_with_their_k_and_v_go_on_a_small_one():
    gpu = card(4)
    owners, where = placed(llama_8b(), question(gpu_layers=-1), gpu)
    layer_bytes = 136 * MIB + 32 * MIB
    fixed = 411 * MIB + owners.compute_bytes + GPU_CONTEXT_BYTES
    assert where.gpu_layers == (4 * GIB - fixed) // layer_bytes == 18
    assert where.gpu_bytes == fixed + 18 * layer_bytes
    assert where.cpu_bytes == owners.needed_bytes - 18 * layer_bytes - 411 * MIB


def test_no_more_layers_than_asked_go_there():
    _owners, where = placed(llama_8b(), question(gpu_layers=5), card(7.9))
    assert where.gpu_layers == 5


def test_a_card_too_small_for_one_layer_takes_none():
    owners, where = placed(llama_8b(), question(gpu_layers=-1), card(0.9))
    assert (where.gpu, where.gpu_layers, where.cpu_bytes) == (None, 0, owners.needed_bytes)


def test_a_tied_embedding_lies_on_both():
    tied = llama_8b(output_bytes=0, weights_bytes=32 * 136 * MIB + 282 * MIB)
    owners, where = placed(tied, question(gpu_layers=-1), card(7.9))
    assert where.gpu_bytes - owners.kv_bytes - owners.compute_bytes - GPU_CONTEXT_BYTES == (32 * 136 + 282) * MIB
    assert where.cpu_bytes > 282 * MIB


def test_torch_puts_all_on_one_device():
    gpu = card(7.9)
    owners, where = placed(llama_8b(), question("torch"), gpu)
    assert (where.cpu_bytes, where.gpu_bytes) == (0, owners.needed_bytes + GPU_CONTEXT_BYTES)


def test_each_device_reads_what_lies_there():
    shape, machine, asked = llama_8b(), computer(16, card(4)), question(gpu_layers=-1)
    _owners, none = placed(shape, question(), None)
    kv = 1024 * 128 * 1024
    assert read_parts(shape, question(), none, machine, 8192) == [(shape.read_bytes + kv, 20e9)]
    _owners, some = placed(shape, asked, card(4))
    (there, _fast), (here, _slow) = read_parts(shape, asked, some, machine, 8192)
    assert there == 18 * 136 * MIB + 411 * MIB + kv * 18 // 32
    assert there + here == shape.read_bytes + kv
    _owners, every = placed(shape, asked, card(7.9))
    assert read_parts(shape, asked, every, machine, 8192) == [(shape.read_bytes + kv, 256e9)]


def test_torch_reads_its_own_types():
    shape, asked = llama_8b(), question("torch", kv_type="int8")
    _owners, where = placed(shape, question("torch"), None)
    kv = 1024 * 32 * 8 * 256 * 9 // 8
    assert read_parts(shape, asked, where, computer(16), 8192) == [(shape.read_bytes + kv, 20e9)]
