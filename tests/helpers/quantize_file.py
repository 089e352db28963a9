"""Makes another quantization of a GGUF with llama.cpp itself, and with nothing of ours: a program of its own.

    python tests/helpers/quantize_file.py SOURCE TARGET QUANTIZATION THREADS

Quantized sources are taken, too. Prints what llama.cpp logs on standard error.
"""

from __future__ import annotations

import sys

import llama_cpp as llama


def main(source: str, target: str, quantization: str, threads: str) -> int:
    """Write the target and return 0, or llama.cpp's own code."""
    name = quantization if quantization == "ALL_F32" else f"MOSTLY_{quantization}"
    params = llama.llama_model_quantize_default_params()
    params.ftype = getattr(llama, f"LLAMA_FTYPE_{name}")
    params.nthread = int(threads)
    params.allow_requantize = True
    return int(llama.llama_model_quantize(source.encode(), target.encode(), params))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
