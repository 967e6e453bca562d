"""The parts of the traversal benchmark: its graph, its questions, the systems asked."""
