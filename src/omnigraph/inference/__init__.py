"""Schemas proposed for data that is there: types, keys and edges, each with its reason.

Owns guessing, and saying why. Knows files and Arrow; never a graph, a table or an engine.
"""
