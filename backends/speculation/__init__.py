"""Speculative decoding as far as both engines share it: who proposes, how much, and what it was worth. No torch."""
