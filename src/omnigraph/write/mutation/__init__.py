"""Mutation queries: their statements run into one change set."""
