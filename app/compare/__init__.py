"""Comparing quantizations by measurement: what is asked, how it is run, what it means."""
