"""Exports on Spark: one snapshot as a directory of files."""
