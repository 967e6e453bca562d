"""Parsing `.gq`: from text to the syntax tree, with what is said where a text is none."""
