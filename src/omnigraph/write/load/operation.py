"""A load in this process: from what a caller hands over to a result.

Owns the way, for input that fits into memory. Decoding, checking and publishing are the work
of others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.embed.fill import fill_vectors, lacks_vectors
from omnigraph.embed.protocol import Embedder
from omnigraph.embed.providers import embedder_of
from omnigraph.errors import ReadSetChanged
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.write.change.change_set import ChangeSet
from omnigraph.write.change.results import LoadResult
from omnigraph.write.change.type_batch import TypeBatch, type_key
from omnigraph.write.load.changes import load_changes
from omnigraph.write.load.options import LoadOptions
from omnigraph.write.load.outcome import Accepted, load_result, repeated_result
from omnigraph.write.load.read_input import Sources, read_sources
from omnigraph.write.load.rejects import Reject, count_codes, too_many, write_rejects
from omnigraph.write.load.sifting import sift_values
from omnigraph.write.load.skip_rounds import settle
from omnigraph.write.mutation.operation import note_embedding, noted_commit
from omnigraph.write.publish.driver import Writer, WriteTxn
from omnigraph.write.publish.run_ids import RunAlreadyLoaded, require_first_run
from omnigraph.write.rules.check import check_changes
from omnigraph.write.rules.evaluation import Evaluation


@dataclass(slots=True)
class Load:
    """One load; ``embedding`` is None for what the environment says."""

    data: object
    options: LoadOptions
    embedding: EmbedderConfig | None = None
    noted: dict[str, Any] = field(default_factory=lambda: {"operation": "load"})
    rejects: list[Reject] = field(default_factory=list)
    batches: Sequence[TypeBatch] | None = None
    _sources: Sources | None = None
    _decoded: list[TypeBatch] | None = None
    _decoded_for: Catalog | None = None
    _early: list[Reject] = field(default_factory=list)
    _name: str = ""
    _listed: Path | None = None

    def prepare(self, txn: WriteTxn) -> ChangeSet:
        """Decode and embed once for a schema, and fold by mode."""
        require_first_run(txn.base, txn.reads, self.options.once)
        decoded = self._decode(txn)
        if self.options.on_error == "fail":
            self.batches = decoded
            return load_changes(decoded, self.options.mode, txn.base, txn.reads)
        settled = settle(decoded, self.options.mode, txn.base, txn.reads)
        self.batches = settled.batches
        sources = self._sources
        if sources is None:
            raise AssertionError("rows are decoded before they are settled")
        self.rejects = sorted(
            [*self._early, *sources.rejects(settled.violations)], key=sources.order_of
        )
        self._list_rejects()
        self._check_bound()
        return settled.changes

    def _decode(self, txn: WriteTxn) -> list[TypeBatch]:
        catalog = txn.base.catalog
        if self._decoded is not None and self._decoded_for is catalog:
            return self._decoded
        if self._decoded is not None and isinstance(self.data, Iterator):
            # What can be read only once cannot be decoded again for another schema.
            raise ReadSetChanged(
                "the schema changed while this load was being prepared, nothing was written: "
                "load it again",
                details={"member": "schema_identity"},
            )
        embedder = embedder_of(self.embedding)
        self._sources = read_sources(self.data)
        fails = self.options.on_error == "fail"
        sifted = self._sources.sift(catalog, strict=fails)
        if not fails:
            sifted = sift_values(sifted, embedder)
            self._early = list(self._sources.rejects(sifted.violations))
        batches = [one.batch for one in sifted.batches]
        self._decoded = self._embedded(batches, embedder, txn) if fails else batches
        self._decoded_for = catalog
        note_embedding(self.noted, embedder)
        return self._decoded

    def _embedded(
        self, batches: Sequence[TypeBatch], embedder: Embedder, txn: WriteTxn
    ) -> list[TypeBatch]:
        if any(lacks_vectors(batch.rows, batch.type) for batch in batches):
            # Vectors may cost money: rows that will be refused get none.
            changes = load_changes(batches, self.options.mode, txn.base, txn.reads)
            check_changes(Evaluation(changes, txn.base, txn.reads), before_embedding=True)
        return [
            replace(batch, rows=fill_vectors(batch.rows, batch.type, embedder)) for batch in batches
        ]

    def _check_bound(self) -> None:
        limit = self.options.max_rejects
        if limit is not None and len(self.rejects) > limit:
            raise too_many(limit, count_codes(self.rejects), self.rejects)

    def run(self, writer: Writer, actor: str | None) -> LoadResult:
        """Publish it as one commit; an empty load is one, too."""
        options = self.options
        self.noted |= options.notes
        commit = noted_commit(actor, self.noted)
        self._name = commit.id
        try:
            written = writer.run(self.prepare, commit, even_if_empty=True, dry_run=options.dry_run)
        except RunAlreadyLoaded as done:
            return repeated_result(writer, actor, options, done.commit)
        return load_result(writer, actor, options, written, self._accepted())

    def _list_rejects(self) -> None:
        """Before anything is published: a load whose rejects cannot be listed must not happen."""
        directory = self.options.rejects
        if directory is None or not (self.rejects or self._listed):
            return
        self._listed = write_rejects(directory, self._name, self.rejects)

    def _accepted(self) -> Accepted:
        if self.batches is None:
            raise AssertionError("a load is prepared before it is published")
        rows = {type_key(batch.type): batch.rows.num_rows for batch in self.batches}
        listed = None if self._listed is None else str(self._listed)
        return Accepted(rows, count_codes(self.rejects), listed)
