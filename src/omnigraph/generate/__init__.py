"""Made-up graphs of any size, the same for everybody who names the same seed.

Owns data for tests, demonstrations and measurements. Knows Arrow and files; never a graph, a
table or an engine.
"""
