"""From a captured base to one published commit: the driver, the read set and the door."""
