"""Small tables with a linear history: heads that are compared and swapped, and records."""
