"""What rows must obey, alone and together, and what is said of those that do not."""
