"""What the README says of others is what benchmarks and tests hold, by their names and numbers."""

from __future__ import annotations

import re
from pathlib import Path

from bench.bench_search import BUILD_LIMIT
from bench.search.questions import PLAIN_LIMIT, TRAVERSAL_LIMIT
from bench.traversal.questions import WAYS

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")
ROWS = {
    cells[1]: cells
    for line in TEXT.partition("## Beside others")[2].partition("\n## ")[0].splitlines()
    if len(cells := [cell.strip() for cell in line.split("|")]) == 5
}


def test_everything_that_holds_a_claim_is_there() -> None:
    held = [
        name for row in ROWS.values() for name in re.findall(r"`((?:bench|tests)/.*?)`", row[3])
    ]
    assert len(held) > len(ROWS) - 2
    assert [name for name in held if not (ROOT / name).is_file()] == []


def test_the_numbers_are_the_limits_of_the_benchmarks() -> None:
    limits = {question.name: question.limit for question in WAYS}
    assert limits["a shortest way between two"] == 1.0
    ways = ROWS["kuzu, ladybug"][2]
    assert f"at most {limits['all shortest ways between two']} times" in ways
    assert f"least weight {limits['the way of least weight between two']:g} times" in ways
    search = ROWS["LanceDB"][2]
    assert f"at most {PLAIN_LIMIT} times as long, and no longer" in search
    assert f"at most {BUILD_LIMIT} times what Lance alone takes" in search
    assert TRAVERSAL_LIMIT == 1.0


def test_the_picture_is_there() -> None:
    for name in re.findall(r"!\[.*?\]\((.*?)\)", TEXT):
        assert (ROOT / name).is_file()
