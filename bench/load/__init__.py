"""The parts of the load benchmark: its files, the systems that load them, its tables."""
