"""The parts of the growth benchmark: its graphs, its writer processes and its chart."""
