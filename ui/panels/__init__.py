"""The screens and side panels."""
