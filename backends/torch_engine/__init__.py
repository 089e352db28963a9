"""The paged engine on PyTorch and transformers: folders of safetensors, and GGUF files by dequantization."""

import os

# Torch's threads wait for each other in a loop many times in a step. Beside any other busy program, and the window is
# one, they spin against whoever has the work: measured, one request fell from 55 to 2 tokens/s. So they sleep soon.
# Read by GNU's and LLVM's OpenMP when torch is loaded, which comes after this.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
