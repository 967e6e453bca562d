"""The rules of a schema: what one row must obey by itself, and what rows must obey together."""
