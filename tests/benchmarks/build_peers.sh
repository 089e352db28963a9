#!/bin/sh
# Builds llama-bench and llama-perplexity, llama.cpp's own tools, from the very source that our engine is built from, with
# the same switches. They lie outside the tree, in <cache>/cutaway/peers/<version>/bin/, built once for each version.
# Usage: tests/benchmarks/build_peers.sh    (CUTAWAY_SDIST=<unpacked sdist> saves the download)
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/../.." && pwd)
python="$root/.venv/bin/python"
version=$(sed -n 's/^llama-cpp-python==//p' "$root/constraints.txt")
peers="${XDG_CACHE_HOME:-$HOME/.cache}/cutaway/peers/$version"
tools="llama-bench llama-perplexity"

missing=""
for tool in $tools; do
    [ -x "$peers/bin/$tool" ] || missing="$missing $tool"
done
if [ -z "$missing" ]; then
    echo "$peers/bin: $tools are there."
    exit 0
fi
for command in cmake ninja c++; do
    command -v "$command" >/dev/null || {
        echo "$command is missing: apt-get install cmake ninja-build g++" >&2
        exit 1
    }
done

mkdir -p "$peers"
source="${CUTAWAY_SDIST:-$peers/llama_cpp_python-$version}"
if [ ! -d "$source/vendor/llama.cpp" ]; then
    # ":all:" would build the build tools from source, too.
    "$python" -m pip download --quiet --disable-pip-version-check --no-deps --no-binary llama-cpp-python \
        --dest "$peers" "llama-cpp-python==$version"
    tar -xzf "$peers/llama_cpp_python-$version.tar.gz" -C "$peers"
    rm "$peers/llama_cpp_python-$version.tar.gz"
fi

# The switches of llama-cpp-python's own build: release, this processor's instructions, OpenMP, shared libraries.
nice -n 10 cmake -G Ninja -S "$source/vendor/llama.cpp" -B "$peers/build" \
    -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=ON -DGGML_NATIVE=ON \
    -DLLAMA_BUILD_APP=OFF -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
    -DLLAMA_OPENSSL=OFF -DCMAKE_BUILD_WITH_INSTALL_RPATH=ON -DCMAKE_INSTALL_RPATH="\$ORIGIN"
nice -n 10 cmake --build "$peers/build" --target $tools --parallel "${CUTAWAY_BUILD_JOBS:-1}"

# Renamed at the end, so that half-built ones are never found; they look for their libraries beside themselves.
rm -rf "$peers/bin"
mv "$peers/build/bin" "$peers/bin"
rm -rf "$peers/build"
[ -n "${CUTAWAY_SDIST:-}" ] || rm -rf "$peers/llama_cpp_python-$version"
echo "$peers/bin: $tools are built."
