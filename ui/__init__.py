"""The window: the only Qt of the program."""
