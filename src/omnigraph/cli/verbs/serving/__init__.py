"""Verbs that serve graphs."""
