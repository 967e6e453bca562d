"""Tables, control objects and their requests: all that touches disks and object stores.

The only package that imports `lance`. Knows tables, versions, files and small
objects; must never know what a graph, a branch of a graph or a commit is.
"""
