"""The text that the ladder model learns from, and its vocabulary. Knows nothing of models.

Every Python has this text on disk: the language reference as `help()` prints it, which is prose, and the sources of the
standard library. The texts that comparisons score are not among it.
"""

from __future__ import annotations

import importlib
import os
import sysconfig
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY_TOKENS = 4096
BEGIN, END = "<s>", "</s>"
BEGIN_ID, END_ID = 0, 1
HELD_OUT_EVERY = 16  # one window in so many is never learned from

_MODULES = (
    *("argparse", "ast", "asyncio/base_events", "asyncio/streams", "asyncio/tasks", "bdb", "calendar", "cmd", "codecs"),
    *("collections/__init__", "concurrent/futures/_base", "configparser", "contextlib", "copy", "csv", "dataclasses"),
    *("difflib", "dis", "doctest", "email/message", "enum", "fractions", "ftplib", "functools", "gettext", "glob"),
    *("heapq", "http/client", "http/cookiejar", "inspect", "ipaddress", "json/decoder", "locale", "logging/__init__"),
    *("mailbox", "mimetypes", "multiprocessing/managers", "optparse", "os", "pathlib", "pdb", "pickle", "platform"),
    *("plistlib", "pprint", "pydoc", "random", "selectors", "shelve", "shutil", "smtplib", "socket", "ssl"),
    *("statistics", "string", "subprocess", "tarfile", "tempfile", "textwrap", "threading", "timeit", "tokenize"),
    *("traceback", "turtle", "typing", "unittest/case", "unittest/mock", "urllib/request", "uuid", "zipfile"),
)


def training_text() -> str:
    """Return some 3 MB of English prose and Python; what a Python does not have is left out."""
    topics = importlib.import_module("pydoc_data.topics").topics
    folder = Path(sysconfig.get_path("stdlib"))
    sources = [folder / f"{name}.py" for name in _MODULES]
    parts = [topics[name] for name in sorted(topics)]
    parts += [path.read_text(encoding="utf-8") for path in sources if path.is_file()]
    return "\n\n".join(parts)


def learn_vocabulary(text: str) -> Tokenizer:
    """Return a byte-level BPE tokenizer as GPT-2's, whose merges are learned from the text."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_TOKENS,
        special_tokens=[BEGIN, END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(text.splitlines(keepends=True), trainer)
    return tokenizer


def cut_windows(tokenizer: Tokenizer, text: str, window_tokens: int) -> tuple[np.ndarray, np.ndarray]:
    """Return windows to learn from and windows held out, int64 [windows, window_tokens].

    The first token of each is the begin token, as llama.cpp's perplexity tool has it.
    """
    token_ids = np.array(tokenizer.encode(text, add_special_tokens=False).ids, dtype=np.int64)
    count = len(token_ids) // window_tokens
    windows = token_ids[: count * window_tokens].reshape(count, window_tokens)
    windows[:, 0] = BEGIN_ID
    is_held_out = np.arange(count) % HELD_OUT_EVERY == 0
    return windows[~is_held_out], windows[is_held_out]


def unigram_loss(learned: np.ndarray, held_out: np.ndarray) -> float:
    """Return what counting tokens alone comes to on the windows held out, nats a token; each token counts once more."""
    counts = np.bincount(learned[:, 1:].ravel(), minlength=VOCABULARY_TOKENS) + 1.0
    logprobs = np.log(counts / counts.sum())
    return float(-logprobs[held_out[:, 1:]].mean())
