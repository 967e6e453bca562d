"""Old spellings of verbs.

Owns the table and the rewriting of a command line that starts with one. A word
further right is never touched: there it may be a file or a query name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

SPELLINGS: Mapping[tuple[str, ...], str] = {
    ("change",): "mutate",
    ("read",): "query",
    ("check",): "lint",
    ("query", "lint"): "lint",
    ("query", "check"): "lint",
}


def rewrite(args: Sequence[str]) -> tuple[list[str], str | None]:
    """The command line in today's words, and a warning if that changed it."""
    for words, verb in SPELLINGS.items():
        if tuple(args[: len(words)]) == words:
            old = " ".join(words)
            warning = f"`omnigraph {old}` is deprecated: use `omnigraph {verb}`"
            return [verb, *args[len(words) :]], warning
    return list(args), None
