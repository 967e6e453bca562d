"""Input files: where they lie, what is in them, and how they are cut and read."""
