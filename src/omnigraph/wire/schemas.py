"""Schemas and how they change: plans, what was applied, differences, the log, refusals.

Owns the names of these bodies. A step stands in them as its own JSON has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import convert, field

from omnigraph.wire.body import Body
from omnigraph.wire.graphs import CommitBody
from omnigraph.wire.reports import DiagnosticBody

if TYPE_CHECKING:
    from omnigraph.evolve.apply import SchemaResult
    from omnigraph.evolve.log import SchemaCommit
    from omnigraph.lang.schema.migration.plan import MigrationPlan
    from omnigraph.lang.schema.migration.refusals import BrokenQuery, Refusal
    from omnigraph.lang.schema.migration.steps import Step

StepBody = dict[str, Any]


class SchemaBody(Body, frozen=True):
    """A schema, as it was written."""

    schema_source: str


class ViolationsBody(Body, frozen=True):
    """How many rows break a step, and the first ids."""

    count: int
    ids: list[str]


class PlaceBody(Body, frozen=True):
    """Where the desired schema declares something; lines and columns count from 1."""

    path: str
    line: int
    column: int
    end_line: int
    end_column: int


class RefusalBody(Body, frozen=True):
    """One thing that stands against a plan."""

    entity: str
    reason: str
    code: str | None = None
    violations: ViolationsBody | None = None
    place: PlaceBody | None = None

    @classmethod
    def of(cls, refusal: Refusal) -> RefusalBody:
        """The refusal; what it does not have is left out."""
        return convert(refusal.to_json(), cls)


class BrokenQueryBody(Body, frozen=True):
    """A query that would no longer compile; `query` is left out where the text does not parse."""

    source: str
    query: str | None = None
    diagnostics: tuple[DiagnosticBody, ...] = ()

    @classmethod
    def of(cls, broken: BrokenQuery) -> BrokenQueryBody:
        """The query with its mistakes."""
        return convert(broken.to_json(), cls)


class SchemaRefusedBody(Body, frozen=True):
    """Everything that stands against a change of the schema, and its steps."""

    refusals: list[RefusalBody]
    steps: list[StepBody]
    broken_queries: tuple[BrokenQueryBody, ...] = ()


class SchemaPlanBody(Body, frozen=True):
    """What it takes to give a branch another schema."""

    uri: str
    branch: str
    supported: bool
    step_count: int
    steps: list[StepBody]
    refusals: tuple[RefusalBody, ...] = ()
    broken_queries: tuple[BrokenQueryBody, ...] = ()

    @classmethod
    def of(cls, plan: MigrationPlan, uri: str, branch: str) -> SchemaPlanBody:
        """The plan for a branch of a graph."""
        return cls(
            uri,
            branch,
            plan.supported,
            len(plan.steps),
            _steps(plan.steps),
            tuple(map(RefusalBody.of, plan.refusals)),
            tuple(map(BrokenQueryBody.of, plan.broken_queries)),
        )


class SchemaAppliedBody(Body, frozen=True):
    """What became of a change of the schema; without a change there is no commit."""

    uri: str
    branch: str
    supported: bool
    applied: bool
    step_count: int
    graph_manifest_version: int | None
    steps: list[StepBody]
    actor_id: str | None
    commit: CommitBody | None
    repeats_run: bool = False
    broken_queries: tuple[BrokenQueryBody, ...] = ()
    """Those that it was forced on."""

    @classmethod
    def of(cls, result: SchemaResult, uri: str, actor: str | None) -> SchemaAppliedBody:
        """The result of an apply, and who asked for it."""
        return cls(
            uri,
            result.branch,
            result.supported,
            result.applied,
            result.step_count,
            result.manifest_version,
            _steps(result.steps),
            actor,
            CommitBody.of_any(result.commit),
            result.repeats_run,
            tuple(map(BrokenQueryBody.of, result.plan.broken_queries)),
        )


class SchemaDiffBody(Body, frozen=True):
    """What leads from the schema of one state to that of another."""

    uri: str
    from_: str = field(name="from")
    to: str
    supported: bool
    step_count: int
    steps: list[StepBody]

    @classmethod
    def of(cls, plan: MigrationPlan, uri: str, before: str, after: str) -> SchemaDiffBody:
        """The plan, and what was compared."""
        return cls(uri, before, after, plan.supported, len(plan.steps), _steps(plan.steps))


class SchemaCommitBody(Body, frozen=True):
    """A commit that changed the schema; the one that made the graph has no steps."""

    commit: CommitBody
    step_count: int
    steps: list[StepBody]

    @classmethod
    def of(cls, found: SchemaCommit) -> SchemaCommitBody:
        """The commit with what it did."""
        return cls(CommitBody.of(found.commit), len(found.steps), _steps(found.steps))


class SchemaLogBody(Body, frozen=True):
    """The commits that changed the schema of a branch, newest first."""

    uri: str
    branch: str
    changes: list[SchemaCommitBody]

    @classmethod
    def of(cls, log: Iterable[SchemaCommit], uri: str, branch: str) -> SchemaLogBody:
        """The log of a branch."""
        return cls(uri, branch, [SchemaCommitBody.of(found) for found in log])


def _steps(steps: Sequence[Step]) -> list[StepBody]:
    return [step.to_json() for step in steps]
