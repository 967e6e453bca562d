"""Verbs that keep a graph in order."""
