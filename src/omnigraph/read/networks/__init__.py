"""Whole graphs as other libraries of graphs have them."""
