"""The parts of the search benchmark: its library, its questions, the systems asked."""
