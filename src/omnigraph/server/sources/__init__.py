"""Where the graphs of a server come from."""
