"""`omnigraph load`: entities from NDJSON, as one commit.

Owns where the data comes from and what is said about it; the format and the modes are
the engine's.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from omnigraph.cli.bodies import load_body
from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.output import write_json, write_text
from omnigraph.cli.scope import Scope
from omnigraph.cli.target import target_of, uri_argument

if TYPE_CHECKING:
    from omnigraph.write.results import LoadResult

_STDIN = "-"


@click.command("load", cls=VerbCommand)
@uri_argument
@click.option("--data", metavar="FILE", required=True, help="The NDJSON file; - reads stdin.")
@click.option(
    "--mode",
    type=click.Choice(["overwrite", "append", "merge"]),
    required=True,
    help="What becomes of entities that are there already.",
)
@click.option("--branch", metavar="B", default="main", help="The branch; main if not given.")
@click.option(
    "--from", "from_branch", metavar="BASE", help="Fork the branch from this one if it is missing."
)
@json_option
@click.pass_obj
def command(
    scope: Scope,
    *,
    uri: str | None,
    data: str,
    mode: str,
    branch: str,
    from_branch: str | None,
    as_json: bool,
) -> None:
    """Load entities from NDJSON, as one commit.

    --mode append refuses ids that exist, merge replaces those entities, and
    overwrite replaces everything of the types that the file has.
    """
    target = target_of(scope, uri)
    if mode == "overwrite":
        target.require_consent(f"overwriting types of branch {branch}", scope, as_json=as_json)
    content = sys.stdin.buffer.read() if data == _STDIN else Path(data)
    with target.write("load", scope) as graph:
        result = graph.load(content, mode=mode, branch=branch, from_branch=from_branch)
    if as_json:
        write_json({"uri": target.uri, **load_body(result)})
    else:
        write_text(_line(target.uri, result))


def _line(uri: str, result: LoadResult) -> str:
    types = f"{len(result.nodes)} node types and {len(result.edges)} edge types"
    return (
        f"loaded {uri} on branch {result.branch} with {result.mode}: "
        f"{result.total} entities across {types}"
    )
