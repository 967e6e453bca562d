"""The people graph: people who know each other, their companies and their documents.

Owns the public functions: rows as Arrow tables, or a directory with a schema, the data and a
list of what is wrong with it. The same arguments give the same rows, always and everywhere.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files as package_files
from pathlib import Path

import numpy as np
import pyarrow as pa

from omnigraph.errors import BadRequest
from omnigraph.generate.bad_rows import FORMATS, BadRows, Format, dirt_kinds
from omnigraph.generate.draws import Draws
from omnigraph.generate.entities import EntityRows, GraphSize, entity_rows
from omnigraph.generate.files import SUFFIXES, Compression, GeneratedFile, Part, Planted, write_part

__all__ = [
    "GeneratedFile",
    "GeneratedGraph",
    "GraphSize",
    "Planted",
    "generate",
    "schema",
    "tables",
]

CHUNK_ROWS = 1 << 16

_BEFORE_EMBEDDING = "    published: Date @index\n"
_EMBEDDING = '    embedding: Vector(64) @embed("title")\n'


@dataclass(frozen=True, slots=True)
class GeneratedGraph:
    """What `generate` has written."""

    files: tuple[GeneratedFile, ...]
    """In the order of loading: nodes before edges."""
    counts: Mapping[str, int]
    """Good rows by type."""
    schema_path: Path
    planted: tuple[Planted, ...]

    @property
    def planted_kinds(self) -> dict[str, int]:
        """How many broken rows there are of each kind, by name."""
        return dict(sorted(Counter(row.kind for row in self.planted).items()))


def schema(*, embeddings: bool = False) -> str:
    """The schema; with ``embeddings`` documents have a vector to be computed from their title."""
    text = package_files("omnigraph.generate").joinpath("people.pg").read_text(encoding="utf-8")
    if not embeddings:
        return text
    before, found, behind = text.partition(_BEFORE_EMBEDDING)
    if not found:
        raise AssertionError("the schema has no line to put the embedding behind")
    return before + found + _EMBEDDING + behind


def tables(
    size: GraphSize, seed: int = 0, *, chunk_rows: int = CHUNK_ROWS
) -> Iterator[tuple[str, pa.Table]]:
    """The rows of every type in tables of at most so many, nodes before edges.

    The columns are properties; edges have `src` and `dst` before them, as a load of frames
    takes them. A type without rows has one empty table.
    """
    for rows in entity_rows(size, seed):
        for start in range(0, max(rows.count, 1), chunk_rows):
            stop = min(start + chunk_rows, rows.count)
            yield rows.name, rows.make(np.arange(start, stop, dtype=np.int64))


def generate(
    size: GraphSize,
    out: Path,
    *,
    seed: int = 0,
    format: Format = "jsonl",  # noqa: A002 - the word of the command line
    files: int = 1,
    compression: Compression | None = None,
    dirty: float = 0.0,
    kinds: Sequence[str] | None = None,
    embeddings: bool = False,
    chunk_rows: int = CHUNK_ROWS,
) -> GeneratedGraph:
    """Write a graph into a new or empty directory.

    ``files`` is the number of parts of each type. ``dirty`` is how many broken rows are planted
    for each good one, of the ``kinds`` named or of all that the format can carry; `dirty.json`
    then says where they are.
    """
    if format not in FORMATS:
        raise BadRequest(f"there is no format {format!r}: choose {', '.join(FORMATS)}")
    if compression is not None and format == "parquet":
        raise BadRequest("parquet files are compressed already: leave the compression out")
    if files < 1:
        raise BadRequest(f"every type needs at least one file, not {files}")
    if not 0 <= dirty <= 1:
        raise BadRequest(f"dirty is a rate from 0 to 1, not {dirty}")
    chosen = dirt_kinds(format, kinds)
    _make_empty(out)
    schema_path = out / "schema.pg"
    schema_path.write_text(schema(embeddings=embeddings), encoding="utf-8")
    written: list[GeneratedFile] = []
    planted: list[Planted] = []
    every = entity_rows(size, seed)
    for number, rows in enumerate(every, start=1):
        dirt = BadRows(rows, Draws(seed), dirty, chosen) if dirty and rows.count else None
        suffix = f".{format}{SUFFIXES[compression] if compression else ''}"
        # The number makes nodes come before edges in the order of the names.
        stem = f"data/{number}-{rows.name}-" if format == "jsonl" else f"{rows.name}/part-"
        for part in _parts(rows, files, out / stem, suffix):
            file, broken = write_part(part, format, compression, dirt, chunk_rows)
            written.append(file)
            planted += broken
    graph = GeneratedGraph(
        tuple(written), {rows.name: rows.count for rows in every}, schema_path, tuple(planted)
    )
    if dirty:
        _write_dirty(graph, out, seed=seed, rate=dirty)
    return graph


def _make_empty(out: Path) -> None:
    """A directory that is there and has nothing in it."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise BadRequest(f"{out} is not empty: name a new directory, or empty it")
    except OSError as error:
        raise BadRequest(f"cannot write to {out}: {error.strerror}") from error


def _parts(rows: EntityRows, wanted: int, stem: Path, suffix: str) -> Iterator[Part]:
    """As many as wanted, but none without rows as long as there are any."""
    count = min(wanted, max(rows.count, 1))
    for nth in range(count):
        start, stop = (rows.count * bound // count for bound in (nth, nth + 1))
        yield Part(rows, start, stop, stem.with_name(f"{stem.name}{nth:04}{suffix}"))


def _write_dirty(graph: GeneratedGraph, out: Path, *, seed: int, rate: float) -> None:
    """The list of what was planted, one row on each line."""
    head = {
        "seed": seed,
        "rate": rate,
        "total": len(graph.planted),
        "kinds": graph.planted_kinds,
    }
    rows = ",\n".join(
        "    "
        + json.dumps(
            {
                "file": row.path.relative_to(out).as_posix(),
                "line": row.line,
                "type": row.type_name,
                "kind": row.kind,
                "rule": row.rule,
            }
        )
        for row in graph.planted
    )
    text = json.dumps(head, indent=2).removesuffix("\n}") + f',\n  "planted": [\n{rows}\n  ]\n}}\n'
    (out / "dirty.json").write_text(text, encoding="utf-8")
