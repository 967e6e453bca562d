"""Queries in cells of a notebook: `%load_ext omnigraph`. IPython calls it, nothing else does."""
