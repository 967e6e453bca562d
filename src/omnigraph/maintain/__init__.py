"""Maintenance: what keeps a graph small and fast.

This package never changes what a query returns.
"""
