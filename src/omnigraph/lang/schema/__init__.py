"""The `.pg` schema language: text to catalog, identity, and migration plans."""
