"""What the program knows, without a window and without an engine in its process."""
