"""Stored rows under another schema: how they look there, whether they obey it, new columns."""
