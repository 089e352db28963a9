"""The llama.cpp backend, on the low-level bindings."""

from backends.llama_cpp_engine.library import choose_library

# Here, and not where it is used: whatever module of this folder is imported first, llama_cpp comes after this line.
BUNDLED_LIBRARY = choose_library()
