"""Three-way merges of branches: rows, then properties, then the rules of the schema."""
