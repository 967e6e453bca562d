"""Staging a load on Spark: splits decoded, checked row by row and written as fragments."""
