"""`omnigraph log`: the commits of a branch or of all branches, as a list or drawn as a graph.

Owns the text of a commit and which branches are read; the drawing is commit_graph.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.bodies import commit_body
from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.commit_graph import Line, draw
from omnigraph.cli.lineage import in_order, nodes_of, parent_ids, reachable
from omnigraph.cli.output import write_json, write_text
from omnigraph.cli.scope import Scope
from omnigraph.cli.tables import printable
from omnigraph.cli.target import target_of, uri_argument
from omnigraph.errors import BranchNotFound

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.manifest.entries import Commit

COLOURS = ("red", "green", "yellow", "blue", "magenta", "cyan")
PLAIN, MERGE = "*", "M"


@dataclass(frozen=True, slots=True)
class History:
    """What a log shows, newest first; ``unknown`` are parents that do not exist any more."""

    commits: list[Commit]
    heads: dict[str, list[str]]
    unknown: set[str]

    def heads_of(self, commit: Commit) -> list[str]:
        """The branches whose newest commit this is."""
        return self.heads.get(commit.id, [])


@click.command("log", cls=VerbCommand)
@uri_argument
@click.option("--branch", metavar="B", help="The branch; main if not given.")
@click.option("--all", "every", is_flag=True, help="Every branch.")
@click.option("--graph", "as_drawing", is_flag=True, help="Draw how the commits descend.")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="Only the first N.")
@json_option
@click.pass_obj
def command(
    scope: Scope,
    *,
    uri: str | None,
    branch: str | None,
    every: bool,
    as_drawing: bool,
    limit: int | None,
    as_json: bool,
) -> None:
    """Show the history of a branch, or of all: who did what, and what was merged.

    The newest commit is first, and a commit stands before its parents.
    """
    if every and branch is not None:
        raise click.UsageError("--all is every branch: leave --branch out")
    with target_of(scope, uri).read() as graph:
        history = _history(graph, None if every else branch or "main")
    shown = history.commits[:limit]
    if as_json:
        write_json({"commits": [_body(commit, history) for commit in shown]})
    elif as_drawing:
        write_text("\n".join(_drawn(shown, history)))
    else:
        write_text("\n".join(_listed(commit, history) for commit in shown))


# -- what is shown -----------------------------------------------------------------------


def _history(graph: Graph, branch: str | None) -> History:
    """The commits that a branch descends from, or all branches when none is named."""
    names = graph.branches.list()
    chosen = names if branch is None else [graph.snapshot(branch).branch]
    known: dict[str, Commit] = {}
    tips: list[str] = []
    for name in chosen:
        commits = _commits(graph, name, is_needed=branch is not None)
        known |= {commit.id: commit for commit in commits}
        tips += [commit.id for commit in commits[:1]]
    found, unknown = reachable(tips, known)
    # What was merged lies on the branch it came from; only then are others read.
    for name in _likely_first(found, [name for name in names if name not in chosen]):
        if not unknown:
            break
        known |= {commit.id: commit for commit in _commits(graph, name)}
        found, unknown = reachable(tips, known)
    return History(in_order(found), _heads(graph, names), unknown)


def _commits(graph: Graph, name: str, *, is_needed: bool = False) -> list[Commit]:
    """The commits of a branch; none if it was deleted since it was listed."""
    try:
        return graph.commits.list(name)
    except BranchNotFound:
        if is_needed:
            raise
        return []


def _likely_first(commits: list[Commit], names: list[str]) -> list[str]:
    from omnigraph.manifest.ancestry import SOURCE_BRANCH

    merged = {commit.metadata.get(SOURCE_BRANCH) for commit in commits}
    return sorted(names, key=lambda name: name not in merged)


def _heads(graph: Graph, names: list[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name in names:
        try:
            found.setdefault(graph.snapshot(name).commit_id, []).append(name)
        except BranchNotFound:
            continue  # deleted since it was listed
    return found


# -- as text -----------------------------------------------------------------------------


def _body(commit: Commit, history: History) -> dict[str, Any]:
    return {**commit_body(commit), "heads": history.heads_of(commit)}


def _listed(commit: Commit, history: History) -> str:
    text = _text(commit, history)
    if commit.merged_parent_id is None:
        return f"{PLAIN} {text}"
    return f"{MERGE} {text}, parents {' '.join(parent_ids(commit))}"


def _drawn(commits: Sequence[Commit], history: History) -> list[str]:
    texts = {commit.id: _text(commit, history) for commit in commits}
    texts |= {id_: f"{short_id(id_)} is gone with its branch" for id_ in history.unknown}
    lines = draw(list(nodes_of(commits, history.unknown)))
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
    parts = [commit.id, _time(commit.created_at)]
    if commit.actor is not None:
        parts.append(printable(commit.actor))
    if heads := history.heads_of(commit):
        parts.append(click.style(f"({', '.join(heads)})", bold=True))
    parts.append(_operation(commit))
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


def short_id(id_: str) -> str:
    """An id to recognise: when it was made, and its end, which tells apart those of one moment."""
    return id_ if len(id_) <= 16 else f"{id_[:10]}..{id_[-4:]}"


def _time(microseconds: int) -> str:
    moment = datetime.fromtimestamp(microseconds // 1_000_000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
