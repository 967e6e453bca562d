"""The parts of the branch benchmark: its rows, the systems that merge them, its tables."""
