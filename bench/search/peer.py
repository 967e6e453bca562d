"""LanceDB: the same retrieval with what it offers, and joins in Arrow where it offers none.

Owns the joins, written as somebody would who knows the data: how many documents a city has
is looked up first, so that mostly one search fetches enough, and more are fetched until the
answer is full. Authors and who wrote what are kept in memory, as our topology is.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bench.search.data import AUTHORS_FILE, DIMENSION, DOCUMENTS_FILE, WROTE_FILE
from bench.search.fusion import SMOOTHING, Rows, fused
from bench.search.questions import WANTED, Params, Question

Retrieve = Callable[[int], pa.Table]

# So many times what should suffice is fetched at first, and so many times that if it did not.
_SPARE = 2
_WIDER = 4


class LanceDb:
    """A table of documents that is searched; authors and edges beside it."""

    def __init__(self, directory: Path) -> None:
        lancedb: Any = import_module("lancedb")
        self.database = lancedb.connect(directory / "lancedb")
        self.reranker = import_module("lancedb.rerankers").RRFReranker(SMOOTHING)

    def load(self, files: Path) -> None:
        """One table for each file."""
        create = self.database.create_table
        self.documents = create("documents", pq.read_table(files / DOCUMENTS_FILE))
        self.count: int = self.documents.count_rows()
        create("authors", pq.read_table(files / AUTHORS_FILE))
        create("wrote", pq.read_table(files / WROTE_FILE))
        self.authors: pa.Table = self.database.open_table("authors").to_arrow()
        self.wrote: pa.Table = self.database.open_table("wrote").to_arrow()

    def index(self) -> list[str]:
        """Of the same kinds as ours, where the documents are searched."""
        from omnigraph.storage.indexes.build import ANALYZER, build_options, partitions, vector_kind

        documents = self.documents
        count = self.count
        documents.create_scalar_index("year", index_type="BTREE")
        documents.create_fts_index("text", with_position=True, **ANALYZER)
        kind = vector_kind(count, DIMENSION)
        if kind is None:
            return ["year BTREE", "text INVERTED"]
        documents.create_index(
            "cosine",
            partitions(count),
            vector_column_name="meaning",
            index_type=kind,
            **build_options(kind),
        )
        return ["year BTREE", "text INVERTED", f"meaning {kind}"]

    def ask(self, question: Question, params: Params) -> Rows:
        """The answer."""
        if question.shape == "traversal":
            return self._traversed(question, params)
        where = f"year = {params['year']}" if question.shape == "filter" else None
        if question.ranking == "rrf":
            return _rows(self._hybrid(params, where), ["slug"], "_relevance_score")
        found, score = self._arms(question, params, where)[0]
        return _rows(found(WANTED), ["slug"], score)

    def _hybrid(self, params: Params, where: str | None) -> pa.Table:
        search = self.documents.search(
            query_type="hybrid", vector_column_name="meaning", fts_columns="text"
        )
        search = search.vector(params["vector"]).text(params["words"]).distance_type("cosine")
        search = _filtered(search, where).rerank(self.reranker).select(["slug"])
        found: pa.Table = search.limit(WANTED).to_arrow()
        return found

    # -- one search ------------------------------------------------------------------

    def _arms(
        self, question: Question, params: Params, where: str | None
    ) -> list[tuple[Retrieve, str]]:
        """The searches that a ranking is made of, and what their scores are called."""
        near: tuple[Retrieve, str] = (lambda count: self._near(params, where, count), "_distance")
        worded: tuple[Retrieve, str] = (lambda count: self._worded(params, where, count), "_score")
        return {"nearest": [near], "bm25": [worded], "rrf": [near, worded]}[question.ranking]

    def _near(self, params: Params, where: str | None, count: int) -> pa.Table:
        search = self.documents.search(
            params["vector"], vector_column_name="meaning", query_type="vector"
        ).distance_type("cosine")
        return _fetched(search, where, "_distance", count)

    def _worded(self, params: Params, where: str | None, count: int) -> pa.Table:
        search = self.documents.search(params["words"], query_type="fts", fts_columns="text")
        return _fetched(search, where, "_score", count)

    # -- joins -----------------------------------------------------------------------

    def _traversed(self, question: Question, params: Params) -> Rows:
        written = self._written_in(params["city"])
        arms = [
            _rows(_widened(retrieve, written, self.count), ["slug", "from"], score)
            for retrieve, score in self._arms(question, params, None)
        ]
        return arms[0] if len(arms) == 1 else fused(arms, WANTED)

    def _written_in(self, city: str) -> pa.Table:
        """Who of a city wrote which document."""
        living = self.authors.filter(pc.equal(self.authors.column("city"), city)).column("name")
        return self.wrote.filter(pc.is_in(self.wrote.column("from"), value_set=living))


def _filtered(search: Any, where: str | None) -> Any:
    return search if where is None else search.where(where, prefilter=True)


def _fetched(search: Any, where: str | None, score: str, count: int) -> pa.Table:
    found: pa.Table = _filtered(search, where).select(["slug", score]).limit(count).to_arrow()
    return found


def _widened(retrieve: Retrieve, written: pa.Table, documents: int) -> pa.Table:
    """The best rows of a search that somebody of the city wrote, with who it was."""
    enough = documents // max(1, written.num_rows) + 1
    count = min(documents, _SPARE * WANTED * enough)
    while True:
        found = retrieve(count)
        held = found.filter(pc.is_in(found.column("slug"), value_set=written.column("to")))
        if held.num_rows >= WANTED or found.num_rows < count or count >= documents:
            return _joined(held.slice(0, WANTED), written)
        count = min(documents, count * _WIDER)


def _joined(held: pa.Table, written: pa.Table) -> pa.Table:
    """One row for every author of a document, the documents as they are ranked."""
    ends = written.filter(pc.is_in(written.column("to"), value_set=held.column("slug")))
    place = pc.index_in(ends.column("to"), value_set=held.column("slug"))
    order = pc.sort_indices(
        pa.table({"place": place, "from": ends.column("from")}),
        [("place", "ascending"), ("from", "ascending")],
    ).slice(0, WANTED)
    return held.take(place.take(order)).append_column("from", ends.column("from").take(order))


def _rows(found: pa.Table, columns: list[str], score: str) -> Rows:
    return [list(row.values()) for row in found.select([*columns, score]).to_pylist()]
