"""`omnigraph queries`: the stored queries of a graph of a cluster, as they were applied.

Owns the rendering. What is in the working tree is for `cluster validate`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from omnigraph.cli.command import VerbCommand, VerbGroup, json_option
from omnigraph.cli.options.scope import CommandScope
from omnigraph.cli.render.output import write_json, write_text

if TYPE_CHECKING:
    from omnigraph.cluster.revision import AppliedGraph


@click.group("queries", cls=VerbGroup)
def command() -> None:
    """Look at the stored queries of a graph of a cluster, and check them."""


@command.command("list", cls=VerbCommand)
@json_option
@click.pass_obj
def list_queries(scope: CommandScope, *, as_json: bool) -> None:
    """List the stored queries of a graph, and what they take."""
    from omnigraph.cluster.stored_queries import registered_queries
    from omnigraph.wire.queries import RegisteredQueriesBody, RegisteredQueryBody

    found = [RegisteredQueryBody.of_query(one) for one in registered_queries(_graph(scope))]
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
    from omnigraph.cluster.stored_queries import check_queries
    from omnigraph.wire.queries import QueriesCheckedBody, QueryBreakageBody

    applied = _graph(scope)
    found = check_queries(applied)
    breakages, warnings = (
        [QueryBreakageBody(one.query, one.message) for one in found if one.is_breakage is wanted]
        for wanted in (True, False)
    )
    if as_json:
        write_json(QueriesCheckedBody(not breakages, breakages, warnings))
    else:
        lines = [f"ERROR query `{one.query}`: {one.message}" for one in breakages]
        lines += [f"WARN  query `{one.query}`: {one.message}" for one in warnings]
        write_text("\n".join([*lines, f"{len(applied.queries)} queries, {len(breakages)} broken"]))
    return 1 if breakages else 0


def _graph(scope: CommandScope) -> AppliedGraph:
    from omnigraph.cli.options.cluster import applied_cluster
    from omnigraph.cluster.revision import require_graph

    return require_graph(applied_cluster(scope), scope.graph)
