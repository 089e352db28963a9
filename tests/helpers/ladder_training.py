"""Trains the ladder model and writes it as an F16 GGUF: a program of its own, so that its threads are its own.

    python tests/helpers/ladder_training.py VARIANT FOLDER

Writes model-F16.gguf, tokenizer.json and training.json into the folder. One thread and fixed seeds: the same machine
makes the same bytes again. Another processor, or another torch, adds in another order and makes a model that differs
in its last bits and is just as good.

The model is transformers' Llama. llama.cpp rotates neighbouring rows of Q and K where transformers rotates halves, so
their rows change places on the way (Su et al. 2021, both are the same rotation).
"""

from __future__ import annotations

import json
import math
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np
import torch
from tokenizers import Tokenizer
from transformers import LlamaConfig, LlamaForCausalLM

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent.parent))

from tests.helpers import ladder_text  # found only once the tree is on sys.path

WINDOW_TOKENS = 512
CONTEXT_TOKENS = 2048  # what it says that it can; only windows of WINDOW_TOKENS were learned
HEAD_SIZE = 64
ROPE_BASE, NORM_EPSILON = 10000.0, 1e-5
_LOSS_WINDOWS = 32  # of those held out, for the loss before and after
_WARM_UP_STEPS = 5


@dataclass(frozen=True)
class Recipe:
    """How a variant is made; every width is a multiple of 256, the block of the K quantizations.

    Attributes:
        hidden: width of the model.
        feed_forward: width of the layers' middle.
        layers: how many.
        kv_heads: heads of K and V; those of Q have HEAD_SIZE each, too.
        steps: of training.
        batch: windows a step.
        matrix_rate: learning rate of the layers' matrices, by Muon.
        other_rate: of the embedding, the output and the norms, by AdamW.
        seed: of the weights and of the order of the windows.
    """

    hidden: int
    feed_forward: int
    layers: int
    kv_heads: int
    steps: int
    batch: int = 8
    matrix_rate: float = 0.02
    other_rate: float = 0.004
    seed: int = 7


RECIPES = {
    "ci": Recipe(hidden=256, feed_forward=512, layers=3, kv_heads=2, steps=90),  # two minutes
    "full": Recipe(hidden=512, feed_forward=1536, layers=6, kv_heads=4, steps=400),  # some forty minutes
}


def main(variant: str, folder: Path) -> None:
    """Train a variant and write its files into the folder."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    recipe = RECIPES[variant]
    text = ladder_text.training_text()
    tokenizer = ladder_text.learn_vocabulary(text)
    learned, held_out = ladder_text.cut_windows(tokenizer, text, WINDOW_TOKENS)
    torch.manual_seed(recipe.seed)
    model = LlamaForCausalLM(_config(recipe))
    began_s = time.monotonic()
    held_out = held_out[:_LOSS_WINDOWS]
    losses_before = window_losses(model, held_out)
    losses = train(model, learned, recipe)
    losses_after = window_losses(model, held_out)
    tokenizer.save(str(folder / "tokenizer.json"))
    write_gguf(model, tokenizer, folder / "model-F16.gguf", f"Ladder {variant}")
    record = {
        "variant": variant,
        "weights": sum(weight.numel() for weight in model.parameters()),
        "learned_tokens": recipe.steps * recipe.batch * WINDOW_TOKENS,
        "windows": len(learned),
        "unigram_loss": ladder_text.unigram_loss(learned, held_out),
        "loss_before": sum(losses_before) / len(losses_before),
        "loss_after": sum(losses_after) / len(losses_after),
        "window_losses": losses_after,
        "losses": losses,
        "took_s": round(time.monotonic() - began_s, 1),
    }
    (folder / "training.json").write_text(json.dumps(record, indent=1), encoding="utf-8")
    np.save(folder / "held_out.npy", held_out.astype(np.int32))


def train(model: LlamaForCausalLM, windows: np.ndarray, recipe: Recipe) -> list[float]:
    """Train the model in place and return the loss of each step, nats a token."""
    layers = [weight for name, weight in model.named_parameters() if weight.ndim == 2 and ".layers." in name]
    chosen = {id(weight) for weight in layers}
    others = [weight for weight in model.parameters() if id(weight) not in chosen]
    optimizers = [
        torch.optim.Muon(layers, lr=recipe.matrix_rate, weight_decay=0.0),
        torch.optim.AdamW(others, lr=recipe.other_rate, betas=(0.9, 0.95), weight_decay=0.0),
    ]
    schedules = [
        torch.optim.lr_scheduler.LambdaLR(one, lambda step: _rate_share(step, recipe.steps)) for one in optimizers
    ]
    order = _order(len(windows), recipe)
    model.train()
    losses = []
    for step in range(recipe.steps):
        chosen_windows = order[step * recipe.batch : (step + 1) * recipe.batch]
        found = _batch_loss(model, windows[chosen_windows])
        found.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for part in (*optimizers, *schedules):
            part.step()
        model.zero_grad(set_to_none=True)
        losses.append(round(found.item(), 4))
    model.eval()
    return losses


@torch.inference_mode()
def window_losses(model: LlamaForCausalLM, windows: np.ndarray) -> list[float]:
    """Return the loss of each window [windows, tokens], nats a token; every token but the first counts."""
    return [_batch_loss(model, window[None]).item() for window in windows]


def write_gguf(model: LlamaForCausalLM, tokenizer: Tokenizer, path: Path, name: str) -> None:
    """Write the model with its tokenizer; matrices as F16, norms as F32."""
    config = model.config
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name(name)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    writer.add_context_length(CONTEXT_TOKENS)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_dimension_count(HEAD_SIZE)
    writer.add_rope_freq_base(ROPE_BASE)
    writer.add_layer_norm_rms_eps(NORM_EPSILON)
    writer.add_vocab_size(config.vocab_size)
    _add_vocabulary(writer, tokenizer)
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
    heads = {"q_proj": config.num_attention_heads, "k_proj": config.num_key_value_heads}
    for source, weight in model.state_dict().items():
        values = weight.numpy()
        if turned := heads.get(source.split(".")[-2]):
            values = _neighbours_from_halves(values, turned)
        values = values.astype(np.float16 if values.ndim == 2 else np.float32)
        writer.add_tensor(names.get_name(source, (".weight",)), values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _config(recipe: Recipe) -> LlamaConfig:
    return LlamaConfig(
        vocab_size=ladder_text.VOCABULARY_TOKENS,
        hidden_size=recipe.hidden,
        intermediate_size=recipe.feed_forward,
        num_hidden_layers=recipe.layers,
        num_attention_heads=recipe.hidden // HEAD_SIZE,
        num_key_value_heads=recipe.kv_heads,
        head_dim=HEAD_SIZE,
        max_position_embeddings=CONTEXT_TOKENS,
        rope_parameters={"rope_type": "default", "rope_theta": ROPE_BASE},
        rms_norm_eps=NORM_EPSILON,
        tie_word_embeddings=False,
        bos_token_id=ladder_text.BEGIN_ID,
        eos_token_id=ladder_text.END_ID,
        use_cache=False,
    )


def _batch_loss(model: LlamaForCausalLM, windows: np.ndarray) -> torch.Tensor:
    token_ids = torch.from_numpy(windows)  # [B, T]
    logits = model(input_ids=token_ids[:, :-1]).logits  # [B, T - 1, V]
    return torch.nn.functional.cross_entropy(logits.flatten(0, 1), token_ids[:, 1:].flatten())


def _rate_share(step: int, steps: int) -> float:
    """Return the share of the full rate: up over the first steps, then down to nearly nothing in a straight line."""
    return min((step + 1) / _WARM_UP_STEPS, (steps - step) / (steps - _WARM_UP_STEPS), 1.0)


def _order(windows: int, recipe: Recipe) -> np.ndarray:
    """Return which windows come in which step: all once in a random order, then all again in another."""
    rng = np.random.default_rng(recipe.seed)
    rounds = math.ceil(recipe.steps * recipe.batch / windows)
    return np.concatenate([rng.permutation(windows) for _round in range(rounds)])


def _neighbours_from_halves(matrix: np.ndarray, heads: int) -> np.ndarray:
    """Return the rows of Q or K [heads * size, hidden] so that rows i and i + size / 2 of a head are neighbours."""
    rows, hidden = matrix.shape
    return matrix.reshape(heads, 2, rows // heads // 2, hidden).swapaxes(1, 2).reshape(rows, hidden)


def _add_vocabulary(writer: gguf.GGUFWriter, tokenizer: Tokenizer) -> None:
    ids = tokenizer.get_vocab()
    tokens = sorted(ids, key=ids.__getitem__)
    control = {ladder_text.BEGIN, ladder_text.END}
    merges = json.loads(tokenizer.to_str())["model"]["merges"]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.CONTROL if one in control else gguf.TokenType.NORMAL for one in tokens])
    writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_bos_token_id(ladder_text.BEGIN_ID)
    writer.add_eos_token_id(ladder_text.END_ID)
    writer.add_add_bos_token(True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
