"""Writes as a caller asks for them: a mutation, or a load in this process.

Owns the way from a request to a result. Compiling, decoding, checking and publishing
are the work of others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from omnigraph.errors import ReadSetChanged
from omnigraph.lang.query.compile import CompiledQuery, compile_query
from omnigraph.lang.query.params import coerce_params
from omnigraph.lang.query.values import Values
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.manifest.changes import CommitIntent
from omnigraph.write.batches import TypeBatch
from omnigraph.write.changes import ChangeSet
from omnigraph.write.load.run import LoadMode, load_changes
from omnigraph.write.load.sources import read_sources
from omnigraph.write.mutation import MutationChanges, run_mutation
from omnigraph.write.results import LoadResult, MutationResult
from omnigraph.write.writer import Writer, WriteTxn


@dataclass(slots=True)
class Mutation:
    """One run of a mutation query."""

    source: str
    name: str | None
    params: object
    path: str = "<query>"
    compiled: CompiledQuery | None = None
    done: MutationChanges | None = None

    def prepare(self, txn: WriteTxn) -> ChangeSet:
        """Compile against the schema of the base, and run."""
        catalog = txn.base.catalog
        self.compiled = compile_query(self.source, catalog, self.name, path=self.path)
        plan = self.compiled.require_mutation()
        values = Values(coerce_params(self.compiled.params, self.params), _now())
        self.done = run_mutation(plan, values, txn.base, txn.reads)
        return self.done.changes

    def run(self, writer: Writer, actor: str | None) -> MutationResult:
        """Publish it as one commit."""
        commit = CommitIntent.mint(actor, metadata={"operation": "mutation"})
        written = writer.run(self.prepare, commit)
        if self.compiled is None or self.done is None:
            raise AssertionError("a write is prepared before it is published")
        return MutationResult(
            writer.branch,
            self.compiled.name,
            self.done.affected_nodes,
            self.done.affected_edges,
            actor,
            written.commit,
        )


@dataclass(slots=True)
class Load:
    """One load of data that fits into memory."""

    data: object
    mode: LoadMode
    batches: list[TypeBatch] | None = None
    decoded_for: Catalog | None = None

    def prepare(self, txn: WriteTxn) -> ChangeSet:
        """Decode once for a schema, and fold by mode."""
        catalog = txn.base.catalog
        if self.batches is None or self.decoded_for is not catalog:
            self._check_repeatable()
            self.batches = read_sources(self.data, catalog)
            self.decoded_for = catalog
        return load_changes(self.batches, self.mode, txn)

    def _check_repeatable(self) -> None:
        """What can be read only once cannot be decoded again for another schema."""
        if self.batches is not None and isinstance(self.data, Iterator):
            raise ReadSetChanged(
                "the schema changed while this load was being prepared, nothing was written: "
                "load it again",
                details={"member": "schema_identity"},
            )

    def run(self, writer: Writer, actor: str | None) -> LoadResult:
        """Publish it as one commit; an empty load is one, too."""
        commit = CommitIntent.mint(actor, metadata={"operation": "load", "mode": self.mode})
        written = writer.run(self.prepare, commit, even_if_empty=True)
        if written.commit is None or self.batches is None:
            raise AssertionError("a load always makes a commit")
        counts = {
            kind: {
                batch.type.name: batch.rows.num_rows
                for batch in self.batches
                if batch.type.kind == kind
            }
            for kind in ("node", "edge")
        }
        return LoadResult(
            writer.branch,
            self.mode,
            counts["node"],
            counts["edge"],
            written.commit,
            actor,
            writer.fork_from,
            written.branch_created,
        )


def _now() -> datetime:
    """The moment of a run, to the millisecond that is stored."""
    moment = datetime.now(UTC)
    return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
