"""Checking on Spark: the rules about several rows, asked of rows that are staged."""
