"""Qt item models over what app knows."""
