"""`omnigraph blob`: the bytes of a Blob property, and what is known of them.

Owns the options and where the bytes go; which there are is the engine's to say.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from omnigraph.cli.command import VerbCommand, VerbGroup, json_option
from omnigraph.cli.options.query_source import state_options, view_of
from omnigraph.cli.options.scope import CommandScope, target_of
from omnigraph.cli.options.shared import together
from omnigraph.cli.options.words import uri_argument, word
from omnigraph.cli.render.output import write_json, write_piece, write_text
from omnigraph.errors import BadRequest, BlobRangeNotSatisfiable

if TYPE_CHECKING:
    from omnigraph.read.output.blobs import Blob

_LAST = 2**63 - 1

_selector = together(
    uri_argument,
    word("entity", metavar="node|edge", type=click.Choice(["node", "edge"])),
    word("type_", metavar="TYPE"),
    word("id_", metavar="ID"),
    word("property_", metavar="PROPERTY"),
)


@click.group("blob", cls=VerbGroup)
def command() -> None:
    """Read the bytes of a Blob property, or look at what they are."""


@command.command("get", cls=VerbCommand)
@_selector
@state_options
@click.option(
    "--offset", metavar="N", type=click.IntRange(0, _LAST), help="Where to begin; 0 if not given."
)
@click.option(
    "--length",
    metavar="N",
    type=click.IntRange(1, _LAST),
    help="How many bytes at the most; all that follow if not given.",
)
@click.option(
    "--out", metavar="PATH", type=click.Path(path_type=Path), help="Write a file, not stdout."
)
@click.pass_obj
def get(
    scope: CommandScope,
    *,
    uri: str | None,
    entity: Literal["node", "edge"],
    type_: str,
    id_: str,
    property_: str,
    branch: str | None,
    snapshot: str | None,
    offset: int | None,
    length: int | None,
    out: Path | None,
) -> None:
    """Write the bytes of a value, or a part of them, as they are.

    A file is not touched before the first byte is there. A reference to something outside the
    graph is not followed: the error says where it leads.
    """
    start = offset or 0
    if length is not None and start + length > _LAST:
        raise click.UsageError("--offset and --length go beyond what any value can have")
    branch, snapshot = view_of(branch, snapshot)
    with target_of(scope, uri).read() as graph:
        blob = graph.blob(entity, type_, id_, property_, branch=branch, snapshot=snapshot)
        pieces = _chosen(blob, offset, length)
        if out is None:
            for piece in pieces:
                write_piece(piece)
        else:
            _write_file(out, pieces)


def _chosen(blob: Blob, offset: int | None, length: int | None) -> Iterator[bytes]:
    """The wanted bytes, none of them read yet; what goes beyond the end ends there."""
    start, size = offset or 0, blob.size
    if blob.uri is None and size is not None and (offset is not None or length is not None):
        if start >= size:
            end = start if length is None else start + length
            raise BlobRangeNotSatisfiable(start=start, end=end, length=size)
        if length is not None:
            return blob.chunks(start, min(start + length, size))
    return blob.chunks(start)


def _write_file(path: Path, pieces: Iterator[bytes]) -> None:
    first = next(pieces, b"")
    try:
        with path.open("wb") as file:
            file.write(first)
            for piece in pieces:
                file.write(piece)
    except OSError as error:
        raise BadRequest(f"cannot write {path}: {error.strerror}") from error


@command.command("stat", cls=VerbCommand)
@_selector
@state_options
@json_option
@click.pass_obj
def stat(
    scope: CommandScope,
    *,
    uri: str | None,
    entity: Literal["node", "edge"],
    type_: str,
    id_: str,
    property_: str,
    branch: str | None,
    snapshot: str | None,
    as_json: bool,
) -> None:
    """Show how large a value is, and its ETag, or where a reference leads.

    The ETag is made from the content: equal bytes have equal ones.
    """
    from omnigraph.wire.blobs import BlobStatBody

    branch, snapshot = view_of(branch, snapshot)
    with target_of(scope, uri).read() as graph:
        blob = graph.blob(entity, type_, id_, property_, branch=branch, snapshot=snapshot)
        found = BlobStatBody.of(blob, branch, snapshot)
    if as_json:
        write_json(found)
        return
    lines = {"kind": found.kind, "size": found.size, "etag": found.etag, "uri": found.uri}
    lines["commit"] = found.target.resolved_snapshot
    write_text("\n".join(f"{name}: {value}" for name, value in lines.items() if value is not None))
