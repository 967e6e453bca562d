"""The chapters about schemas: changed on a branch, refused, merged, and read as they were.

Owns what they change; works on the library that the chapters before have made.
"""

from __future__ import annotations

import omnigraph as og
from demo.telling import HERE, check, run, say

GENRES = (
    "query genres() { match { $b: Book } "
    "return { $b.title, $b.genre, $b.year, $b.language } order { $b.title } }"
)
SHELVES = "query shelves() { match { $b: Book } return { $b.title, $b.shelf } order { $b.title } }"
MEND = 'query mend() { update Book set { year: 1999 } where isbn = "111-3" }'
JOIN = (
    "query join() { insert Room { number: 7 } insert Book "
    '{ isbn: "111-7", title: "Low Tide", shelf: "novel", year: 2020, condition: "worn" } }'
)


def show_schemas(uri: str) -> None:
    """Change the schema on a branch and on main, merge both, and look back."""
    before = og.open(uri, read_only=True).snapshot().commit_id
    say(
        "A schema changes as data does: by a commit, on a branch",
        "library-next.pg renames a property, adds one with a default, takes one more genre, and\n"
        "wants the year of every book. The plan says what each step costs; --check names the\n"
        "rows, and --queries the queries, that stand against it.",
    )
    run("branch", "create", "genres", "--uri", uri, "--quiet")
    change = ("--schema", "library-next.pg", "--branch", "genres")
    run("schema", "plan", uri, *change, "--check", "--queries", "library.gq")
    say(
        "What is refused is told at once, with line and caret, and changes nothing",
        "One book has no year, and find_books asks for a shelf. The exit code is 1.",
    )
    run("schema", "apply", uri, *change, "--queries", "library.gq", "--quiet", expect=1)
    check(
        og.open(uri, read_only=True).snapshot("genres").commit_id == before,
        "    the branch is where it was",
    )
    say(
        "The book gets its year, and the change goes through",
        "A rename touches no row; the new column alone is written. main does not notice.",
    )
    run("mutate", "--store", uri, "--branch", "genres", "-e", MEND)
    run("schema", "apply", uri, *change, "--quiet", "--as", "mira")
    run("query", "--store", uri, "--branch", "genres", "-e", GENRES)
    say(
        "Meanwhile somebody changes another part of the schema on main",
        "library-rooms.pg adds a type and a property, and a book arrives that has no genre.",
    )
    run("schema", "apply", uri, "--schema", "library-rooms.pg", "--quiet", "--as", "tom")
    run("mutate", "--store", uri, "-e", JOIN, "--as", "tom")
    say(
        "Both schemas are merged, and then the rows under the result",
        "Three ways, by what a thing is and not by its name. The book that arrived on main has a\n"
        "genre and a language now.",
    )
    run("branch", "merge", "genres", "--uri", uri, "--dry-run")
    run("branch", "merge", "genres", "--uri", uri, "--delete-branch", "--quiet", "--as", "mira")
    run("query", "--store", uri, "-e", GENRES)
    graph = og.open(uri, read_only=True)
    book = graph.catalog.nodes["Book"].properties
    check(
        {"genre", "language", "condition"} <= book.keys() and "Room" in graph.catalog.nodes,
        "    main has what both have changed",
    )
    run("schema", "log", uri)
    say(
        "A commit of the past is read under the schema it was made with",
        "Before all that there were shelves. The same commit, asked in its own words:",
    )
    run("query", "--store", uri, "--snapshot", before, "-e", SHELVES)
    run("schema", "diff", before, "main", "--uri", uri)
    check(
        graph.schema_at(before) == (HERE / "library.pg").read_text(encoding="utf-8"),
        "\n    its schema is library.pg, comments and all",
    )
