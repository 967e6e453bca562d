"""Merging two schemas that began as one, by the identity of what they declare."""
