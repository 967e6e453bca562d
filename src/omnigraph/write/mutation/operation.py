"""A mutation as a caller asks for it: from the text of a query to a result.

Owns the way. Compiling, running, checking and publishing are the work of others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec
import pyarrow as pa

from omnigraph.embed.cache import Memory
from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.embed.providers import ConfiguredEmbedder, embedder_of
from omnigraph.errors import ResourceLimit
from omnigraph.lang.query.compile import CompiledQuery
from omnigraph.lang.query.params import coerce_params
from omnigraph.lang.query.plan import ReadPlan
from omnigraph.lang.query.unnamed import compile_given
from omnigraph.lang.query.values import Values, statement_time
from omnigraph.manifest.limits import ReadLimits
from omnigraph.manifest.publish_request import PendingCommit
from omnigraph.storage.budget import Budget
from omnigraph.write.change.change_set import ChangeSet
from omnigraph.write.change.protocol import Effects, RowsChange, WriteOutcome, WriteTxn
from omnigraph.write.change.results import EmptiedProperties, MutationResult
from omnigraph.write.mutation.execute import run_mutation
from omnigraph.write.mutation.limited import WriteLimits
from omnigraph.write.mutation.loops import unrolled
from omnigraph.write.mutation.matching import MatchedRows, Matching
from omnigraph.write.mutation.run import MutationRun
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.run_ids import RunId
from omnigraph.write.recovery.intents import WriterKind

MOST_KEPT = 10_000
"""So many returned rows are kept with a commit that has a run id, to be told again."""


@dataclass(frozen=True, slots=True)
class MutationOutcome:
    """What a mutation did, whenever it did it."""

    query_name: str
    affected_nodes: int
    affected_edges: int
    warnings: tuple[EmptiedProperties, ...]
    rows: list[dict[str, Any]] | None = None


@dataclass(slots=True)
class Mutation(RowsChange[MutationResult]):
    """One run of a mutation query.

    ``limits`` are those of an actor who does not see everything; ``matching`` reads for the same.
    ``embedding`` and ``max_bytes``,
    the most that it may hold at once, are None for what the environment says.
    """

    kind: ClassVar[WriterKind] = "Mutation"

    source: str
    name: str | None
    params: object
    path: str = "<query>"
    actor: str | None = None
    run: RunId | None = None
    max_bytes: int | None = None
    limits: ReadLimits | None = None
    embedding: EmbedderConfig | None = None
    matching: Matching | None = None
    notes: dict[str, Any] = field(default_factory=lambda: {"operation": "mutation"})
    commit: PendingCommit = field(init=False)
    changes: ChangeSet | None = None
    _done: MutationOutcome | None = None
    _vectors: Memory = field(default_factory=dict)
    _budget: Budget = field(default_factory=Budget)

    def __post_init__(self) -> None:
        self.commit = PendingCommit.mint(self.actor)

    def prepare(self, txn: WriteTxn) -> bool:
        """Compile against the schema of the base, and run."""
        limits = None if self.limits is None else WriteLimits.of(self.limits, txn.base)
        catalog = txn.base.catalog if limits is None else limits.shown
        compiled = compile_given(self.source, catalog, self.name, self.params, path=self.path)
        plan = compiled.require_mutation()
        given = coerce_params(compiled.params, self.params, records=compiled.records)
        values = Values(given, statement_time())
        plan = unrolled(plan, given)
        if limits is not None:
            plan = limits.limited(plan)
        matched = None if plan.match is None else self._matched(plan.match, values, txn, compiled)
        # When it is overtaken and prepared again, no text is paid for again.
        embedder = embedder_of(self.embedding, self._vectors)
        # What another preparation held is of no use any more.
        self._budget = Budget(max_bytes=self.max_bytes)
        run = MutationRun(txn.base, txn.reads, values)
        done = self._budget.run(0, lambda: run_mutation(plan, run, embedder, matched))
        note_embedding(self.notes, embedder)
        if limits is not None:
            limits.check(done.changes, values)
        self.changes = done.changes
        self._done = MutationOutcome(
            compiled.name,
            done.affected_nodes,
            done.affected_edges,
            done.warnings,
            self._shown(done.returned),
        )
        return not done.changes.is_empty

    def _matched(
        self, match: ReadPlan, values: Values, txn: WriteTxn, compiled: CompiledQuery
    ) -> pa.Table:
        """The rows that statements are fed with; the write depends on them."""
        matching = self.matching
        if matching is None:
            raise AssertionError("nobody reads the match of a mutation")

        def find(base: Base) -> pa.Table:
            return matching.rows(match, values, base, Budget(max_bytes=self.max_bytes))

        found = find(txn.base)
        kinds = (("node", "edge")[one.is_edge] for one in compiled.operation.reads)
        names = (one.type_name for one in compiled.operation.reads)
        tables = tuple(f"{kind}:{name}" for kind, name in zip(kinds, names, strict=True))
        txn.reads.claim(MatchedRows(tables, found, find))
        return found

    def _shown(self, returned: pa.Table | None) -> list[dict[str, Any]] | None:
        """What is told of the rows that were written."""
        if returned is None or self.matching is None:
            return None
        if self.run is not None and returned.num_rows > MOST_KEPT:
            raise ResourceLimit(
                f"a mutation with a run id returns at most {MOST_KEPT:,} rows, for they are kept, "
                f"and this one returns {returned.num_rows:,}: leave `return` or the run id out"
            )
        return self.matching.shown(returned)

    def check(self, txn: WriteTxn) -> None:
        """Every rule of the schema."""
        self._budget.operator = lambda: "rules of the schema"
        self._budget.run(0, lambda: RowsChange.check(self, txn))

    def stage(self, txn: WriteTxn) -> Effects:
        """All touched tables, in parallel."""
        self._budget.operator = lambda: "write rows"
        # Rows that replace stored ones and rows that are new are written apart.
        self._budget.need(self.prepared.size)
        return RowsChange.stage(self, txn)

    @property
    def outcome(self) -> Mapping[str, Any]:
        """The query, how many nodes and edges it affected, and what it emptied."""
        told: Mapping[str, Any] = msgspec.to_builtins(self._done)
        return told

    def result(self, written: WriteOutcome) -> MutationResult:
        """How many nodes and edges its statements affected."""
        done = msgspec.convert(written.first, MutationOutcome) if written.repeats else self._done
        if done is None:
            raise AssertionError("a mutation was run and not prepared")
        return MutationResult(
            written.branch,
            done.query_name,
            done.affected_nodes,
            done.affected_edges,
            self.actor if written.commit is None else written.commit.actor,
            written.commit,
            done.warnings,
            written.repeats,
            done.rows,
        )


def note_embedding(notes: dict[str, Any], embedder: ConfiguredEmbedder) -> None:
    """Note which provider and model have made vectors, if any."""
    if embedder.used is None:
        notes.pop("embedding", None)
    else:
        notes["embedding"] = embedder.used
