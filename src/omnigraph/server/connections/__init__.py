"""Connections: what a client may do with one, before and beside its requests."""
