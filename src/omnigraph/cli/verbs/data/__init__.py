"""Verbs that read and write what a graph holds."""
