"""What a write does to each type, from rows in memory to effects on tables."""
