"""Tables: Lance datasets at pinned versions, their detached commits, and what those are made of."""
