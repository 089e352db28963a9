"""The llama.cpp backend, on the low-level bindings."""
