"""Bringing a graph from one schema to the next, from none to the first included."""
