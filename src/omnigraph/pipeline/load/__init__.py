"""Bulk loads on Spark: files of any size become one validated, atomic commit."""
