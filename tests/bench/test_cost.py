"""Costs: measured in turns, shown as medians."""

from __future__ import annotations

from bench.cost import Cost, costs, line
from omnigraph.storage.objects import meter


def test_all_are_measured_in_turns_and_prepared() -> None:
    calls: list[str] = []
    steps = [lambda: calls.append("a"), lambda: calls.append("b")]
    costs(steps, runs=2, before=lambda: calls.append("-"))
    assert calls == ["-", "a", "-", "b"] * 3


def test_the_median_leaves_a_rare_run_out() -> None:
    requests = iter([9, 2, 2, 9, 2, 9])

    def step() -> None:
        for _ in range(next(requests)):
            meter.count("get")

    (cost,) = costs([step], runs=5)
    assert cost.requests == 2
    assert cost.seconds > 0


def test_lines_are_aligned() -> None:
    header = line("what", ["depth 10", "depth 1,000"])
    row = line("open", [Cost(3, 0.0021), Cost(1125, 1.5)])
    assert row.split() == ["open", "3", "req", "2.1", "ms", "1125", "req", "1500.0", "ms"]
    assert len(header) == len(row)
