"""Verbs that work on the files of a project."""
