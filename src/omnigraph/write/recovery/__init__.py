"""Intents of long writes, and the end of those that died."""
