"""The traversal benchmark at a tiny size: the systems agree, and the table shows them."""

from __future__ import annotations

import pytest

from bench.bench_traversal import Size, measure
from bench.ratio import Ratio
from bench.traversal.data import people
from bench.traversal.questions import QUESTIONS, Question
from bench.traversal.systems import OURS
from bench.traversal.tables import Line, Times, agree, table

QUESTION = QUESTIONS[0]
ORDERED = next(question for question in QUESTIONS if question.ordered)


@pytest.mark.slow
def test_a_tiny_run_agrees_with_every_peer_and_renders(capsys: pytest.CaptureFixture[str]) -> None:
    ratios = measure(Size(300, 2_000, runs=5, rounds=1, cold_runs=1, with_memory=True))
    shown = capsys.readouterr().out
    for question in QUESTIONS:
        assert question.name in shown
    assert "peak memory" in shown
    assert [ratio for ratio in ratios if ratio.name.startswith("open and first 2 hops")]
    assert all(ratio.numerator_s > 0 for ratio in ratios)


def test_the_graph_is_the_same_each_time_and_simple() -> None:
    first, second = people(500, 3_000), people(500, 3_000)
    assert first.edge_table().equals(second.edge_table())
    assert first.node_table().equals(second.node_table())
    pairs = set(zip(first.sources.tolist(), first.targets.tolist(), strict=True))
    assert len(pairs) == 3_000
    assert all(source != target for source, target in pairs)


def test_out_degrees_follow_a_power_law() -> None:
    graph = people(2_000, 20_000)
    degrees = sorted((graph.sources == number).sum() for number in range(graph.count))
    assert degrees[0] <= 1
    assert degrees[-1] > 20 * degrees[len(degrees) // 2]


@pytest.mark.parametrize(
    ("question", "theirs", "same"),
    [
        (QUESTION, [[2, "b"], [1, "a"]], True),
        (ORDERED, [[2, "b"], [1, "a"]], False),
        (QUESTION, [[1, "a"]], False),
        (QUESTION, [[1, "a"], [2, "c"]], False),
        (ORDERED, [[1.0 - 1e-12, "a"], [2, "b"]], False),
    ],
)
def test_answers_are_compared_row_by_row(
    question: Question, theirs: list[list[object]], same: bool
) -> None:
    assert agree(question, [[1, "a"], [2, "b"]], theirs) is same


def test_averages_may_differ_in_the_last_digits() -> None:
    assert agree(QUESTION, [["x", 47.1]], [["x", 47.1 + 1e-12]])


def test_the_line_is_judged_by_the_fastest_peer() -> None:
    line = Line(QUESTION, {OURS: Times((0.002,)), "a": Times((0.004,)), "b": Times((0.001,))})
    assert line.ratio() == Ratio(f"{QUESTION.name} / fastest peer", 0.002, 0.001, QUESTION.limit)
    assert table([line], ["a", "b"]).splitlines()[1].split()[-5:] == [
        "2.00",
        "2.00",
        "4.00",
        "1.00",
        "2.00",
    ]


def test_without_a_peer_there_is_nothing_to_judge() -> None:
    assert Line(QUESTION, {OURS: Times((0.002,))}).ratio() is None


def test_the_slowest_of_twenty_is_left_out_of_p95() -> None:
    times = Times(tuple(float(number) for number in range(1, 21)))
    assert (times.median, times.p95) == (10.5, 19.0)
