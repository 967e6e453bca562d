"""What somebody sees of a snapshot who may not see all of it."""
