"""The files that people write about graphs, servers and themselves."""
