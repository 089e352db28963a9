"""Starting, watching and restarting workers."""
