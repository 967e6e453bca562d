"""Nodes, edges and columns of pinned tables in memory, and the ways between nodes."""
