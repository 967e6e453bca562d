"""Lance tables: rows at pinned versions, and how they are written."""
