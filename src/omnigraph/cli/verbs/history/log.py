"""`omnigraph log`: the commits of a branch or of all branches, as a list or drawn as a graph.

Owns the text of a commit and which branches are read; the drawing is commit_graph.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.options.completed import types
from omnigraph.cli.options.scope import CommandScope, target_of
from omnigraph.cli.options.shared import BranchOption
from omnigraph.cli.options.words import uri_argument
from omnigraph.cli.render.commit_graph import Line, draw, in_order, nodes_of, parent_ids
from omnigraph.cli.render.output import write_json, write_note, write_text
from omnigraph.cli.render.tables import time_text
from omnigraph.errors import BranchNotFound
from omnigraph.read.output.cells import printable

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.manifest.entries import Commit

COLOURS = ("red", "green", "yellow", "blue", "magenta", "cyan")
PLAIN, MERGE = "*", "M"


@dataclass(frozen=True, slots=True)
class History:
    """What a log shows, newest first, and the branches by their newest commit."""

    commits: list[Commit]
    heads: dict[str, list[str]]

    def heads_of(self, commit: Commit) -> list[str]:
        """The branches whose newest commit this is."""
        return self.heads.get(commit.id, [])


def _time(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    """A date or a time, in UTC unless it says otherwise."""
    if value is None:
        return None
    try:
        found = datetime.fromisoformat(value.strip())
    except ValueError:
        raise click.BadParameter(
            f"{value!r} is not a time: write 2026-11-01 or 2026-11-01T12:30:00Z", ctx, param
        ) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


@click.command("log", cls=VerbCommand)
@uri_argument
@click.option(
    "--branch",
    metavar="B",
    cls=BranchOption,
    help="The branch; main if not given, and nothing else is configured.",
)
@click.option("--all", "every", is_flag=True, help="Every branch.")
@click.option("--graph", "as_drawing", is_flag=True, help="Draw how the commits descend.")
@click.option("-n", "--limit", metavar="N", type=click.IntRange(min=1), help="Only the first N.")
@click.option(
    "--type",
    "type_name",
    metavar="T",
    shell_complete=types,
    help="Only commits that changed this type.",
)
@click.option("--id", "id_", metavar="ID", help="With --type: only those that changed this entity.")
@click.option("--actor", "by_actor", metavar="NAME", help="Only the commits of one actor.")
@click.option("--since", metavar="TIME", callback=_time, help="Only commits from this time on.")
@click.option("--grep", metavar="TEXT", help="Only commits whose message has this text.")
@json_option
@click.pass_obj
def command(
    scope: CommandScope,
    *,
    uri: str | None,
    branch: str | None,
    every: bool,
    as_drawing: bool,
    limit: int | None,
    type_name: str | None,
    id_: str | None,
    by_actor: str | None,
    since: datetime | None,
    grep: str | None,
    as_json: bool,
) -> None:
    """Show the history of a branch, or of all: who did what, and what was merged.

    The newest commit is first, and a commit stands before its parents.
    """
    if every and branch is not None:
        raise click.UsageError("--all is every branch: leave --branch out")
    if id_ is not None and (type_name is None or every):
        raise click.UsageError("--id needs --type, and looks at one branch")
    wanted: dict[str, Any] = {"actor": by_actor, "since": since, "grep": grep, "types": type_name}
    with target_of(scope, uri).read() as graph:
        history = history_of(graph, None if every else branch or "main", wanted)
        if id_ is not None and type_name is not None:
            line = graph.history(type_name, id_, branch=branch or "main")
            changing = {change.commit.id for change in line.changes}
            history.commits[:] = [commit for commit in history.commits if commit.id in changing]
    shown = history.commits[:limit]
    if as_json:
        from omnigraph.wire.graphs import CommitsBody

        write_json(CommitsBody.of(shown, history.heads))
    elif not shown:
        write_note("no commits")
    elif as_drawing:
        write_text("\n".join(_drawn(shown, history)))
    else:
        write_text("\n".join(listed(commit, history) for commit in shown))


# -- what is shown -----------------------------------------------------------------------


def history_of(graph: Graph, branch: str | None, wanted: Mapping[str, Any]) -> History:
    """The commits that a branch descends from, or all branches when none is named."""
    names = graph.branches.list()
    known: dict[str, Commit] = {}
    for name in names if branch is None else [branch]:
        try:
            found = graph.commits.list(name, merged=True, **wanted)
            known |= {commit.id: commit for commit in found}
        except BranchNotFound:
            if branch is not None:
                raise
            continue  # deleted since it was listed
    return History(in_order(known.values()), _heads(graph, names))


def _heads(graph: Graph, names: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        try:
            found.setdefault(graph.snapshot(name).commit_id, []).append(name)
        except BranchNotFound:
            continue  # deleted since it was listed
    return found


# -- as text -----------------------------------------------------------------------------


def listed(commit: Commit, history: History) -> str:
    """A commit as a line."""
    text = _text(commit, history)
    if commit.merged_parent_id is None:
        return f"{PLAIN} {text}"
    return f"{MERGE} {text}, parents {' '.join(parent_ids(commit))}"


def _drawn(commits: Sequence[Commit], history: History) -> list[str]:
    texts = {commit.id: _text(commit, history) for commit in commits}
    lines = draw(nodes_of(commits))
    return [_coloured(line) + (f" {texts[line.node]}" if line.node else "") for line in lines]


def _coloured(line: Line) -> str:
    """The line with a colour for each column; printing leaves it out where none belongs."""
    cells = line.cells[: len(line.text)]
    return "".join(
        cell.character
        if cell.column is None
        else click.style(cell.character, fg=COLOURS[cell.column % len(COLOURS)])
        for cell in cells
    )


def _text(commit: Commit, history: History) -> str:
    parts = [commit.id, time_text(commit.created_at)]
    if commit.actor is not None:
        parts.append(printable(commit.actor))
    if heads := history.heads_of(commit):
        parts.append(click.style(f"({', '.join(heads)})", bold=True))
    parts.append(_operation(commit))
    if commit.message is not None:
        parts.append(f"“{printable(commit.message.splitlines()[0])}”")
    return " ".join(part for part in parts if part)


def _operation(commit: Commit) -> str:
    """What made the commit, as far as it was noted."""
    noted = commit.metadata
    if commit.merged_parent_id is not None:
        return printable(f"merge of {noted['source']}" if "source" in noted else "merge")
    if commit.parent_id is None:
        return "init"
    words = [str(noted[name]) for name in ("operation", "mode") if name in noted]
    return printable(" ".join(words))
