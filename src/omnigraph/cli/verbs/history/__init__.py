"""Verbs about branches, commits and changes."""
