"""Options that verbs share, and which command takes which."""
