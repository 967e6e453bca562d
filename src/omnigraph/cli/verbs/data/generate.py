"""`omnigraph generate`: a made-up graph of any size, as files to load.

Owns the options and what is said about the files; the data is made by `omnigraph.generate`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.render.output import write_json, write_text
from omnigraph.cli.render.tables import render_table

if TYPE_CHECKING:
    from omnigraph.wire.results import GeneratedBody


@click.command("generate", cls=VerbCommand)
@click.option(
    "--out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    required=True,
    help="The directory to write to; new or empty.",
)
@click.option(
    "--people",
    metavar="N",
    type=click.IntRange(min=0),
    default=1000,
    help="How many people; the rest follows from it. 1000 if not given.",
)
@click.option(
    "--edges", metavar="N", type=click.IntRange(min=0), help="How many edges of all types together."
)
@click.option("--seed", metavar="N", type=int, default=0, help="Another seed, another graph.")
@click.option(
    "--format",
    "file_format",
    type=click.Choice(["jsonl", "csv", "parquet"]),
    default="jsonl",
    help="The format of the files; jsonl if not given.",
)
@click.option(
    "--files",
    metavar="N",
    type=click.IntRange(min=1),
    default=1,
    help="How many files for each type.",
)
@click.option("--gzip", is_flag=True, help="Compress jsonl or csv files with gzip.")
@click.option("--zstd", is_flag=True, help="Compress jsonl or csv files with Zstandard.")
@click.option(
    "--dirty",
    metavar="RATE",
    type=click.FloatRange(0, 1),
    default=0.0,
    help="Plant so many broken rows for each good one, and list them in dirty.json.",
)
@click.option("--embeddings", is_flag=True, help="Give documents a vector, in the schema only.")
@json_option
def command(
    *,
    out: Path,
    people: int,
    edges: int | None,
    seed: int,
    file_format: Literal["jsonl", "csv", "parquet"],
    files: int,
    gzip: bool,
    zstd: bool,
    dirty: float,
    embeddings: bool,
    as_json: bool,
) -> None:
    """Write a made-up graph of any size, as files to load.

    People who know each other, their companies and their documents. The same
    options give the same data, always.
    """
    if gzip and zstd:
        raise click.UsageError("--gzip and --zstd: choose one")
    from omnigraph.generate.people_graph import GraphSize, generate
    from omnigraph.wire.results import GeneratedBody

    made = generate(
        GraphSize.of(people, edges=edges),
        out,
        seed=seed,
        format=file_format,
        files=files,
        compression="gzip" if gzip else "zstd" if zstd else None,
        dirty=dirty,
        embeddings=embeddings,
    )
    body = GeneratedBody.of(made, str(out), seed)
    if as_json:
        write_json(body)
    else:
        write_text(_report(body, dirty=dirty > 0))


def _report(made: GeneratedBody, *, dirty: bool) -> str:
    columns = ["type", "rows", *(["planted"] if dirty else []), "files", "bytes"]
    rows = [
        [one.name, one.rows, *([one.planted] if dirty else []), len(one.files), one.bytes]
        for one in made.types
    ]
    size = f"{made.total_rows} rows, {made.total_bytes} bytes"
    said = [f"generated {made.out} with seed {made.seed}: {size}", render_table(columns, rows)]
    if dirty:
        kinds = ", ".join(f"{count} {kind}" for kind, count in made.planted.items())
        said.append(f"broken rows planted: {kinds or 'none'}")
    return "\n".join(said)
