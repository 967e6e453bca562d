"""`omnigraph diff`: what is different between two branches or commits.

Owns the options and the rendering; what is compared is the engine's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.change_filters import change_filters
from omnigraph.cli.options.scope import CommandScope
from omnigraph.cli.options.target import target_of, uri_option
from omnigraph.cli.render.output import write_json, write_text
from omnigraph.cli.render.tables import render_table

if TYPE_CHECKING:
    from omnigraph.history.changes import Op
    from omnigraph.history.diff import Diff


@click.command("diff", cls=VerbCommand)
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@uri_option
@click.option("--stat", is_flag=True, help="Only count, for every type.")
@change_filters
@json_option
@click.pass_obj
def command(
    scope: CommandScope,
    /,
    *,
    before: str,
    after: str,
    uri: str | None,
    stat: bool,
    as_json: bool,
    **filters: Any,
) -> None:
    """Show what is different between two branches or commits.

    A and B are names of branches or ids of commits: what is in B and not in A was added.
    """
    with target_of(scope, uri).read() as graph:
        found = graph.diff(before, after, **filters)
        if stat:
            _write_stats(found, as_json=as_json)
        elif as_json:
            _write_json(found)
        else:
            from omnigraph.cli.render.changes import ChangeText

            text = ChangeText()
            text.write(found)
            write_text(text.summary)


def _write_stats(found: Diff, *, as_json: bool) -> None:
    if as_json:
        write_json({**_versions(found), "stats": [counted.body() for counted in found.stats]})
    elif not found.stats:
        write_text("no differences")
    else:
        rows = [
            (f"{of.kind}:{of.type_name}", of.inserted, of.updated, of.deleted) for of in found.stats
        ]
        write_text(render_table(("type", "added", "changed", "removed"), rows))


def _write_json(found: Diff) -> None:
    """Everything, written as it is found; the counts come last, for they are made on the way."""
    from omnigraph.cli.render.json_stream import LazyObject, write_json_stream

    counts: dict[tuple[str, str], Counter[Op]] = {}

    def changes() -> Iterator[dict[str, Any]]:
        for change in found:
            counts.setdefault((change.kind, change.type.name), Counter())[change.op] += 1
            yield found.change_body(change)

    def stats() -> Iterator[dict[str, Any]]:
        for (kind, name), counted in counts.items():
            numbers = {
                "inserted": counted["insert"],
                "updated": counted["update"],
                "deleted": counted["delete"],
            }
            yield {"kind": kind, "type_name": name, **numbers}

    members = [*_versions(found).items(), ("changes", changes()), ("stats", stats())]
    write_json_stream(LazyObject(members))


def _versions(found: Diff) -> dict[str, Any]:
    return {
        "from_graph_manifest_version": found.from_version,
        "to_graph_manifest_version": found.to_version,
    }
