"""Embeddings: text becomes vectors, behind one protocol.

Owns the providers, which of them is configured, and filling the `@embed` vectors
of rows. Never reads or writes a graph, and loads a model only when it is used.
"""
