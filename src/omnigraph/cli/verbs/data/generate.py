"""`omnigraph generate`: a made-up graph of any size, as files to load.

Owns the options and what is said about the files; the data is made by `omnigraph.generate`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from omnigraph.cli.command import VerbCommand, json_option
from omnigraph.cli.render.output import write_json, write_text
from omnigraph.cli.render.tables import render_table

if TYPE_CHECKING:
    from omnigraph.generate.people_graph import GeneratedGraph


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
    body = _body(made, out, seed)
    if as_json:
        write_json(body)
    else:
        write_text(_report(body, dirty=dirty > 0))


def _body(made: GeneratedGraph, out: Path, seed: int) -> dict[str, Any]:
    types = []
    for name, rows in made.counts.items():
        files = [file for file in made.files if file.type_name == name]
        types.append(
            {
                "name": name,
                "rows": rows,
                "planted": sum(row.type_name == name for row in made.planted),
                "files": [str(file.path) for file in files],
                "bytes": sum(file.bytes for file in files),
            }
        )
    return {
        "out": str(out),
        "schema": str(made.schema_path),
        "seed": seed,
        "types": types,
        "total_rows": sum(made.counts.values()),
        "total_bytes": sum(file.bytes for file in made.files),
        "planted": made.planted_kinds,
    }


def _report(body: dict[str, Any], *, dirty: bool) -> str:
    columns = ["type", "rows", *(["planted"] if dirty else []), "files", "bytes"]
    rows = [
        [
            type_["name"],
            type_["rows"],
            *([type_["planted"]] if dirty else []),
            len(type_["files"]),
            type_["bytes"],
        ]
        for type_ in body["types"]
    ]
    size = f"{body['total_rows']} rows, {body['total_bytes']} bytes"
    said = [
        f"generated {body['out']} with seed {body['seed']}: {size}",
        render_table(columns, rows),
    ]
    if dirty:
        kinds = ", ".join(f"{count} {kind}" for kind, count in body["planted"].items())
        said.append(f"broken rows planted: {kinds or 'none'}")
    return "\n".join(said)
