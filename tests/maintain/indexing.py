"""What the index tests share: a small library, and answers with and without indexes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

import omnigraph as og
from omnigraph.lang.structural import DST, ID, SRC
from omnigraph.maintain.reports import IndexState
from omnigraph.storage.tables.table import Table
from tests.write.writing import table_of

SCHEMA = """\
node Book {
    title: String @key
    blurb: String? @index
    shelf: String? @index
    genre: enum(crime, poetry) @index
    pages: I64? @index
    out: DateTime? @index
    @index(genre, pages)
}

edge Cites: Book -> Book {
    page: I64? @index
}
"""
LONG = "a rather long text about nothing in particular, as blurbs tend to be, number "


def book(number: int, **values: Any) -> dict[str, Any]:
    data = {
        "title": f"book {number:04}",
        "blurb": f"{LONG}{number:04}",
        "shelf": f"shelf {number % 7}",
        "genre": "crime" if number % 2 else "poetry",
        "pages": number,
        "out": "2024-01-01T00:00:00Z",
    }
    return {"type": "Book", "data": data | values}


def cites(source: int, target: int) -> dict[str, Any]:
    ends = {"from": f"book {source:04}", "to": f"book {target:04}"}
    return {"edge": "Cites", **ends, "data": {}}


def load(graph: og.Graph, *envelopes: dict[str, Any], mode: str = "append", **rest: Any) -> None:
    graph.load("\n".join(map(json.dumps, envelopes)), mode=mode, **rest)


def library(root: Path, count: int = 20) -> og.Graph:
    """A graph of some books, each of which cites the next."""
    graph = og.init(root, SCHEMA)
    books = [book(number) for number in range(count)]
    load(graph, *books, *(cites(number, number + 1) for number in range(count - 1)))
    return graph


def states(graph: og.Graph, branch: str = "main") -> dict[tuple[str, str, str | None], IndexState]:
    """The indexes by type, property and kind."""
    found = graph.index_status(branch).indexes
    return {(one.type_key, one.property, one.kind): one for one in found}


def ids(rows: pa.Table) -> list[str]:
    return sorted(rows.column(ID).to_pylist())


def plan_of(table: Table, wanted: pc.Expression) -> str:
    return str(table.dataset().scanner(filter=wanted).explain_plan())


def check_filters(graph: og.Graph, branch: str = "main") -> None:
    """Filters say the same of the indexed table as of its rows in memory."""
    books = table_of(graph, "node:Book", branch)
    rows = books.scan()
    for wanted in (
        pc.field("pages") == 3,
        pc.field("pages") >= 7,
        pc.field("genre") == "crime",
        pc.field("title") == "book 0003",
        pc.starts_with(pc.field("title"), "book 000"),
        pc.field("shelf") == "shelf 3",
        pc.field("shelf").is_null(),
        pc.match_substring(pc.field("blurb"), "number 0003"),
        pc.match_substring(pc.field("blurb"), "nothing"),
        pc.match_substring(pc.field("blurb"), "new"),
    ):
        assert ids(books.scan([ID], wanted)) == ids(rows.filter(wanted)), str(wanted)
    edges = table_of(graph, "edge:Cites", branch)
    stored = edges.scan()
    for end in (SRC, DST):
        wanted = pc.field(end).isin(["book 0001", "book 0003"])
        assert ids(edges.scan([ID], wanted)) == ids(stored.filter(wanted))


def nearest(table: Table, column: str, query: Any, **options: Any) -> list[str]:
    """The ids of the ten nearest."""
    wanted = {"column": column, "q": query, "k": 10, "metric": "cosine", **options}
    found = table.dataset().to_table(
        columns=[ID], nearest=wanted, disable_scoring_autoprojection=True
    )
    return list(found[ID].to_pylist())


def truly_nearest(rows: pa.Table, column: str, query: Any) -> list[str]:
    """The same, by comparing all of them here."""
    rows = rows.filter(pc.is_valid(rows.column(column)))
    flat = rows.column(column).combine_chunks().flatten().to_numpy()
    vectors = flat.reshape(rows.num_rows, -1)
    likeness = vectors @ query / np.linalg.norm(vectors, axis=1)
    best = np.argsort(-likeness, kind="stable")[:10]
    return list(rows.column(ID).take(best).to_pylist())
