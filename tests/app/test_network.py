"""What speaks with the network is made when it is asked for, and no earlier."""

from __future__ import annotations

import subprocess
import sys

from app.context import build_context
from tests.helpers.command_line import ROOT


def test_nothing_of_the_network_is_loaded_by_a_context():
    code = (
        "import sys; from app.context import build_context; context = build_context(); context.close();"
        "sys.exit(', '.join(sorted({'httpx2', 'huggingface_hub', 'keyring'} & set(sys.modules))) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_parts_are_made_once_and_downloads_are_told_to_all(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    context = build_context()
    network = context.network
    assert network.hub is network.hub
    assert network.tokens is network.tokens
    assert network.downloads is network.downloads
    assert network.fetched.models() == []
    told = []
    network.watch_downloads(told.append)
    network._on_change("a change")
    assert told == ["a change"]
    context.close()
    network.close()  # twice is once
