"""Dialogues: the session that drives them and the store that keeps them."""
