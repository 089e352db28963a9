"""Readings over time: the rings of numbers that plots, tables and exports share."""
