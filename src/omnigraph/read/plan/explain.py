"""Explanations: how a query would be run, or how it was.

Owns their text and their JSON. Without `analyze` nothing of the data is read: what is
said follows from the plan, from the counts of the snapshot and from what is cached.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any

from omnigraph.lang.query.unnamed import compile_given
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.read.execute.trace import Operator, Trace
from omnigraph.read.output.result import Result
from omnigraph.read.plan.planner import plan_read
from omnigraph.read.plan.text import foreseen
from omnigraph.read.queries import Query
from omnigraph.storage.objects.meter import measure

# Hops that are listed one by one; a long walk has thousands.
HOPS_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Total:
    """What a whole run took."""

    rows: int
    seconds: float
    requests: int | None


@dataclass(frozen=True)
class Explanation:
    """The operators of a query in the order they run; nested ones have a depth."""

    query_name: str
    commit_id: str
    branch: str | None
    snapshot: str | None
    operators: tuple[Operator, ...]
    total: Total | None = None
    """What the run took; None when it was only planned."""
    result: Result | None = None
    """What the query returned, if it was run."""

    @property
    def is_analyzed(self) -> bool:
        """Whether the query was run."""
        return self.total is not None

    @property
    def text(self) -> str:
        """The explanation for people."""
        return "\n".join(self._lines())

    def to_json(self) -> dict[str, Any]:
        """The explanation for programs.

        >>> plan = graph.explain("match { $p: Person } return { $p.name }")
        >>> [step["operator"] for step in plan.to_json()["operators"]]
        ['scan', 'project']
        """
        body: dict[str, Any] = {
            "query_name": self.query_name,
            "target": {"branch": self.branch, "snapshot": self.snapshot},
            "graph_commit_id": self.commit_id,
            "analyzed": self.is_analyzed,
            "operators": [_operator_body(operator) for operator in self.operators],
        }
        if self.total is not None:
            body["total"] = {
                "rows": self.total.rows,
                "seconds": self.total.seconds,
                "requests": self.total.requests,
            }
        return body

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text)}</pre>"

    def _lines(self) -> Iterator[str]:
        target = f"branch {self.branch}" if self.snapshot is None else f"snapshot {self.snapshot}"
        heading = f"{self.query_name} on {target}, commit {self.commit_id}"
        if self.total is None:
            yield f"plan of {heading}"
        else:
            yield f"{heading}: {_run_text(self.total)}"
        for operator in self.operators:
            indent = "  " * operator.depth
            yield f"{indent}{operator.name} {operator.detail}".rstrip()
            for fact in _facts(operator):
                yield f"{indent}    {fact}"


def explain(
    query: Query,
    snapshot: Snapshot,
    catalog: Catalog,
    *,
    at_commit: bool = False,
    analyze: bool = False,
) -> Explanation:
    """Explain a query; ``analyze`` runs it and tells what happened."""
    if analyze:
        return _analyzed(query, snapshot, catalog, at_commit=at_commit)
    compiled = compile_given(query.source, catalog, query.name, query.params, path=query.path)
    read, ctx = compiled.require_read(), query.context(snapshot, catalog, compiled)
    operators = foreseen(plan_read(read, ctx), ctx)
    branch = None if at_commit else snapshot.branch
    commit = snapshot.commit_id if at_commit else None
    return Explanation(compiled.name, snapshot.commit_id, branch, commit, tuple(operators))


def _analyzed(
    query: Query, snapshot: Snapshot, catalog: Catalog, *, at_commit: bool
) -> Explanation:
    trace = Trace(is_on=True)
    start = time.perf_counter()
    with measure() as meter:
        result = query.run(snapshot, catalog, at_commit=at_commit, trace=trace)
    requests = meter.total if trace.counts_reads else None
    total = Total(len(result), time.perf_counter() - start, requests)
    return Explanation(
        result.query_name,
        result.commit_id,
        result.branch,
        result.snapshot,
        tuple(trace.operators),
        total,
        result,
    )


def _operator_body(operator: Operator) -> dict[str, Any]:
    body: dict[str, Any] = {
        "operator": operator.name,
        "detail": operator.detail,
        "depth": operator.depth,
    }
    if operator.seconds is not None:
        body |= {
            "rows": operator.rows,
            "seconds": operator.seconds,
            "requests": operator.requests,
        }
    return body | operator.notes


# -- facts as text -----------------------------------------------------------------


def _facts(operator: Operator) -> Iterator[str]:
    notes = operator.notes
    if operator.seconds is not None:
        yield _run_text(operator)
    ways = [notes[name] for name in ("access", "expansion") if name in notes]
    if "topology" in notes:
        ways.append(f"topology {notes['topology']}")
    if "entities" in notes:
        ways.append(_many(notes["entities"], "node"))
    if "edges" in notes:
        ways.append(_many(notes["edges"], "edge"))
    if "estimated_rows" in notes:
        ways.append(f"about {_many(notes['estimated_rows'], 'row')}")
    if ways:
        yield ", ".join(ways)
    if "join" in notes:
        yield f"joined {notes['join']}"
    if "cross_product" in notes:
        yield f"cross product: about {_many(notes['cross_product'], 'pair')}"
    if "expansion_rule" in notes:
        yield f"open until then: {notes['expansion_rule']}"
    if "ranked_by" in notes:
        tried = f", {_many(notes['tried'], 'node')} tried" if "tried" in notes else ""
        yield f"ranked by {' and '.join(notes['ranked_by'])}{tried}"
    for name, label in (("pushed", "pushed down"), ("in_memory", "in memory")):
        if notes.get(name):
            yield f"{label}: {' and '.join(notes[name])}"
    for test in notes.get("pairs", [])[:HOPS_SHOWN]:
        yield f"{_many(test['pairs'], 'pair')} tested: {test['expansion']}"
    yield from _hops(notes.get("hops", []))
    hits, misses = notes.get("cache_hits", 0), notes.get("cache_misses", 0)
    if hits or misses:
        yield f"column cache: {hits} found, {misses} read"


def _hops(hops: list[dict[str, Any]]) -> Iterator[str]:
    for hop in hops[:HOPS_SHOWN]:
        yield f"hop from {_many(hop['sources'], 'node')}: {hop['expansion']}"
    if len(hops) > HOPS_SHOWN:
        yield f"and {_many(len(hops) - HOPS_SHOWN, 'hop')} more"


def _run_text(done: Operator | Total) -> str:
    spent = f"{(done.seconds or 0) * 1000:.2f} ms"
    if done.requests is not None:
        spent += f", {_many(done.requests, 'request')}"
    return spent if done.rows is None else f"{_many(done.rows, 'row')}, {spent}"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" + ("" if count == 1 else "s")
