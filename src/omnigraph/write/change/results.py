"""What writes report: plain results with the names people and the wire use.

Owns their shape; imported by the façade and whoever renders them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from omnigraph.display.markup import counted
from omnigraph.errors import BadRequest

if TYPE_CHECKING:
    # Not at run time: those who only render a result have no use for Arrow.
    from omnigraph.manifest.entries import Commit

RecoveryKind = Literal["RolledForward", "RolledBack", "OrphanedBranchDiscarded"]


@dataclass(frozen=True, slots=True)
class EmptiedProperties:
    """An insert has replaced so many rows and left out properties that these had."""

    type_name: str
    rows: int
    properties: tuple[str, ...]

    @property
    def code(self) -> str:
        """The code under which lint warns of it."""
        return "L301"

    def __str__(self) -> str:
        return (
            f"insert replaced {self.rows} {self.type_name} and emptied "
            f"{', '.join(self.properties)}; upsert changes only what is given"
        )


@dataclass(frozen=True, slots=True, repr=False)
class MutationResult:
    """What a mutation did; ``commit`` is None when nothing changed.

    With ``repeats_run`` it was done before, by an earlier request with the same run id.
    """

    branch: str
    query_name: str
    affected_nodes: int
    affected_edges: int
    actor: str | None
    commit: Commit | None
    warnings: tuple[EmptiedProperties, ...] = ()
    repeats_run: bool = field(default=False, compare=False)
    rows: list[dict[str, Any]] | None = None
    """What the query returns of what it has written, as JSON would have it."""

    def __repr__(self) -> str:
        changed = _entities(self.affected_nodes, self.affected_edges)
        told = f"<MutationResult on {self.branch}: {changed}, {_made(self.commit)}>"
        return "\n".join([told, *(f"warning: {warning}" for warning in self.warnings)])


@dataclass(frozen=True, slots=True)
class BulkWork:
    """What a bulk load took: files written, and seconds by stage in their order.

    ``tasks`` has the seconds of every task of a stage.
    """

    fragments: int
    bytes: int
    seconds: Mapping[str, float]
    log_file: str | None = None
    tasks: Mapping[str, Sequence[float]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TypeChanges:
    """What a load does to the rows of one type.

    ``emptied`` counts the stored rows that go because their type is overwritten.
    """

    inserted: int = 0
    replaced: int = 0
    patched: int = 0
    emptied: int = 0

    @classmethod
    def of(cls, mode: str, written: int, existing: int, stored: int) -> TypeChanges:
        """So many rows are written, so many of them exist, of so many that are stored."""
        if mode == "overwrite":
            return cls(inserted=written, emptied=stored)
        changed = {"patched" if mode == "patch" else "replaced": existing}
        return cls(inserted=written - existing, **changed)

    def __str__(self) -> str:
        counts = (
            (self.inserted, "inserted"),
            (self.replaced, "replaced"),
            (self.patched, "patched"),
            (self.emptied, "emptied"),
        )
        told = [f"{count:,} {what}" for count, what in counts if count]
        return ", ".join(told) or "nothing"


@dataclass(frozen=True, slots=True)
class RejectSample:
    """One of the rows that were left out."""

    code: str
    file: str | None
    line: int
    message: str
    raw: str


@dataclass(frozen=True, slots=True, repr=False)
class LoadResult:
    """What a load did; ``nodes`` and ``edges`` count the accepted input rows of each type.

    ``published`` is None for a dry run. With ``repeats_run`` it was done before, by an earlier
    load with the same run id. ``rejects`` counts the rows that were left out, by code. What the
    ``work`` took is known of the load that did it, and so are the ``changes`` by type key. Some
    of the rows left out are ``samples``, if a report was asked for.
    """

    branch: str
    mode: str
    nodes: Mapping[str, int]
    edges: Mapping[str, int]
    published: Commit | None
    actor: str | None = None
    base_branch: str | None = None
    branch_created: bool = False
    rejects: Mapping[str, int] = field(default_factory=dict)
    rejects_file: str | None = None
    engine: str = "inline"
    is_dry_run: bool = False
    repeats_run: bool = field(default=False, compare=False)
    work: BulkWork | None = field(default=None, compare=False)
    changes: Mapping[str, TypeChanges] = field(default_factory=dict, compare=False)
    samples: tuple[RejectSample, ...] = field(default=(), compare=False)

    @property
    def commit(self) -> Commit:
        """The commit it made; a dry run has none."""
        if self.published is None:
            raise BadRequest("a dry run makes no commit: ask for `published` instead")
        return self.published

    @property
    def rejected(self) -> int:
        """All rows that were left out."""
        return sum(self.rejects.values())

    @property
    def total(self) -> int:
        """All input rows."""
        return sum(self.nodes.values()) + sum(self.edges.values())

    def __repr__(self) -> str:
        rejected = f", {self.rejected:,} rejected" if self.rejected else ""
        rows = _entities(sum(self.nodes.values()), sum(self.edges.values())) + rejected
        made = "a dry run" if self.is_dry_run else _made(self.published)
        return f"<{type(self).__name__} on {self.branch}: {rows}, {made}>"


@dataclass(frozen=True, slots=True)
class StepResult:
    """What one step of a pipeline did; ``name`` is None where there are no steps.

    ``checks`` are those that have found nothing.
    """

    name: str | None
    load: LoadResult
    checks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class PipelineResult(LoadResult):
    """What a pipeline did: the counts of all its steps, the rest as of the last."""

    steps: tuple[StepResult, ...] = ()


@dataclass(frozen=True, slots=True)
class TableOutcome:
    """The version of a table before and after; the same when nothing became visible."""

    table_key: str
    from_version: int
    to_version: int


@dataclass(frozen=True, slots=True)
class Recovery:
    """What became of a write that did not finish; times are µs since the epoch.

    ``graph_commit_id`` is the commit that it had planned, ``created_at`` when it was recovered.
    """

    graph_commit_id: str
    recovery_kind: RecoveryKind
    recovery_for_actor: str | None
    operation_id: str
    writer_kind: str
    tables: tuple[TableOutcome, ...]
    created_at: int


def _entities(nodes: int, edges: int) -> str:
    return f"{counted(nodes, 'node')}, {counted(edges, 'edge')}"


def _made(commit: Commit | None) -> str:
    """The commit of a write, in words."""
    return "no commit" if commit is None else f"commit {commit.id}"
