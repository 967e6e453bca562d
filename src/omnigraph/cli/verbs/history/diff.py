"""`omnigraph diff`: what is different between two branches or commits.

Owns the options and the rendering; what is compared is the engine's.
"""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.completed import refs
from omnigraph.cli.options.scope import CommandScope, target_of
from omnigraph.cli.options.shared import change_filters
from omnigraph.cli.options.words import uri_argument, word
from omnigraph.cli.render.changes import NO_OTHER_DIFFERENCES, ChangeText, patch_lines
from omnigraph.cli.render.output import write_json, write_text
from omnigraph.cli.render.tables import render_table

if TYPE_CHECKING:
    from omnigraph.history.diff import Diff


@click.command("diff", cls=VerbCommand)
@uri_argument
@word("before", metavar="A", shell_complete=refs)
@word("after", metavar="[B]", shell_complete=refs, required=False)
@click.option(
    "-p",
    "--patch",
    metavar="TYPE:ID",
    help="Only this entity, with what it was and what it is, line by line.",
)
@click.option("--stat", is_flag=True, help="Only count, for every type.")
@change_filters
@json_option
@click.pass_obj
def command(
    scope: CommandScope,
    /,
    *,
    before: str,
    after: str | None,
    uri: str | None,
    patch: str | None,
    stat: bool,
    as_json: bool,
    **filters: Any,
) -> None:
    """Show what is different between two branches or commits.

    A and B are branches, tags or commits: what is in B and not in A was added. A..B says the same.
    """
    before, after = _both(before, after)
    type_name, id_ = _entity(patch)
    if type_name is not None:
        if stat or as_json:
            raise click.UsageError("-p is one entity, for people: leave --stat and --json out")
        filters["types"] = (type_name,)
    with target_of(scope, uri).read() as graph:
        found = graph.diff(before, after, **filters)
        if type_name is not None:
            shown = [line for change in found if change.id == id_ for line in patch_lines(change)]
            write_text("\n".join(shown) or "no differences")
        elif as_json:
            _write_json(found, stat=stat)
        else:
            write_diff(found, stat=stat)


def _both(before: str, after: str | None) -> tuple[str, str]:
    """What is compared with what; no name has two dots in it."""
    first, dots, second = before.partition("..")
    if after is None and dots and first and second:
        return first, second
    if after is None:
        raise click.UsageError("what is compared? give two of them: A B, or A..B")
    return before, after


def _entity(patch: str | None) -> tuple[str | None, str]:
    """The type and the id of an entity; `edge:Name:ID` is told from a node type of that name."""
    if patch is None:
        return None, ""
    kind, colon, rest = patch.partition(":")
    name, other, id_ = rest.partition(":") if kind in ("node", "edge") else (kind, colon, rest)
    if not (name and other and id_):
        raise click.UsageError(f"-p takes one entity, TYPE:ID, not {patch!r}")
    return name, id_


def _write_json(found: Diff, *, stat: bool) -> None:
    from omnigraph.cli.render.json_stream import write_json_stream
    from omnigraph.wire.changes import DiffBody, streamed_diff

    if stat:
        write_json(DiffBody.of(found, only_stats=True))
    else:
        write_json_stream(streamed_diff(found))


def write_diff(found: Diff, *, stat: bool) -> None:
    """Print a diff for people."""
    from omnigraph.cli.render.plans import plan_text

    has_schema = bool(found.schema.steps)
    if has_schema:
        write_text(click.style("schema", bold=True))
        write_text(indent(plan_text(found.schema), "  "))
    if stat and found.stats:
        _write_stats(found)
        return
    text = ChangeText()
    if not stat:
        text.write(found)
    if has_schema and not text.counts:
        write_text(NO_OTHER_DIFFERENCES)
    else:
        write_text(text.summary)


def _write_stats(found: Diff) -> None:
    rows = [
        (f"{of.kind}:{of.type_name}", of.inserted, of.updated, of.deleted) for of in found.stats
    ]
    write_text(render_table(("type", "added", "changed", "removed"), rows))
