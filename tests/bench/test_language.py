"""The language benchmark at a tiny size: the systems agree, and the tables show them."""

from __future__ import annotations

import pytest

from bench.bench_language import Size, measure
from bench.language.data import knows, persons
from bench.language.questions import LIMIT, QUESTIONS
from bench.traversal.data import people
from bench.traversal.questions import WAYS

TINY = Size(300, 2_000, runs=1, rounds=1, ways=5, way_rounds=1)


@pytest.mark.slow
def test_a_tiny_run_agrees_with_every_peer_and_renders(capsys: pytest.CaptureFixture[str]) -> None:
    ratios = measure(TINY)
    shown = capsys.readouterr().out
    for question in (*QUESTIONS, *WAYS):
        assert question.name in shown
    assert len(ratios) == len(QUESTIONS) + len(WAYS)
    assert all(ratio.numerator_s > 0 and ratio.denominator_s > 0 for ratio in ratios)


def test_the_rows_are_the_same_each_time() -> None:
    graph = people(500, 3_000)
    assert persons(graph).equals(persons(people(500, 3_000)))
    assert knows(graph).equals(knows(people(500, 3_000)))
    assert 0 < persons(graph)["mail"].null_count < 100


def test_every_question_has_its_limit() -> None:
    assert {question.limit for question in QUESTIONS} == {LIMIT}
    assert [way.limit for way in WAYS] == [1.0, 1.5, 2.0]
