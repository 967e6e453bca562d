"""Queries as a caller asks for them: from text to a result, or to an explanation.

Owns compiling against the schema and putting the context together. One snapshot and
one catalog from beginning to end.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.lang.query.compile import CompiledQuery
from omnigraph.lang.query.params import coerce_params
from omnigraph.lang.query.plan import ReadPlan
from omnigraph.lang.query.unnamed import compile_given
from omnigraph.lang.query.values import Values, statement_time
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.read.execute.context import ReadContext
from omnigraph.read.execute.engine import execute
from omnigraph.read.execute.trace import Trace
from omnigraph.read.limited.view import is_whole, limited_context
from omnigraph.read.output.result import Result
from omnigraph.read.plan.physical import Expansion
from omnigraph.read.plan.planner import plan_read
from omnigraph.storage.budget import HEAVY, Budget


@dataclass(frozen=True, slots=True)
class Query:
    """One query of a text, with what it is given."""

    source: str
    name: str | None = None
    params: object = None
    path: str = "<query>"
    budget: Budget = field(default_factory=Budget)
    expansion: Expansion = "auto"
    embedding: EmbedderConfig | None = None
    """Who makes a vector of a text that is searched for; without one the environment says."""

    def run(
        self,
        snapshot: Snapshot,
        catalog: Catalog,
        *,
        at_commit: bool = False,
        trace: Trace | None = None,
    ) -> Result:
        """Execute it; ``at_commit`` says that the caller asked for a commit, not a branch."""
        compiled = compile_given(self.source, catalog, self.name, self.params, path=self.path)
        read = compiled.require_read()
        ctx = self.context(snapshot, catalog, compiled, trace)
        # Storage that is far away may keep anybody waiting.
        weight = 0 if snapshot.is_local else HEAVY
        table = ctx.budget.run(weight, lambda: execute(plan_read(read, ctx), ctx))
        branch = None if at_commit else snapshot.branch
        commit = snapshot.commit_id if at_commit else None
        return Result(table, compiled.name, snapshot.commit_id, branch, commit)

    def context(
        self,
        snapshot: Snapshot,
        catalog: Catalog,
        compiled: CompiledQuery,
        trace: Trace | None = None,
    ) -> ReadContext:
        """Everything its steps may ask for."""
        ctx = ReadContext(
            snapshot,
            catalog,
            coerce_params(compiled.params, self.params, records=compiled.records),
            statement_time(),
            self.budget,
            self.expansion,
            trace or Trace(),
            embedding=self.embedding,
        )
        return ctx if is_whole(snapshot) else limited_context(ctx)


@dataclass(frozen=True, slots=True)
class MatchQuery:
    """The match of a mutation, with what the mutation is given."""

    plan: ReadPlan
    values: Values
    budget: Budget
    embedding: EmbedderConfig | None = None

    def rows(self, snapshot: Snapshot, catalog: Catalog) -> pa.Table:
        """The rows that it binds, in the types that are stored."""
        given = self.values
        whole = ReadContext(
            snapshot, catalog, given.params, given.now, self.budget, embedding=self.embedding
        )
        ctx = whole if is_whole(snapshot) else limited_context(whole)
        weight = 0 if snapshot.is_local else HEAVY
        return ctx.budget.run(weight, lambda: execute(plan_read(self.plan, ctx), ctx))
