"""Comparing the engine with the naive evaluator, and making a failure small enough to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pprint import pformat
from typing import Any

import omnigraph as og
from omnigraph.errors import OmniGraphError
from omnigraph.read.output.result import Result
from omnigraph.read.plan.physical import Expansion
from tests.read.generate_graphs import envelopes, schema_text
from tests.read.model import Data, Schema, freeze
from tests.read.naive import Expected, evaluate
from tests.read.query_ast import Bind, Block, Clause, Query, Walk, mentioned, query_text


@dataclass(frozen=True)
class Place:
    """Where a query runs, and what the graph holds there."""

    name: str
    graph: og.Graph
    schema: Schema
    data: Data
    branch: str = "main"
    snapshot: str | None = None

    def ask(self, query: Query, expansion: Expansion = "auto") -> Result:
        """What the engine says."""
        options: dict[str, Any] = {"branch": self.branch, "snapshot": self.snapshot}
        return self.graph.query(
            query_text(query), params=query.arguments, expansion=expansion, **options
        )


def check(place: Place, query: Query, *expansions: Expansion) -> int:
    """Compare, in each of these ways; says how many times."""
    expected = evaluate(place.schema, place.data, query)
    for expansion in expansions:
        problem = _problem(place, query, expected, expansion)
        if problem is not None:
            raise AssertionError(_report(place, query, expansion))
    return len(expansions)


def _problem(place: Place, query: Query, expected: Expected, expansion: Expansion) -> str | None:
    try:
        result = place.ask(query, expansion)
    except OmniGraphError as error:
        return f"{type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 - whatever it is, the report shows it
        return f"{type(error).__name__}: {error}"
    return difference(query, expected, result)


def difference(query: Query, expected: Expected, result: Result) -> str | None:
    """What is wrong with a result, or None."""
    if result.columns != expected.columns:
        return f"columns {result.columns}, not {expected.columns}"
    start = query.argument(query.offset) or 0
    limit = query.argument(query.limit)
    stop = None if limit is None else start + limit
    wanted = expected.rows[start:stop]
    if expected.is_total:
        return None if list(map(freeze, result.rows)) == list(map(freeze, wanted)) else "rows"
    if len(result.rows) != len(wanted):
        return f"{len(result.rows)} rows, not {len(wanted)}"
    for key in expected.keys:
        shown = [freeze(row[key]) for row in result.rows]
        if shown != [freeze(row[key]) for row in wanted]:
            return f"the order by {key}"
    surplus = Counter(map(freeze, result.rows)) - Counter(map(freeze, expected.rows))
    return "rows that should not be there" if surplus else None


# -- reports ---------------------------------------------------------------------------------


def _report(place: Place, query: Query, expansion: Expansion) -> str:
    query = _smaller(place, query, expansion)
    expected = evaluate(place.schema, place.data, query)
    problem = _problem(place, query, expected, expansion)
    try:
        shown: Any = place.ask(query, expansion).rows
    except Exception as error:  # noqa: BLE001 - as above
        shown = error
    parts = {
        "schema": schema_text(place.schema),
        "data": "\n".join(map(repr, envelopes(place.schema, place.data))),
        "query": query_text(query),
        "params": pformat(query.arguments),
        "expected": pformat(expected.rows),
        "found": pformat(shown),
    }
    text = "".join(f"--- {name}\n{part}\n" for name, part in parts.items())
    return f"{problem} on {place.name}, expansion {expansion}\n{text}"


def _smaller(place: Place, query: Query, expansion: Expansion) -> Query:
    """The query without whatever it can do without and still fail the same way."""
    kind = _kind(place, query, expansion)
    while True:
        for candidate in _reductions(query):
            if _kind(place, candidate, expansion) == kind:
                query = candidate
                break
        else:
            return query


def _kind(place: Place, query: Query, expansion: Expansion) -> str | None:
    try:
        expected = evaluate(place.schema, place.data, query)
    except (KeyError, AssertionError):
        return None
    problem = _problem(place, query, expected, expansion)
    return None if problem is None else problem.split(":")[0].split(" rows")[-1]


def _reductions(query: Query) -> Iterator[Query]:
    if query.limit is not None:
        yield replace(query, limit=None, offset=None)
        yield replace(query, offset=None)
    if query.distinct:
        yield replace(query, distinct=False)
    for number in range(len(query.order)):
        yield replace(query, order=query.order[:number] + query.order[number + 1 :])
    if len(query.columns) > 1:
        for number in range(len(query.columns)):
            kept = query.columns[:number] + query.columns[number + 1 :]
            yield replace(query, columns=kept)
    for clauses in _fewer(query.clauses):
        yield replace(query, clauses=clauses)


def _fewer(clauses: tuple[Clause, ...]) -> Iterator[tuple[Clause, ...]]:
    for number, clause in enumerate(clauses):
        before, after = clauses[:number], clauses[number + 1 :]
        if (before or after) and _is_free(clause, before + after):
            yield before + after
        if isinstance(clause, Block):
            for inner in _fewer(clause.clauses):
                yield (*before, replace(clause, clauses=inner), *after)


def _is_free(clause: Clause, rest: tuple[Clause, ...]) -> bool:
    """Whether what is left says of its variables all that it said before."""
    if not isinstance(clause, Bind | Walk):
        return True
    named = set(mentioned((clause,))) & set(mentioned(rest))
    return named <= {other.var for other in rest if isinstance(other, Bind)}
