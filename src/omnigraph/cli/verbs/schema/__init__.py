"""Verbs about schemas and query files."""
