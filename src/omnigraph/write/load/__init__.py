"""Loading: from files, text and frames to typed rows with ids."""
