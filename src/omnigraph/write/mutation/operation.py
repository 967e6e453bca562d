"""A mutation as a caller asks for it: from the text of a query to a result.

Owns the way. Compiling, running, checking and publishing are the work of others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from omnigraph.embed.cache import Memory
from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.embed.providers import ConfiguredEmbedder, embedder_of
from omnigraph.lang.query.compile import compile_query
from omnigraph.lang.query.params import coerce_params
from omnigraph.lang.query.values import Values, statement_time
from omnigraph.manifest.publish_request import PendingCommit
from omnigraph.write.change.change_set import ChangeSet
from omnigraph.write.change.protocol import RowsChange, WriteOutcome, WriteTxn
from omnigraph.write.change.results import EmptiedProperties, MutationResult
from omnigraph.write.mutation.execute import run_mutation
from omnigraph.write.recovery.intents import WriterKind


@dataclass(slots=True)
class Mutation(RowsChange[MutationResult]):
    """One run of a mutation query; ``embedding`` is None for what the environment says."""

    kind: ClassVar[WriterKind] = "Mutation"

    source: str
    name: str | None
    params: object
    path: str = "<query>"
    actor: str | None = None
    embedding: EmbedderConfig | None = None
    notes: dict[str, Any] = field(default_factory=lambda: {"operation": "mutation"})
    commit: PendingCommit = field(init=False)
    changes: ChangeSet | None = None
    _name: str = ""
    _affected: tuple[int, int] = (0, 0)
    _warnings: tuple[EmptiedProperties, ...] = ()
    _vectors: Memory = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.commit = PendingCommit.mint(self.actor)

    def prepare(self, txn: WriteTxn) -> bool:
        """Compile against the schema of the base, and run."""
        compiled = compile_query(self.source, txn.base.catalog, self.name, path=self.path)
        plan = compiled.require_mutation()
        values = Values(coerce_params(compiled.params, self.params), statement_time())
        # When it is overtaken and prepared again, no text is paid for again.
        embedder = embedder_of(self.embedding, self._vectors)
        done = run_mutation(plan, values, txn.base, txn.reads, embedder)
        note_embedding(self.notes, embedder)
        self.changes, self._name = done.changes, compiled.name
        self._affected = done.affected_nodes, done.affected_edges
        self._warnings = done.warnings
        return not done.changes.is_empty

    def result(self, written: WriteOutcome) -> MutationResult:
        """How many nodes and edges its statements affected."""
        return MutationResult(
            written.branch,
            self._name,
            *self._affected,
            self.actor,
            written.commit,
            self._warnings,
        )


def note_embedding(notes: dict[str, Any], embedder: ConfiguredEmbedder) -> None:
    """Note which provider and model have made vectors, if any."""
    if embedder.used is None:
        notes.pop("embedding", None)
    else:
        notes["embedding"] = embedder.used
