"""What is due, as tables: shapes in, reasons out."""

from __future__ import annotations

from datetime import timedelta

import pytest

from omnigraph.maintain.wanted import (
    FEW_DELETED,
    FEW_FRAGMENTS,
    FEW_ROWS,
    LEFTOVER_BYTES,
    LEFTOVER_FLOOR,
    MANY_COMMITS,
    PORTION_BYTES,
    STALE_AFTER,
    TARGET_ROWS,
    UNCOVERED_FRAGMENTS,
    IndexShape,
    TableShape,
    are_worth_reclaiming,
    choose_tables,
    first_of,
    is_mostly_history,
    is_stale,
    is_worth_cleaning,
    needs,
    next_pause,
)

BIG = TARGET_ROWS


def index(**values: object) -> IndexShape:
    given: dict[str, object] = {"property": "name", "kind": "BTREE", "is_lacking": True}
    return IndexShape(**(given | values))  # type: ignore[arg-type]


def shape(rows: int = 1, **values: object) -> TableShape:
    return TableShape("node:A", rows, **values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("table", "due"),
    [
        (shape(0), []),
        (shape(fragment_rows=(1,) * FEW_FRAGMENTS), []),
        (shape(fragment_rows=(1,) * (FEW_FRAGMENTS + 1)), ["fragments"]),
        (shape(fragment_rows=(BIG,) * 100), []),
        (shape(fragment_rows=(BIG // 2 - 1,) * 17), ["fragments"]),
        (shape(fragment_rows=(BIG // 2,) * 17), []),
        (shape(fragment_rows=(100,), deleted_rows=FEW_DELETED), []),
        (shape(fragment_rows=(100,), deleted_rows=FEW_DELETED + 1), ["deletions"]),
        (shape(fragment_rows=(1_000,), deleted_rows=200), []),
        (shape(fragment_rows=(1_000,), deleted_rows=201), ["deletions"]),
        (shape(indexes=(index(rows_total=FEW_ROWS - 1),)), []),
        (shape(indexes=(index(rows_total=FEW_ROWS),)), ["indexes"]),
        (shape(indexes=(index(rows_total=FEW_ROWS, is_lacking=False),)), []),
        (shape(indexes=(index(rows_total=10_000, rows_covered=9_000),)), []),
        (shape(indexes=(index(rows_total=10_000, rows_covered=8_999),)), ["indexes"]),
        (
            shape(
                indexes=(
                    index(
                        rows_total=100_000,
                        rows_covered=99_000,
                        uncovered_fragments=UNCOVERED_FRAGMENTS,
                    ),
                )
            ),
            [],
        ),
        (
            shape(
                indexes=(
                    index(
                        rows_total=100_000,
                        rows_covered=99_000,
                        uncovered_fragments=UNCOVERED_FRAGMENTS + 1,
                    ),
                )
            ),
            ["indexes"],
        ),
        (shape(indexes=(index(is_lacking=False, is_unasked=True),)), ["indexes"]),
    ],
)
def test_what_is_due(table: TableShape, due: list[str]) -> None:
    assert [need.kind for need in needs(table)] == due


def test_reasons_are_told_once_for_all_indexes() -> None:
    lacking = [index(property=name, rows_total=500) for name in "dcbaa"]
    gone = index(property="x", is_unasked=True)
    assert [need.reason for need in needs(shape(indexes=(*lacking, gone)))] == [
        "indexes that are not built: a, b, c and 1 more",
        "indexes that nobody asks for: x",
    ]


def table(name: str, size: int, fragments: int = 100) -> TableShape:
    return TableShape(name, 1, (1,) * fragments, live_bytes=size)


@pytest.mark.parametrize(
    ("budget", "now", "later"),
    [
        (None, ["small", "many", "large"], []),
        (2**40, ["small", "many", "large"], []),
        (2**20, ["small"], ["many", "large"]),
        (2**20 + 2**30, ["small", "many"], ["large"]),
        (0, [], ["small", "many", "large"]),
    ],
)
def test_the_cheapest_and_worst_come_first(
    budget: int | None, now: list[str], later: list[str]
) -> None:
    tables = [
        table("fine", 1, 1),
        table("large", 2**30),
        table("many", 2**30, 200),
        table("small", 2**20),
    ]
    chosen = choose_tables(tables, budget)
    assert [one.shape.type_key for one in chosen.now] == now
    assert [one.shape.type_key for one in chosen.later] == later


@pytest.mark.parametrize(
    ("reclaimable", "stored", "is_worth"),
    [
        (0, 0, False),
        (LEFTOVER_BYTES - 1, 2**40, False),
        (LEFTOVER_BYTES, 2**40, True),
        (LEFTOVER_FLOOR - 1, LEFTOVER_FLOOR, False),
        (LEFTOVER_FLOOR, 5 * LEFTOVER_FLOOR, True),
        (LEFTOVER_FLOOR, 6 * LEFTOVER_FLOOR, False),
    ],
)
def test_leftovers_that_are_worth_it(reclaimable: int, stored: int, *, is_worth: bool) -> None:
    assert is_worth_cleaning(reclaimable, stored) is is_worth


def test_portions_are_no_larger_than_they_need_be() -> None:
    sizes = {"a": PORTION_BYTES // 2, "b": PORTION_BYTES // 2, "c": 2 * PORTION_BYTES, "d": 1}
    chosen = choose_tables([table(name, size) for name, size in sizes.items()], None)
    found = [[one.shape.type_key for one in portion] for portion in chosen.portions()]
    assert sorted(name for portion in found for name in portion) == sorted(sizes)
    assert all(
        len(portion) == 1 or sum(sizes[name] for name in portion) <= PORTION_BYTES
        for portion in found
    )
    assert len(found) == 3
    assert list(choose_tables([], None).portions()) == []


def test_pauses_grow_while_nothing_is_due() -> None:
    assert [next_pause(10, idle) for idle in range(6)] == [10, 20, 40, 80, 80, 80]
    assert are_worth_reclaiming(MANY_COMMITS, 0, 0)
    assert not are_worth_reclaiming(MANY_COMMITS - 1, 0, 0)
    assert are_worth_reclaiming(0, LEFTOVER_BYTES, 0)


def test_the_rest() -> None:
    month = STALE_AFTER // timedelta(microseconds=1)
    assert (is_stale(0, month), is_stale(0, month + 1)) == (False, True)
    assert not is_mostly_history(LEFTOVER_BYTES - 1, 0)
    assert is_mostly_history(LEFTOVER_BYTES, 1)
    assert not is_mostly_history(LEFTOVER_BYTES, LEFTOVER_BYTES)
    assert (first_of([]), first_of(["a", "b"], 1)) == ("", "a and 1 more")
