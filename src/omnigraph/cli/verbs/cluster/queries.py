"""`omnigraph queries`: the stored queries of a graph, of the project or as a cluster applied them.

Owns the rendering. What is in the working tree of a cluster is for `cluster validate`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from omnigraph.cli.command import VerbCommand, VerbGroup, json_option
from omnigraph.cli.options.scope import CommandScope
from omnigraph.cli.options.shared import branch_option
from omnigraph.cli.render.output import write_json, write_text

if TYPE_CHECKING:
    from omnigraph.cli.options.stored import StoredOfGraph


@click.group("queries", cls=VerbGroup)
def command() -> None:
    """Look at the stored queries of a graph, and check them."""


@command.command("list", cls=VerbCommand)
@json_option
@click.pass_obj
def list_queries(scope: CommandScope, *, as_json: bool) -> None:
    """List the stored queries of a graph, and what they take."""
    from omnigraph.wire.queries import RegisteredQueriesBody, RegisteredQueryBody

    found = [RegisteredQueryBody.of_query(one) for one in _stored(scope).queries.values()]
    if as_json:
        write_json(RegisteredQueriesBody(found))
        return
    for one in found:
        params = ", ".join(f"{param.name}: {param.kind}" for param in one.params)
        kind = "mutation" if one.mutation else "read"
        description = f"  {one.description}" if one.description else ""
        write_text(f"{one.name}({params})  {kind}{description}")


@command.command("validate", cls=VerbCommand)
@json_option
@click.pass_obj
def validate(scope: CommandScope, *, as_json: bool) -> int:
    """Check the stored queries of a graph against the schema that it has now.

    Exits with 1 if one would not run.
    """
    from omnigraph.wire.queries import QueriesCheckedBody, QueryBreakageBody

    stored = _stored(scope)
    found = stored.problems()
    breakages, warnings = (
        [QueryBreakageBody(one.query, one.message) for one in found if one.is_breakage is wanted]
        for wanted in (True, False)
    )
    if as_json:
        write_json(QueriesCheckedBody(not breakages, breakages, warnings))
    else:
        lines = [f"ERROR query `{one.query}`: {one.message}" for one in breakages]
        lines += [f"WARN  query `{one.query}`: {one.message}" for one in warnings]
        write_text("\n".join([*lines, f"{len(stored.queries)} queries, {len(breakages)} broken"]))
    return 1 if breakages else 0


@command.command("explain", cls=VerbCommand)
@click.argument("name")
@branch_option
@json_option
@click.pass_obj
def explain(scope: CommandScope, *, name: str, branch: str, as_json: bool) -> None:
    """Show how a stored query would be run; no data is read."""
    from omnigraph import graph

    stored = _stored(scope)
    query = stored.find(name)
    with graph.open(stored.location, read_only=True) as opened:
        shown = opened.explain(query.source, query.name, branch=branch)
    if as_json:
        from omnigraph.wire.results import ExplanationBody

        write_json(ExplanationBody.of(shown))
    else:
        write_text(shown.text)


def _stored(scope: CommandScope) -> StoredOfGraph:
    from omnigraph.cli.options.stored import stored_of

    return stored_of(scope)
