"""Rows in memory: filters, hashing, sorting, spooling. Must never open a table."""
