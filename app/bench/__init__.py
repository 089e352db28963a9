"""Measures engines on prompts of a fixed length: one load after the other, each in a worker of its own."""
