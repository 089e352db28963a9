"""The large counts of the torch engine: 200 tokens of both real models in every way, and thousands of requests."""

from __future__ import annotations

import gc

import psutil
import pytest
import torch
import transformers

from backends import protocol
from backends.torch_engine.engine import TorchEngine
from backends.torch_engine.step_layout import RowInput
from tests.backends.torch_engine.test_engine import check_many
from tests.helpers.hf_folders import gemma_folder, smol_folder
from tests.helpers.program import report
from tests.helpers.torch_asking import check_pool

pytestmark = [pytest.mark.full, pytest.mark.timeout(3000)]

FOLDERS = {"SmolLM2-135M": smol_folder, "Gemma 3 270M": gemma_folder}
COUNT, TOKENS = 16, 200
PARAMS = protocol.SamplingParams(temperature=0, max_tokens=TOKENS, ignore_eos=True)
PREFIX = "Here is a text about the sea, the wind and the people who live at the coast, as told by one of them. "
SLOPE_BYTES = 2 * 2**20  # of a worker in 1,000 requests: trust.md, C-18


@pytest.fixture(scope="module", autouse=True)
def quiet():
    """No bars of progress: each would leave a thread behind."""
    transformers.utils.logging.disable_progress_bar()


def load(folder, **params: object) -> TorchEngine:
    engine = TorchEngine()
    fields = {"context_tokens": 8192, "dtype": "float32", "max_sequences": COUNT, "threads": 2, **params}
    engine.load(protocol.LoadModel(str(folder), protocol.LoadParams(**fields)), lambda _event: None)
    return engine


def answers(engine: TorchEngine, prompts) -> dict[int, tuple[int, ...]]:
    """Ask all at once; return the ids of each answer."""
    for number, prompt in enumerate(prompts):
        engine.add(
            protocol.Generate(request_id=protocol.RequestId(number), prompt=protocol.TokenIds(prompt), params=PARAMS)
        )
    found: dict[int, tuple[int, ...]] = {}
    while engine.has_work:
        for event in engine.step():
            for piece in getattr(event, "pieces", ()):
                found[piece.request_id] = found.get(piece.request_id, ()) + piece.token_ids
    check_pool(engine)
    return found


def held_back(text_ids: tuple[int, ...], right: tuple[int, ...]) -> bool:
    """Whether an answer is right; half a character at its end is never shown."""
    return len(text_ids) >= TOKENS - 3 and text_ids == right[: len(text_ids)]


@pytest.fixture(scope="module", params=FOLDERS)
def case(request):
    """A folder, prompts as ids, and what transformers answers to each alone."""
    folder = FOLDERS[request.param]()
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, local_files_only=True)
    prompts, right = [], []
    for number in range(COUNT):
        ids = tokenizer(f"{PREFIX * (1 + number % 4)}Part {number}:", return_tensors="pt").input_ids
        with torch.inference_mode():
            out = model.generate(ids, do_sample=False, min_new_tokens=TOKENS, max_new_tokens=TOKENS, pad_token_id=0)
        prompts.append(tuple(ids[0].tolist()))
        right.append(tuple(out[0, ids.shape[1] :].tolist()))
    del model
    gc.collect()
    return folder, prompts, right


# min_new_tokens keeps transformers from ending early by masking the end of the text, so texts that hold it are skipped.
def compared(found: dict[int, tuple[int, ...]], right, ends) -> int:
    """Return how many answers were compared; each must be right."""
    count = 0
    for number, expected in enumerate(right):
        if ends & set(found[number]):
            continue
        assert held_back(found[number], expected), f"answer {number} is another"
        count += 1
    return count


@pytest.mark.parametrize(
    ("way", "params"),
    [
        ("alone", {"max_sequences": 1}),
        ("in 16", {}),
        ("in pieces", {"micro_batch_tokens": 24}),
        ("preempted", {"context_tokens": 1024}),
        ("without kept blocks", {"prefix_cache": False}),
    ],
)
def test_200_greedy_tokens_are_those_of_transformers(case, way, params):
    folder, prompts, right = case
    engine = load(folder, **params)
    vocabulary = engine._parts.vocabulary
    ends = {token for token in range(vocabulary.size) if vocabulary.ends_text(token)}
    assert compared(answers(engine, prompts), right, ends) >= COUNT // 2
    if way == "in 16":  # all of it lies in kept blocks now
        assert compared(answers(engine, prompts), right, ends) >= COUNT // 2
    engine.unload()


def test_in_bf16_it_is_as_near_to_fp32_as_transformers_is():
    """engine.md, section 9: where bf16 chooses another token, the two likeliest must be close in fp32."""
    text = (
        "The history of the lighthouse begins with fires on hills, which sailors saw from far away. Then came towers."
    )
    models = {
        dtype: transformers.AutoModelForCausalLM.from_pretrained(smol_folder(), dtype=dtype, local_files_only=True)
        for dtype in (torch.float32, torch.bfloat16)
    }
    engine = load(smol_folder(), dtype="bfloat16", context_tokens=256)
    ids = engine._parts.vocabulary.encode(protocol.Text(text))
    with torch.inference_mode():
        right, theirs = (model(torch.tensor([ids]), use_cache=False).logits[0].float() for model in models.values())
    blocks = range(engine._parts.blocks)
    runner = engine._parts.runner
    ours = torch.stack([runner.run([RowInput(ids[i : i + 1], i, blocks)])[0] for i in range(len(ids))])
    errors = [(found - right).pow(2).mean().sqrt().item() for found in (ours, theirs)]
    assert errors[0] < 1.25 * errors[1], f"root mean square against fp32: ours {errors[0]:.3f}, theirs {errors[1]:.3f}"
    top = right.topk(2).values
    gaps = (top[:, 0] - top[:, 1])[ours.argmax(-1) != right.argmax(-1)]
    assert gaps.numel() <= len(ids) // 10
    assert all(gap < 0.1 for gap in gaps.tolist())
    engine.unload()


def test_5000_requests_leave_no_block_and_no_memory_behind():
    engine = load(smol_folder(), context_tokens=512, dtype="bfloat16", max_sequences=8)
    check_many(engine, 200)
    process = psutil.Process()
    sizes = []
    for _thousand in range(5):
        check_many(engine, 1000)
        gc.collect()
        sizes.append(process.memory_info().rss)
    slope = (sizes[-1] - sizes[0]) / (len(sizes) - 1)
    report(
        f"RSS after each 1,000 requests: {[size // 2**20 for size in sizes]} MiB; slope {slope / 2**20:.2f} MiB/1,000"
    )
    assert slope <= SLOPE_BYTES
    engine.unload()
