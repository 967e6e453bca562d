"""Verbs of a team: graphs that are deployed together."""
