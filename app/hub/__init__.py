"""Searching a hub, reading its model cards, and the token that it knows a person by."""
