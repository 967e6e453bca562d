"""What the functions of the query language do, over whole columns at once.

`evaluate` is the one entry; each module holds the functions of one idea. Knows values, never
where they come from.
"""
