"""Reading: everything that answers from one snapshot. Must never write."""
