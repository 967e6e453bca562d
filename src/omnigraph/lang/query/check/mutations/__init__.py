"""Type checking of mutations: statements, their values, their conditions and their ends."""
