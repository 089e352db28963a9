"""What a person means by a name or a pasted address."""

from __future__ import annotations

import pytest

from app.hub.reference import is_repo_name, looks_like_address, parse_reference
from app.hub.types import RepoReference

REPO = "unsloth/Qwen3-8B-GGUF"
WHOLE = RepoReference(repo=REPO)
FILE = RepoReference(repo=REPO, revision="main", path="a b/Q4.gguf", is_file=True)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (REPO, WHOLE),
        (f"  {REPO}\n", WHOLE),
        (f"'{REPO}'", WHOLE),
        (f"{REPO}:Q4_K_M", RepoReference(repo=REPO, quantization="Q4_K_M")),
        (f"{REPO}:UD-Q4_K_XL", RepoReference(repo=REPO, quantization="UD-Q4_K_XL")),
        (f"https://huggingface.co/{REPO}", WHOLE),
        (f"https://huggingface.co/{REPO}/", WHOLE),
        (f"HTTPS://HuggingFace.co/{REPO}?library=llama#files", WHOLE),
        (f"http://www.huggingface.co/{REPO}", WHOLE),
        (f"huggingface.co/{REPO}", WHOLE),
        (f"hf.co/{REPO}", WHOLE),
        (f"hf.co/{REPO}:Q8_0", RepoReference(repo=REPO, quantization="Q8_0")),
        (f"https://hf.co/{REPO}:Q8_0", RepoReference(repo=REPO, quantization="Q8_0")),
        (f"hf://{REPO}", WHOLE),
        (f"https://huggingface.co/{REPO}/tree/main", RepoReference(repo=REPO, revision="main")),
        (f"https://huggingface.co/{REPO}/tree/main/UD/x", RepoReference(repo=REPO, revision="main", path="UD/x")),
        (f"https://huggingface.co/{REPO}/blob/main/a%20b/Q4.gguf", FILE),
        (f"https://huggingface.co/{REPO}/resolve/main/a%20b/Q4.gguf?download=true", FILE),
        (f"https://huggingface.co/{REPO}/raw/main/a%20b/Q4.gguf", FILE),
        (f"https://huggingface.co/{REPO}/discussions/6", WHOLE),
        (f"https://huggingface.co/{REPO}/resolve/refs%2Fpr%2F1/x.gguf",
         RepoReference(repo=REPO, revision="refs/pr/1", path="x.gguf", is_file=True)),
        (f"https://huggingface.co/api/models/{REPO}", WHOLE),
        (f"https://huggingface.co/api/models/{REPO}/revision/main", RepoReference(repo=REPO, revision="main")),
        (f"https://hub.example:8443/{REPO}", WHOLE),
        (f"hub.example:8443/{REPO}", WHOLE),
    ],
)  # fmt: skip
def test_names_and_addresses_are_understood(text, wanted):
    assert parse_reference(text, "https://hub.example:8443") == wanted


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "llama",
        "llama 8b",
        "owner/two words",
        "a/b/c",
        "a//b",
        "../b",
        "a/..",
        "-a/b",
        "a/b-",
        "a--b/c",
        "a/b..c",
        "a/b.git",
        "a/b:",
        "a/b:../x",
        "a/" + "b" * 96,
        "a/b\nc",
        "a/b\u202e",
        "https://example.org/a/b",
        "https://huggingface.co/",
        "https://huggingface.co/owner",
        "https://huggingface.co/datasets/a/b",
        "https://huggingface.co/spaces/a/b",
        "https://huggingface.co/docs/hub",
        "https://huggingface.co/a/b/nonsense/c",
        "https://huggingface.co@evil.example/a/b",
        "https://user:secret@huggingface.co/a/b",
        "https://huggingface.co.evil.example/a/b",
        "https://huggingface.co/a/b/blob/main/%0d%0ax",
        "ftp://huggingface.co/a/b",
        "javascript:alert(1)//a/b",
        "https://[::1/a/b",
        "https://huggingface.co/a/b" + "/x" * 2000,
    ],
)
def test_everything_else_is_words_or_nothing(text):
    assert parse_reference(text) is None


def test_only_the_hub_in_use_adds_its_own_host():
    assert parse_reference("https://hub.example/a/b") is None
    assert parse_reference("https://hub.example/a/b", "https://hub.example") == RepoReference(repo="a/b")
    assert parse_reference("https://hub.example/a/b", "no address [") is None


@pytest.mark.parametrize(
    ("text", "is_one"),
    [("https://x.example", True), ("hf.co/a/b", True), ("hf://a/b", True), ("a/b", False), ("what is hf.co", False)],
)
def test_an_address_is_told_from_words(text, is_one):
    assert looks_like_address(text) is is_one


def test_repo_names_are_checked_like_the_hub_does():
    assert is_repo_name("mistralai/Mixtral-8x7B-v0.1")
    assert is_repo_name("a/b_")
    assert not is_repo_name("gpt2")  # a repo of the old kind, without an owner
