"""The search benchmark at a tiny size: the systems agree, and the tables show them."""

from __future__ import annotations

import numpy as np
import pytest

from bench.bench_search import Size, measure
from bench.ratio import Ratio
from bench.search.data import DIMENSION, YEARS, Library, exact
from bench.search.fusion import Rows, fused
from bench.search.questions import QUESTIONS, WANTED, Question, nearest_of
from bench.search.systems import OURS, PEER
from bench.search.tables import (
    Line,
    agreement,
    build_table,
    recall,
    recall_text,
    same_rows,
    search_table,
)
from bench.search.workers import Built
from bench.traversal.tables import Times

PLAIN = Question("nearest", "plain")
CITY = Question("nearest", "traversal")


@pytest.mark.slow
def test_a_tiny_run_agrees_with_the_peer_and_renders(capsys: pytest.CaptureFixture[str]) -> None:
    ratios = measure(Size(400, runs=3, rounds=1))
    shown = capsys.readouterr().out
    for question in QUESTIONS:
        assert question.name in shown
    assert "recall@10 of nearest 1.000, goal 0.95: reached" in shown
    assert ratios[-1].name == "index build / raw Lance"
    assert all(ratio.numerator_s > 0 and ratio.denominator_s > 0 for ratio in ratios)


# -- the library -------------------------------------------------------------------


def test_the_library_is_the_same_each_time() -> None:
    first, second = Library(300), Library(300)
    assert np.array_equal(first.vectors, second.vectors)
    assert first.words.equals(second.words)
    assert first.asked(3) == second.asked(3)


def test_words_follow_zipfs_law_and_years_are_one_in_a_hundred() -> None:
    library = Library(5_000)
    words, counts = np.unique(library.words.flatten().to_pylist(), return_counts=True)
    counts = np.sort(counts)[::-1]
    assert 15 < counts.sum() / library.count < 25
    assert counts[0] > 5 * counts[9] > 20 * counts[len(words) // 2]
    share = np.mean(library.years == YEARS[50])
    assert 0.005 < share < 0.015


def test_a_city_has_a_few_of_the_documents() -> None:
    library = Library(5_000)
    written = [library.written_in(city) for city in library.cities]
    assert sum(part.sum() for part in written) == len(library.wrote[0]) > library.count
    assert all(0 < np.mean(part > 0) < 0.1 for part in written)


def test_nobody_wrote_a_document_twice() -> None:
    authors, documents = Library(2_000).wrote
    assert len(set(zip(authors.tolist(), documents.tolist(), strict=True))) == len(authors)


def test_the_nearest_are_found_by_looking_at_all() -> None:
    vectors = np.zeros((4, DIMENSION), dtype=np.float32)
    vectors[:, 0], vectors[:, 1] = [1, 2, 1, -1], [0, 1, 1, 0]
    query = [1.0] + [0.0] * (DIMENSION - 1)
    assert exact(vectors, query, np.ones(4, dtype=bool), 3).tolist() == [0, 1, 2]
    assert exact(vectors, query, np.array([False, False, True, True]), 3).tolist() == [2, 3]


def test_a_document_of_two_authors_fills_two_rows() -> None:
    library = Library(400)
    for asked in library.asked(20):
        rows = library.written_in(asked.city)
        found = nearest_of(library, CITY, asked)
        assert (rows[found] > 0).all()
        assert rows[found[:-1]].sum() < WANTED <= max(WANTED, rows[found].sum())
        assert len(nearest_of(library, PLAIN, asked)) == WANTED


# -- judging answers ---------------------------------------------------------------


def test_recall_counts_documents_of_all_searches() -> None:
    answers: list[Rows] = [[["a", 0.1], ["x", 0.2]], [["c", 0.1]]]
    assert recall([["a", "b"], ["c", "d"]], answers) == 0.5
    assert recall([["a", "a"], ["c"]], answers) == 1.0


@pytest.mark.parametrize(
    ("theirs", "same"),
    [
        ([["a", 3.0], ["b", 2.0], ["d", 1.0]], True),  # which of those at the cut made it
        ([["a", 3.00001], ["b", 2.0], ["c", 1.0]], True),
        ([["a", 3.0], ["d", 2.0], ["c", 1.0]], False),
        ([["a", 3.1], ["b", 2.0], ["c", 1.0]], False),
        ([["a", 3.0], ["b", 2.0]], False),
        ([], False),
    ],
)
def test_words_have_one_answer_but_for_ties_at_the_cut(theirs: Rows, same: bool) -> None:
    ours: Rows = [["a", 3.0], ["b", 2.0], ["c", 1.0]]
    assert same_rows(ours, theirs) is same


def test_two_empty_answers_agree() -> None:
    assert same_rows([], [])
    assert agreement([[]], [[]]) == 1.0


def test_places_are_compared_by_score() -> None:
    assert agreement([[["a", 1.0], ["b", 0.5]]], [[["x", 1.0], ["y", 0.4]]]) == 0.5
    assert agreement([[["a", 1.0]]], [[["a", 1.0], ["b", 0.5]]]) == 0.5


def test_ranks_are_fused_by_document_and_rows_stay_with_the_first_ranking() -> None:
    near: Rows = [["a", "Ann", 0.1], ["a", "Bo", 0.1], ["b", "Ann", 0.2]]
    worded: Rows = [["b", "Cy", 9.0], ["c", "Cy", 8.0]]
    assert fused([near, worded], 10) == [
        ["b", "Ann", 1 / 62 + 1 / 61],
        ["a", "Ann", 1 / 61],
        ["a", "Bo", 1 / 61],
        ["c", "Cy", 1 / 62],
    ]
    assert len(fused([near, worded], 2)) == 2


# -- the tables --------------------------------------------------------------------


def test_the_line_is_judged_by_the_limit_of_its_shape() -> None:
    times = {OURS: Times((0.002,)), PEER: Times((0.004,))}
    plain, city = Line(PLAIN, times, {OURS: 0.97}), Line(CITY, times, {OURS: 0.97})
    assert plain.ratio() == Ratio("nearest / lancedb", 0.002, 0.004, 1.3)
    assert city.ratio() == Ratio("nearest, authors of a city / lancedb", 0.002, 0.004, 1.0)
    assert search_table([plain]).splitlines()[1].split() == [
        *("nearest", "2.00", "2.00", "4.00", "0.50", "0.970")
    ]


def test_without_the_peer_there_is_nothing_to_judge() -> None:
    line = Line(PLAIN, {OURS: Times((0.002,))}, {OURS: 0.97})
    assert line.ratio() is None
    assert search_table([line]).splitlines()[1].split() == ["nearest", "2.00", "2.00", "0.970"]


@pytest.mark.parametrize(("found", "verdict"), [(0.95, "reached"), (0.94, "missed")])
def test_recall_has_a_goal(found: float, verdict: str) -> None:
    line = Line(PLAIN, {OURS: Times((0.002,))}, {OURS: found})
    assert recall_text([line]) == f"recall@10 of nearest {found:.3f}, goal 0.95: {verdict}"


def test_builds_are_shown_side_by_side() -> None:
    shown = build_table({OURS: Built(1.5, ("a", "b")), "lance": Built(1.0, ("a", "b"))})
    assert shown.splitlines() == [
        "omnigraph    1.50 s for 2 indexes",
        "lance        1.00 s for 2 indexes",
    ]
