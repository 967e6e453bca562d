"""The parts of the language benchmark: its tables, its questions, the systems asked."""
