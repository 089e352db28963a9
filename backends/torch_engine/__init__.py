"""The paged engine on PyTorch and transformers: folders of safetensors, and GGUF files by dequantization."""
