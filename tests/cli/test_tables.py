"""Plain text tables."""

from __future__ import annotations

import pytest

from omnigraph.cli.render.tables import render_table, text_width


def test_columns_are_padded_and_numbers_stand_to_the_right() -> None:
    assert render_table(("name", "n"), [("a", 5), ("long name", 1234), ("b", None)]) == (
        "name      |    n\n----------+-----\na         |    5\nlong name | 1234\nb         |"
    )


def test_a_table_without_rows_is_its_header() -> None:
    assert render_table(("a", "bc"), []) == "a | bc\n--+---"


def test_truth_values_are_no_numbers() -> None:
    assert render_table(("yes or no",), [(True,)]).splitlines()[-1] == "True"


def test_a_cell_is_one_line_and_cannot_move_the_cursor() -> None:
    assert render_table(("x",), [("a\nb\tc\x1b[0m",)]).splitlines()[2:] == [r"a\nb\tc\x1b[0m"]


@pytest.mark.parametrize(
    ("width", "expected"), [(80, "0123456789"), (9, "01234567…"), (1, "0123456…")]
)
def test_a_wide_cell_is_cut(width: int, expected: str) -> None:
    assert render_table(("x",), [("0123456789",)], max_width=width).splitlines()[2] == expected


def test_a_wide_cell_is_wrapped() -> None:
    table = render_table(("x", "y"), [("0123456789", "z")], max_width=8, layout="wrap")
    assert table.splitlines()[2:] == ["01234567 | z", "89       |"]


def test_widths_are_those_of_a_terminal() -> None:
    assert text_width("日本") == 4
    assert text_width("e\u0301") == 1
    assert render_table(("x", "y"), [("日本", "a"), ("b", "c")]).splitlines()[2:] == [
        "日本 | a",
        "b    | c",
    ]
