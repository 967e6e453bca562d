"""Writes as a caller asks for them: a mutation, or a load in this process.

Owns the way from a request to a result. Compiling, decoding, checking and publishing
are the work of others.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from omnigraph.embed.cache import Memory
from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.embed.providers import ConfiguredEmbedder, embedder_of
from omnigraph.lang.query.compile import CompiledQuery, compile_query
from omnigraph.lang.query.params import coerce_params
from omnigraph.lang.query.values import Values, statement_time
from omnigraph.manifest.publish_request import PendingCommit
from omnigraph.write.change.change_set import ChangeSet
from omnigraph.write.change.results import MutationResult
from omnigraph.write.mutation.execute import MutationChanges, run_mutation
from omnigraph.write.publish.driver import Writer, WriteTxn


@dataclass(slots=True)
class Mutation:
    """One run of a mutation query; ``embedding`` is None for what the environment says."""

    source: str
    name: str | None
    params: object
    path: str = "<query>"
    embedding: EmbedderConfig | None = None
    noted: dict[str, Any] = field(default_factory=lambda: {"operation": "mutation"})
    compiled: CompiledQuery | None = None
    done: MutationChanges | None = None
    _vectors: Memory = field(default_factory=dict)

    def prepare(self, txn: WriteTxn) -> ChangeSet:
        """Compile against the schema of the base, and run."""
        catalog = txn.base.catalog
        self.compiled = compile_query(self.source, catalog, self.name, path=self.path)
        plan = self.compiled.require_mutation()
        values = Values(coerce_params(self.compiled.params, self.params), statement_time())
        # When it is overtaken and prepared again, no text is paid for again.
        embedder = embedder_of(self.embedding, self._vectors)
        self.done = run_mutation(plan, values, txn.base, txn.reads, embedder)
        note_embedding(self.noted, embedder)
        return self.done.changes

    def run(self, writer: Writer, actor: str | None) -> MutationResult:
        """Publish it as one commit."""
        written = writer.run(self.prepare, noted_commit(actor, self.noted))
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


def noted_commit(actor: str | None, noted: dict[str, Any]) -> PendingCommit:
    """A commit with notes, which may still be added until it is published."""
    # The very dict and not a copy: what was embedded is known only when the write is prepared,
    # and by then the commit is minted.
    return replace(PendingCommit.mint(actor), metadata=noted)


def note_embedding(noted: dict[str, Any], embedder: ConfiguredEmbedder) -> None:
    """Note which provider and model have made vectors, if any."""
    if embedder.used is None:
        noted.pop("embedding", None)
    else:
        noted["embedding"] = embedder.used
