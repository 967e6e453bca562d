"""Checking a load on Spark: the rules that look at many rows, as tasks."""
