"""The paged engine on PyTorch and transformers: folders of safetensors, and GGUF files by dequantization."""

import os

# Torch's threads wait for each other in a loop, several hundred times in a step. As OpenMP comes they do so for
# milliseconds, and beside any other busy program they hinder the very thread they wait for: measured on two cores, one
# request fell from 65 tokens/s to 2. If they sleep at once, each wait costs a switch: 41 tokens/s. So they wait about
# as long as a wait on a calm machine takes; SpareThreads does the rest. Read when torch is loaded, which comes after
# this: GOMP by GNU's OpenMP (Linux), in turns of the loop; KMP by LLVM's and Intel's (macOS, Windows), in ms.
os.environ.setdefault("GOMP_SPINCOUNT", "5000")
os.environ.setdefault("KMP_BLOCKTIME", "1")
