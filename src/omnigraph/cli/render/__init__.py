"""What the command line prints: tables, graphs, JSON."""
