"""The rules that a schema must obey."""
