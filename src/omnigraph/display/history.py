"""History as notebooks show it: commits, what is different, merges and their conflicts.

Owns which columns these have. Shows what it is given and asks nobody.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol, SupportsIndex, TypeVar, overload

from omnigraph.display.markup import (
    SHOWN,
    Html,
    counted,
    cut,
    element,
    first_of,
    joined,
    moment,
    paragraph,
    table,
)


class ShownCommit(Protocol):
    """A commit."""

    @property
    def id(self) -> str:
        """Which one."""

    @property
    def branch(self) -> str | None:
        """Where it was made, None for main."""

    @property
    def actor(self) -> str | None:
        """Who made it."""

    @property
    def created_at(self) -> int:
        """When, in µs since the epoch."""

    @property
    def message(self) -> str | None:
        """What was said about it."""

    @property
    def metadata(self) -> Mapping[str, Any]:
        """What it notes."""


CommitType = TypeVar("CommitType", bound=ShownCommit)


class Commits(list[CommitType]):
    """A list of commits, which a notebook shows as a log."""

    @overload
    def __getitem__(self, place: SupportsIndex) -> CommitType: ...

    @overload
    def __getitem__(self, place: slice) -> Commits[CommitType]: ...

    def __getitem__(self, place: SupportsIndex | slice) -> CommitType | Commits[CommitType]:
        if isinstance(place, slice):
            return Commits(super().__getitem__(place))
        return super().__getitem__(place)

    def __repr__(self) -> str:
        lines = [f"{counted(len(self), 'commit')}", *map(repr, self[:SHOWN])]
        more = len(self) - SHOWN
        return "\n".join([*lines, f"… and {more:,} more"] if more > 0 else lines)

    def _repr_html_(self) -> str:
        heads = ("commit", "when", "by", "on", "what")
        rows = (_commit_cells(one) for one in self[:SHOWN])
        told = paragraph(counted(len(self), "commit"))
        return joined([told, table(heads, rows), first_of(len(self), "commit")])


def commit_text(commit: ShownCommit) -> str:
    """A commit in one line."""
    by = "" if commit.actor is None else f" by {cut(commit.actor, 40)}"
    what = _what(commit)
    told = f": {cut(' '.join(what.split()), 80)}" if what else ""
    return (
        f"<Commit {commit.id} on {commit.branch or 'main'}{by}, {moment(commit.created_at)}{told}>"
    )


def commit_html(commit: ShownCommit) -> Html:
    """A commit as a table of one."""
    return table(("commit", "when", "by", "on", "what"), [_commit_cells(commit)])


def _commit_cells(commit: ShownCommit) -> tuple[object, ...]:
    by = "" if commit.actor is None else cut(commit.actor)
    when = moment(commit.created_at)
    return element("code", commit.id), when, by, commit.branch or "main", cut(_what(commit))


def _what(commit: ShownCommit) -> str:
    """What somebody said of a commit, else what kind of change it was."""
    return commit.message or str(commit.metadata.get("operation", "")).replace("_", " ")


# -- differences -------------------------------------------------------------------------


class ShownStats(Protocol):
    """How many entities of a type differ."""

    @property
    def kind(self) -> str:
        """Of nodes or edges."""

    @property
    def type_name(self) -> str:
        """Of which type."""

    @property
    def inserted(self) -> int:
        """Those that are new."""

    @property
    def updated(self) -> int:
        """Those that say something else."""

    @property
    def deleted(self) -> int:
        """Those that are gone."""


class ShownType(Protocol):
    """The type of what changed."""

    @property
    def name(self) -> str:
        """What it is called."""


class ShownChange(Protocol):
    """An entity that changed."""

    @property
    def type(self) -> ShownType:
        """Its type."""

    @property
    def id(self) -> str:
        """Which one."""

    @property
    def op(self) -> str:
        """What happened to it."""

    @property
    def changed(self) -> Sequence[str]:
        """The properties that say something else."""

    def was(self, name: str) -> Any:
        """What a property said before."""

    def now(self, name: str) -> Any:
        """What it says now."""


def diff_html(
    heading: str, stats: Sequence[ShownStats], changes: Iterable[ShownChange], plan: str
) -> Html:
    """What is different: how much of each type, the first changes, and the schema."""
    total = sum(one.inserted + one.updated + one.deleted for one in stats)
    parts = [paragraph(f"{heading}: {counted(total, 'change')}")]
    if plan:
        parts += [paragraph("schema"), Html(plan)]
    if stats:
        counts = [
            (
                one.kind,
                one.type_name,
                f"+{one.inserted:,}",
                f"~{one.updated:,}",
                f"-{one.deleted:,}",
            )
            for one in stats
        ]
        heads = ("kind", "type", "inserted", "updated", "deleted")
        rows = [
            (one.op, one.type.name, cut(one.id), _updates(one)) for one in islice(changes, SHOWN)
        ]
        parts += [table(heads, counts, numbers=(2, 3, 4)), table(("", "type", "id", "what"), rows)]
        parts.append(first_of(total, "change"))
    return joined(parts)


def _updates(change: ShownChange) -> str:
    told = (
        f"{name}: {cut(_value(change.was(name)), 60)} → {cut(_value(change.now(name)), 60)}"
        for name in change.changed
    )
    return cut("; ".join(told))


def _value(value: object) -> str:
    return "null" if value is None else str(value)


# -- merges ------------------------------------------------------------------------------


class ShownConflict(Protocol):
    """A place where two branches disagree."""

    @property
    def kind(self) -> str:
        """In which way."""

    @property
    def type_name(self) -> str:
        """Of which type."""

    @property
    def entity_id(self) -> str:
        """Of which entity; empty for schemas."""

    @property
    def message(self) -> str:
        """What to know of it."""

    @property
    def base(self) -> Any:
        """What both began with."""

    @property
    def source(self) -> Any:
        """What the one says."""

    @property
    def target(self) -> Any:
        """What the other says."""

    @property
    def property(self) -> str | None:
        """In which property; the last here, for it takes the word for what follows."""


def conflicts_html(conflicts: Collection[ShownConflict]) -> Html:
    """Conflicts side by side, and what settles them."""
    heads = ("kind", "entity", "property", "base", "source", "target")
    rows = (
        (
            conflict.kind,
            f"{conflict.type_name}:{cut(conflict.entity_id)}".removesuffix(":"),
            conflict.property or "",
            *(cut(_value(side)) for side in (conflict.base, conflict.source, conflict.target)),
        )
        for conflict in islice(conflicts, SHOWN)
    )
    told = paragraph(
        f"{counted(len(conflicts), 'conflict')}; ",
        element("code", 'resolve="source"'),
        " or ",
        element("code", '"target"'),
        " takes a side, and a mapping one for each kind or entity",
    )
    return joined([told, table(heads, rows), first_of(len(conflicts), "conflict")])


class ShownCounts(Protocol):
    """What a merge does to a type."""

    @property
    def inserted(self) -> int:
        """Rows that come."""

    @property
    def updated(self) -> int:
        """Rows that change."""

    @property
    def deleted(self) -> int:
        """Rows that go."""

    @property
    def combined(self) -> int:
        """Rows that mix both sides."""


def merge_html(
    heading: str,
    counts: Mapping[str, ShownCounts],
    commit: ShownCommit | None,
    *,
    standing: Collection[ShownConflict],
    settled: Sequence[tuple[ShownConflict, str]],
    plan: str,
) -> Html:
    """What became of a merge."""
    parts = [paragraph(heading)]
    if commit is not None:
        parts.append(commit_html(commit))
    if plan:
        parts += [paragraph("schema"), Html(plan)]
    if counts:
        rows = [
            (key, *(f"{n:,}" for n in (one.inserted, one.updated, one.deleted, one.combined)))
            for key, one in counts.items()
        ]
        heads = ("type", "inserted", "updated", "deleted", "combined")
        parts.append(table(heads, rows, numbers=range(1, 5)))
    if standing:
        parts.append(conflicts_html(standing))
    won = [
        (one.kind, f"{one.type_name}:{cut(one.entity_id)}", one.property or "", side)
        for one, side in settled
    ]
    if won:
        parts += [
            table(("settled", "entity", "property", "winner"), won[:SHOWN]),
            first_of(len(won), "settled conflict"),
        ]
    return joined(parts)
