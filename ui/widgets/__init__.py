"""Small widgets that know nothing of engines."""
