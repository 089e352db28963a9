"""A Llama that llama.cpp loads and runs in milliseconds: two layers of invented weights, a vocabulary of single bytes.

Its rows are whole blocks of 256 weights, so that every quantization is what its name says; another width makes them
fall back. It writes nonsense, and the same nonsense every time.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFWriter, LlamaFileType, TokenType

LAYERS, VOCABULARY = 2, 384
_NORMAL, _UNKNOWN, _CONTROL, _BYTE = TokenType.NORMAL, TokenType.UNKNOWN, TokenType.CONTROL, TokenType.BYTE


def write_small_llama(
    path: Path, *, width: int = 256, name: str = "Small-Llama", experts: int = 0, has_vocabulary: bool = True
) -> Path:
    """Write the model in F16 and return its path.

    Args:
        path: of the file.
        width: of a row; no multiple of 256 makes K-quantizations fall back.
        name: as the header has it.
        experts: of a mixture, two of them used for each token; 0 for none.
        has_vocabulary: whether it can read and write text; without one it can be quantized and not loaded.
    """
    random = np.random.default_rng(7)
    writer = GGUFWriter(str(path), "llama")
    writer.add_name(name)
    writer.add_file_type(LlamaFileType.MOSTLY_F16)
    writer.add_context_length(512)
    writer.add_embedding_length(width)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(2 * width)
    writer.add_head_count(4)
    writer.add_head_count_kv(4)
    writer.add_rope_dimension_count(width // 4)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCABULARY)
    if experts:
        writer.add_expert_count(experts)
        writer.add_expert_used_count(2)
    if has_vocabulary:
        _add_vocabulary(writer)

    def matrix(tensor: str, *shape: int) -> None:
        values = random.standard_normal(shape).astype(np.float32) / np.sqrt(shape[-1])
        writer.add_tensor(tensor, values.astype(np.float16), raw_dtype=GGMLQuantizationType.F16)

    def norm(tensor: str) -> None:
        writer.add_tensor(tensor, np.ones(width, dtype=np.float32))

    matrix("token_embd.weight", VOCABULARY, width)
    matrix("output.weight", VOCABULARY, width)
    norm("output_norm.weight")
    for layer in range(LAYERS):
        for part in ("attn_q", "attn_k", "attn_v", "attn_output"):
            matrix(f"blk.{layer}.{part}.weight", width, width)
        if experts:
            writer.add_tensor(
                f"blk.{layer}.ffn_gate_inp.weight", random.standard_normal((experts, width)).astype(np.float32)
            )
            for part in ("ffn_gate_exps", "ffn_up_exps"):
                matrix(f"blk.{layer}.{part}.weight", experts, 2 * width, width)
            matrix(f"blk.{layer}.ffn_down_exps.weight", experts, width, 2 * width)
        else:
            matrix(f"blk.{layer}.ffn_gate.weight", 2 * width, width)
            matrix(f"blk.{layer}.ffn_up.weight", 2 * width, width)
            matrix(f"blk.{layer}.ffn_down.weight", width, 2 * width)
        norm(f"blk.{layer}.attn_norm.weight")
        norm(f"blk.{layer}.ffn_norm.weight")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _add_vocabulary(writer: GGUFWriter) -> None:
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [_UNKNOWN, _CONTROL, _CONTROL, *[_BYTE] * 256]
    tokens += [f"w{number}" for number in range(VOCABULARY - len(tokens))]
    kinds += [_NORMAL] * (VOCABULARY - len(kinds))
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens)
    writer.add_token_scores([0.0] * len(tokens))
    writer.add_token_types(kinds)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    writer.add_add_bos_token(True)
