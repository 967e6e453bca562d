"""The text of `.pg`: parsing and formatting."""
