"""A team's graphs, deployed by plan and apply: what is wanted, what is there, and the way."""
