"""What llama.cpp does with each architecture's layers, as data: windows, recurrent state, caches of other kinds.

A GGUF file gives numbers; which layers see a window only, which keep a state in place of K and V, and which share
theirs is written in llama.cpp's `load_arch_hparams` of each architecture and in `llama_model::create_memory`. An
architecture that is in none of these tables keeps K and V of every token in every layer.
Reference: src/models/*.cpp, llama-model.cpp and llama-hparams.cpp of the llama.cpp in llama-cpp-python 0.3.36.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class WindowRule:
    """Which layers see only a window, where the file does not say it layer by layer.

    Attributes:
        every: of so many layers one sees everything; 0 where the file must say.
        is_first_full: whether that is the first of them, not the last.
        default_tokens: the window where the file gives none; 0 for no window then.
        fixed_tokens: the window whatever the file says, unless it says 0; 0 to take the file's.
        needs_layers: the rule holds only for a model with so many layers; 0 for any.
    """

    every: int
    is_first_full: bool = False
    default_tokens: int = 0
    fixed_tokens: int = 0
    needs_layers: int = 0


_LISTED = WindowRule(0)

# Not here, though their files may name a window: phi3, mistral, qwen2 and others that llama.cpp runs without one.
WINDOWS: Mapping[str, WindowRule] = MappingProxyType(
    {
        "afmoe": WindowRule(4),
        "cohere2": WindowRule(4),
        "cohere2moe": WindowRule(4, is_first_full=True),
        "dots3note": _LISTED,
        "exaone-moe": WindowRule(4, default_tokens=128),
        "exaone4": WindowRule(4, default_tokens=4096, needs_layers=64),
        "gemma2": WindowRule(2, default_tokens=4096),
        "gemma3": WindowRule(6),
        "gemma3n": WindowRule(5),
        "gemma4": _LISTED,
        "gpt-oss": WindowRule(2),
        "granite_swa": _LISTED,
        "laguna": WindowRule(4, is_first_full=True),
        "llama4": WindowRule(4, default_tokens=8192, fixed_tokens=8192),
        "maple": _LISTED,
        "mellum": WindowRule(4),
        "mimo2": _LISTED,
        "muse-glimmer": WindowRule(4),
        "olmo2": WindowRule(4),
        "plamo3": WindowRule(8),
        "smallthinker": WindowRule(4, is_first_full=True, fixed_tokens=4096),
        "spark2_5": _LISTED,
        "step35": _LISTED,
    }
)
# Here every layer with K and V sees the window, if the file gives one.
ALL_WINDOWED = frozenset({"lfm2"})

# A state in every layer, and no K or V anywhere.
RECURRENT = frozenset({"mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"})
# A state in the layers that have no KV heads.
RECURRENT_WITHOUT_HEADS = frozenset(
    {"jamba", "plamo2", "granitehybrid", "lfm2", "lfm2moe", "kimi-linear", "kimi-k3", "bailingmoe3", "glm5-next"}
)
# Likewise, but a layer that is a feed-forward layer only has neither.
RECURRENT_WITHOUT_FEED_FORWARD = frozenset({"nemotron_h", "nemotron_h_moe"})
# Both in every layer.
RECURRENT_BESIDE_ATTENTION = frozenset({"falcon-h1"})
# One full layer after so many; the file may say another number, or it layer by layer.
FULL_ATTENTION_EVERY: Mapping[str, int] = MappingProxyType(
    {"qwen3next": 4, "qwen35": 4, "qwen35moe": 4, "minimax-01": 8}
)

# Reads everything at once and keeps nothing: encoders, and language models that write by diffusion.
WITHOUT_CACHE = frozenset(
    {"bert", "jina-bert-v2", "jina-bert-v3", "nomic-bert", "nomic-bert-moe", "neo-bert", "eurobert", "modern-bert"}
    | {"gemma-embedding", "wavtokenizer-dec", "dream", "llada", "llada-moe", "rnd1"}
)

# The first so many layers keep K and V, the others read theirs.
KV_FROM_START: Mapping[str, int] = MappingProxyType({"gemma3n": 20})
# The last layers share, as many as the file says.
KV_SHARED_AT_END = frozenset({"gemma4"})

# Sparse attention caches the key of an indexer beside K and V: in every layer, or from the first sparse one on.
INDEXED = frozenset({"deepseek32", "glm-dsa", "glm5-next", "hy_v4", "dots3note", "minimax-m3"})
# Of these the file says which layers have one; without a word every layer does.
INDEXER_LISTED = frozenset({"glm-dsa", "glm5-next", "hy_v4", "dots3note"})
# The layers of GLM 5.2 that have an indexer when its file does not list them: src/models/glm-dsa.cpp.
GLM_5_2_CONTEXT_TOKENS = 1_048_576

# Caches that no formula here describes, or models that work only beside another one.
UNKNOWN_CACHES: Mapping[str, str] = MappingProxyType(
    {
        "clip": "This is a vision projector, which works only beside a language model.",
        "deepseek4": "DeepSeek V4 compresses its cache in a way that only the engine can size.",
        "qwen4exp": "This model's cache has parts that only the engine can size.",
        "dflash": "This is a draft model, which works only beside the model it drafts for.",
        "eagle3": "This is a draft model, which works only beside the model it drafts for.",
        "gemma4-assistant": "This is a draft model, which works only beside the model it drafts for.",
    }
)

# No gate in the feed-forward layer: one matrix up, one down.
PLAIN_FEED_FORWARD = frozenset(
    {"gpt2", "gptj", "gptneox", "mpt", "starcoder", "starcoder2", "falcon", "bloom", "codeshell", "phi2", "jais"}
    | {"jais2", "nemotron", "nemotron_h", "nemotron_h_moe", "bert", "nomic-bert-moe", "t5", "arcee", "apertus", "plm"}
    | {"rwkv6", "rwkv7"}
)
# Attention and feed-forward start from the same input, so attention's result waits for the other's.
PARALLEL_RESIDUAL = frozenset(
    {"falcon", "phi2", "gptj", "gptneox", "command-r", "cohere2", "cohere2moe", "plamo", "stablelm"}
)
# Vocabularies of SentencePiece: no merges, and a third of the memory of the others.
SENTENCE_PIECE = frozenset({"gemma", "gemma2", "gemma3", "gemma3n", "gemma-embedding", "phi3", "internlm2", "minicpm"})
