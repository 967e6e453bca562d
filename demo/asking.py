"""The chapter about asking: what an analyst wants to know in the first hour.

Owns five questions and a few readers and loans that make their answers worth reading.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from demo.telling import HERE, OMNIGRAPH, check, run, say

READERS = {
    "R3": ("Noor Haddad", "2023-11-30"),
    "R4": ("Iris Vale", "2024-01-31"),
    "R5": ("Sam Oduya", "2024-02-29"),
}
KNOWS = (("R2", "R3"), ("R3", "R4"), ("R2", "R5"), ("R5", "R4"))
LOANS = (
    ("R3", "111-1", "2024-02-01", "2024-02-20"),
    ("R4", "111-1", "2024-03-05", None),
    ("R4", "111-4", "2024-03-05", "2024-03-09"),
    ("R5", "111-4", "2024-04-10", "2024-04-30"),
    ("R5", "111-2", "2024-04-10", None),
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question in words and in the language, and what its answer must show."""

    words: str
    text: str
    column: str
    values: tuple[Any, ...]


QUESTIONS = (
    Asked(
        "How many readers does each decade of books have, and what is its share of the loans?",
        """match {
    let $all = count { $_ borrowed $_ }
    $reader borrowed $book
}
return {
    div($book.year, 10) * 10 as decade,
    count(distinct $reader) as readers,
    round(100.0 * count(*) / any_value($all)) as percent
}
order { percent desc, decade }""",
        "readers",
        (2, 2, 1, 1),
    ),
    Asked(
        "Which two books of each shelf were lent most?",
        """match {
    $book: Book
    let $loans = count { $_ borrowed $book }
    $loans > 0
}
return { $book.shelf, $book.title, $loans }
order { $book.shelf, $loans desc, $book.title }
limit 2 per { $book.shelf }""",
        "loans",
        (1, 2, 2, 1),
    ),
    Asked(
        "How long are books kept, month by month, and how many are still out?",
        """match {
    $reader $loan:borrowed $book
}
return {
    format($loan.on, "%Y-%m") as month,
    count_if($loan.returned is null) as out,
    median(days_between($loan.on, $loan.returned)) as days
}
order { month desc }
limit 3""",
        "out",
        (1, 1, 1),
    ),
    Asked(
        "Through whom does Mira know Iris?",
        """match {
    $mira: Reader { card: "R1" }
    $iris: Reader { card: "R4" }
    $mira every $way:knows{1,} $iris
}
return { $way.name as names, $way.@hops as hops }
order { join($way.name, ", ") }""",
        "hops",
        (3, 3),
    ),
    Asked(
        "Who has read the same book, one with a ferry or of few readers?",
        """match {
    let $readers = count { $_: Reader }
    $one: Reader
    $one borrowed $book
    $other borrowed $book
    $one.name < $other.name
    2 * count { $_ borrowed $book } < $readers or $book.title contains "Ferry"
}
return { $one.name, $other.name, collect(distinct $book.title) as books }
order { $one.name, $other.name }""",
        "books",
        (["The Long Ferry"], ["A Harbour in March"]),
    ),
)


def show_questions(directory: Path) -> None:
    """A library of its own, and one command for each question."""
    say(
        "What an analyst asks in the first hour is one query each",
        "Distinct counts and shares, the top of each group, dates, ways, what is in common.",
    )
    more = directory / "asking.jsonl"
    more.write_text("".join(f"{json.dumps(line)}\n" for line in _more()), encoding="utf-8")
    uri = str(directory / "asking.omni")
    run("init", "--schema", "library.pg", uri, "--quiet")
    for data in ("library.jsonl", "catalogue.jsonl", str(more)):
        run("load", uri, "--data", data, "--mode", "merge", "--engine", "inline", "--quiet")
    for asked in QUESTIONS:
        print(f"\n{asked.words}\n")
        run("query", "--store", uri, "-e", asked.text)
    answers = [[row[asked.column] for row in _rows(uri, asked.text)] for asked in QUESTIONS]
    wanted = [list(asked.values) for asked in QUESTIONS]
    check(answers == wanted, f"\n    {len(answers)} questions, one query each")


def _more() -> list[dict[str, Any]]:
    readers = [
        {"type": "Reader", "data": {"card": card, "name": name, "joined": f"{day}T10:00:00Z"}}
        for card, (name, day) in READERS.items()
    ]
    knows = [{"edge": "Knows", "from": one, "to": other} for one, other in KNOWS]
    loans = [
        {"edge": "Borrowed", "from": card, "to": isbn, "data": {"on": on, "returned": returned}}
        for card, isbn, on, returned in LOANS
    ]
    return [*readers, *knows, *loans]


def _rows(uri: str, text: str) -> list[dict[str, Any]]:
    found = subprocess.run(
        [OMNIGRAPH, "query", "--store", uri, "-e", text, "--format", "json"],
        cwd=HERE,
        check=True,
        capture_output=True,
        text=True,
    )
    rows: list[dict[str, Any]] = json.loads(found.stdout)["rows"]
    return rows
