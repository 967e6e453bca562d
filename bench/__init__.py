"""Benchmarks as ratios: each compares two things measured side by side in one run.

A module `bench_<name>.py` exposes `run() -> list[Ratio]`. Absolute times are
shown, never judged: they belong to the machine.
"""
