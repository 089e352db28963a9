"""Attention over blocks on a card: the same cases as on the CPU, in float32 and bfloat16."""

import math

import pytest
import torch

from backends.torch_engine.kv_cache import KvCache
from backends.torch_engine.step_layout import RowInput
from tests.helpers.attention_cases import PLANS, STEPS, TABLES, Case
from tests.helpers.block_runner import BlockRunner, plans_of
from tests.helpers.tiny_models import tiny_model

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
TOLERANCE = {torch.float32: 2e-3, torch.bfloat16: 4e-2}  # float32 with room for TF32


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("tables", TABLES.values(), ids=TABLES)
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_rows_see_what_they_should(plan, tables, dtype):
    case = Case(plan, tables, dtype, "cuda")
    case.fill(math.nan)
    for counts in STEPS:
        got, right = case.step(counts)
        assert torch.allclose(got.double(), right, atol=TOLERANCE[dtype])


@pytest.mark.parametrize("architecture", ["llama", "gemma2", "gemma4_text", "gpt_oss", "deepseek_v3", "llama4_text"])
def test_models_answer_as_in_one_forward(architecture):
    model = tiny_model(architecture).cuda()
    ids = torch.randint(3, 290, (20,), generator=torch.Generator().manual_seed(4)).tolist()
    with torch.inference_mode():
        right = model(input_ids=torch.tensor([ids]).cuda(), use_cache=False).logits[0]
    runner = BlockRunner(model, KvCache(plans_of(model), 12, 4, torch.float32, "cuda"))
    table = [7, 2, 9, 4, 1]
    got = torch.cat([runner.logits([RowInput(ids[:13], 0, table)]), runner.logits([RowInput(ids[13:], 13, table)])])
    assert torch.allclose(got, right, atol=2e-3)
