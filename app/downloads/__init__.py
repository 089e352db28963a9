"""Files on their way from a hub to this disk."""
