"""`omnigraph changes`: the change feed of a branch, and the baseline to start from.

Owns the options and the rendering. Keeps no cursor: whoever reads the feed does.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any

import click

from omnigraph.cli.command import VerbCommand, VerbGroup, json_option
from omnigraph.cli.options.scope import CommandScope, target_of
from omnigraph.cli.options.shared import branch_option, change_filters, limit_option
from omnigraph.cli.options.words import uri_argument
from omnigraph.cli.render.output import write_json, write_text
from omnigraph.errors import ChangeDiffRefused, ChangeFeedGap

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.history.changes import Cause, Change
    from omnigraph.history.feed import FeedPage

# How many commits are shown at least before a poll ends short of the head.
MAX_COMMITS = 128


@click.group("changes", cls=VerbGroup)
def command() -> None:
    """Follow what is committed to a branch."""


@command.command("poll", cls=VerbCommand)
@uri_argument
@branch_option
@click.option("--cursor", metavar="C", help="Go on behind this cursor.")
@click.option(
    "--start",
    metavar="now|beginning|after:ID",
    help="Without a cursor: where to start; now if not given.",
)
@limit_option
@change_filters
@json_option
@click.pass_obj
def poll(
    scope: CommandScope,
    /,
    *,
    uri: str | None,
    cursor: str | None,
    start: str | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Show what was committed since a cursor, and the cursor to go on with."""
    if cursor is not None and start is not None:
        raise click.UsageError("a cursor says where to start: leave --cursor or --start out")
    with target_of(scope, uri).read() as graph:
        first = graph.changes.poll(cursor=cursor, start=start, **options)
        pages = _Pages(graph, first, options)
        if as_json:
            from omnigraph.cli.render.json_stream import write_json_stream
            from omnigraph.wire.changes import streamed_feed

            write_json_stream(streamed_feed(pages.blocks(), lambda: pages.last))
        else:
            _write_text(pages)


@command.command("baseline", cls=VerbCommand)
@uri_argument
@click.option("--out", metavar="PATH", required=True, help="The file to write.")
@branch_option
@change_filters
@json_option
@click.pass_obj
def baseline(
    scope: CommandScope, /, *, uri: str | None, out: str, as_json: bool, **options: Any
) -> None:
    """Write everything a branch holds, and print the cursor to follow it from there."""
    with target_of(scope, uri).read() as graph:
        written = graph.changes.baseline(out, **options)
    if as_json:
        from omnigraph.wire.changes import BaselineBody

        write_json(BaselineBody.of(written))
    else:
        count = written.report.total
        write_text(f"wrote {count} entities of commit {written.snapshot_commit_id} to {out}")
        write_text(f"cursor: {written.resume_cursor}")


class _Pages:
    """The pages up to the head, or of so many commits: their blocks, whole, and the end.

    What cannot be delivered ends them, too; the next poll begins with it and says so.
    """

    def __init__(self, graph: Graph, first: FeedPage, options: dict[str, Any]) -> None:
        self._graph = graph
        self._options = options
        self.last = first

    def blocks(self) -> Iterator[tuple[Cause, Iterator[Change]]]:
        """Every commit with its changes, however many pages they came on."""
        parts = (block for page in self._all() for block in page.blocks)
        for cause, blocks in groupby(parts, key=lambda block: block.cause):
            yield cause, chain.from_iterable(block.changes for block in blocks)

    def _all(self) -> Iterator[FeedPage]:
        commits: set[str] = set()
        while True:
            yield self.last
            commits.update(block.cause.graph_commit_id for block in self.last.blocks)
            is_finished = self.last.caught_up or len(commits) >= MAX_COMMITS
            if self.last.next_page_token is None and is_finished:
                return
            try:
                self.last = self._graph.changes.poll(
                    cursor=self.last.cursor, page_token=self.last.next_page_token, **self._options
                )
            except (ChangeFeedGap, ChangeDiffRefused):
                if self.last.cursor is None:
                    raise
                return


def _write_text(pages: _Pages) -> None:
    from omnigraph.cli.render.changes import ChangeText, cause_line

    for cause, changes in pages.blocks():
        write_text(cause_line(cause))
        text = ChangeText()
        text.write(changes)
        write_text(text.summary)
    write_text(f"cursor: {pages.last.cursor}")
    write_text(f"caught up: {'yes' if pages.last.caught_up else 'no'}")
