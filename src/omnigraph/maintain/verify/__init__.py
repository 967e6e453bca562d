"""Verify: whether everything that a graph has published is there, and is what it should be."""
