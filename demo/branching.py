"""The chapters about branches: a batch that is reviewed, merged, fought over and looked back on.

Owns what they change; works on the library that the chapters before have made.
"""

from __future__ import annotations

import omnigraph as og
from demo.telling import HERE, check, run, say

COPIES = "query copies() { match { $b: Book } return { $b.title, $b.copies } order { $b.title } }"


def show_branches(uri: str) -> None:
    """Branch, load, diff, merge; then a conflict, its resolution, and the time before."""
    say(
        "A batch is loaded onto a branch and looked at before anybody sees it",
        "delivery.jsonl brings a new book, more copies of another, and a loan.",
    )
    run("branch", "create", "delivery", "--uri", uri)
    batch = ("--data", str(HERE / "delivery.jsonl"), "--mode", "merge")
    run("load", uri, *batch, "--branch", "delivery", "--engine", "inline", "--quiet")
    run("diff", "main", "delivery", "--uri", uri)
    say(
        "Merging is one commit over every type",
        "Somebody changes main meanwhile: another property of the same book, so both stay.",
    )
    _mutate(uri, 'query shelve() { update Book set { shelf: "travel" } where isbn = "111-1" }')
    run("branch", "merge", "delivery", "--uri", uri, "--quiet")
    before = og.open(uri, read_only=True).commits.list()[1].id
    run("query", "--store", uri, "-e", COPIES)
    say(
        "Where two branches disagree, every conflict is told at once",
        "Both count the copies of one book, differently; and one removes a reader to whom the\n"
        "other has just lent a book. Nothing is merged.",
    )
    run("branch", "create", "stocktaking", "--uri", uri, "--quiet")
    _mutate(uri, _count("111-2", 4), "--branch", "stocktaking")
    _mutate(uri, 'query leave() { delete Reader where card = "R3" }', "--branch", "stocktaking")
    _mutate(uri, _count("111-2", 6))
    lend = 'query lend() { insert Borrowed { from: "R3", to: "111-4", on: date("2025-03-02") } }'
    _mutate(uri, lend)
    run("branch", "merge", "stocktaking", "--uri", uri, "--quiet", expect=1)
    say(
        "A conflict is resolved in the call, by kind or by entity",
        "The count of the stocktaking wins; the reader stays. --dry-run shows it first.",
    )
    sides = ("--resolve", "Book:111-2=source", "--resolve", "orphan_edge=target")
    run("branch", "merge", "stocktaking", "--uri", uri, *sides, "--dry-run")
    run("branch", "merge", "stocktaking", "--uri", uri, *sides, "--delete-branch", "--quiet")
    run("log", uri, "--graph", "--all", "--limit", "8")
    say(
        "Every commit can be asked, also the one before the merge",
        "The same query as above, at the commit before the delivery was merged, and now.",
    )
    graph = og.open(uri, read_only=True)
    then, now = graph.query(COPIES, snapshot=before), graph.query(COPIES)
    check(len(now) == len(then) + 1, f"{then}\n{now}")


def _count(isbn: str, copies: int) -> str:
    return f'query count() {{ update Book set {{ copies: {copies} }} where isbn = "{isbn}" }}'  # noqa: S608 - numbers of our own


def _mutate(uri: str, source: str, *more: str) -> None:
    run("mutate", "--store", uri, "-e", source, *more)
