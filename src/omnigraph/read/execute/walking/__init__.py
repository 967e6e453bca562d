"""Walks of any number of hops, and ways: searches from node to node, many at once."""
