"""From checked queries to plans: the order of steps, and where every condition stands."""
