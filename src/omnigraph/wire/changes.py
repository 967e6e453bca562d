"""What has changed: the changes of a commit, the change feed, diffs and baselines.

Owns the names of these bodies, also of those that are written while they are found: an
answer of any length is never held as a whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from msgspec import convert, field

from omnigraph.wire.body import Body, LazyObject
from omnigraph.wire.graphs import EntityKind

if TYPE_CHECKING:
    from omnigraph.history.baseline import Baseline
    from omnigraph.history.changes import Cause, Change, ChangeBlock, Image
    from omnigraph.history.diff import Diff, TypeStats
    from omnigraph.history.feed import CommitChanges, FeedPage

Op = Literal["insert", "update", "delete"]


class EndpointsBody(Body, frozen=True):
    """The ids of the two nodes of an edge, and their types where these may be several."""

    from_: str = field(name="from")
    to: str
    from_type: str | None = None
    to_type: str | None = None


class ImageBody(Body, frozen=True):
    """What an entity said: its properties as a query result spells them, and an edge's ends."""

    properties: dict[str, Any]
    endpoints: EndpointsBody | None = None

    @classmethod
    def of(cls, image: Image) -> ImageBody:
        """An image that is there."""
        ends = image.endpoints
        if ends is None:
            return cls(dict(image.properties))
        told = EndpointsBody(ends.source, ends.target, ends.source_type, ends.target_type)
        return cls(dict(image.properties), told)

    @classmethod
    def of_any(cls, image: Image | None) -> ImageBody | None:
        """One side of a change, which has none where there was no entity."""
        return None if image is None else cls.of(image)


class TypeBody(Body, frozen=True):
    """The type of an entity; `id` survives a rename and is new after a drop."""

    id: str
    name: str


class ChangeBody(Body, frozen=True):
    """One changed entity of a commit."""

    kind: EntityKind
    type: TypeBody
    id: str
    op: Op
    before: ImageBody | None = None
    after: ImageBody | None = None

    @classmethod
    def of(cls, change: Change) -> ChangeBody:
        """The change with the images there are."""
        return cls(
            change.kind,
            TypeBody(change.type.id, change.type.name),
            change.id,
            change.op,
            ImageBody.of_any(change.before),
            ImageBody.of_any(change.after),
        )


class CauseBody(Body, frozen=True, kw_only=True):
    """The commit that made some changes; `authored_at` is µs since the epoch."""

    graph_commit_id: str
    parent_commit_id: str | None = None
    merged_parent_commit_id: str | None = None
    authored_branch: str
    actor_id: str | None = None
    authored_at: int

    @classmethod
    def of(cls, cause: Cause) -> CauseBody:
        """The cause; what it does not have is left out."""
        return convert(cause, cls, from_attributes=True)


class BlockBody(Body, frozen=True):
    """Changes of one commit: all of them, or those that one page had room for.

    A page of a single commit has the token of the next one, unless it is the last.
    """

    cause: CauseBody
    changes: list[ChangeBody]
    next_page_token: str | None = None

    @classmethod
    def of(cls, block: ChangeBlock | CommitChanges) -> BlockBody:
        """A block of the feed, which has no token, or a page of a commit."""
        changes = [ChangeBody.of(change) for change in block.changes]
        token: str | None = getattr(block, "next_page_token", None)
        return cls(CauseBody.of(block.cause), changes, token)


class FeedBody(Body, frozen=True):
    """A page of the feed: inside a block only a page token, otherwise where the reader stands."""

    blocks: list[BlockBody]
    next_page_token: str | None = None
    cursor: str | None = None
    caught_up: bool | None = None

    @classmethod
    def of(cls, page: FeedPage) -> FeedBody:
        """The page as a whole."""
        blocks = [BlockBody.of(block) for block in page.blocks]
        if page.next_page_token is not None:
            return cls(blocks, page.next_page_token)
        return cls(blocks, cursor=page.cursor, caught_up=page.caught_up)


class BaselineBody(Body, frozen=True):
    """What a reader needs to go on from a baseline."""

    snapshot_commit_id: str
    resume_cursor: str

    @classmethod
    def of(cls, baseline: Baseline) -> BaselineBody:
        """The handshake of a baseline that was written."""
        return cls(baseline.snapshot_commit_id, baseline.resume_cursor)


# -- diffs -------------------------------------------------------------------------------


class DiffEndpointsBody(Body, frozen=True):
    """The ids of the two nodes of an edge, as they are now or were last."""

    src: str
    dst: str


class DiffChangeBody(Body, frozen=True):
    """One entity that differs; `changed` names the properties in which an update does."""

    kind: EntityKind
    type_name: str
    id: str
    op: Op
    published_dataset_version: int
    endpoints: DiffEndpointsBody | None = None
    changed: list[str] | None = None
    before: ImageBody | None = None
    after: ImageBody | None = None

    @classmethod
    def of(cls, change: Change, version: int) -> DiffChangeBody:
        """The change, and the version of the table that shows it."""
        ends = change.endpoints
        return cls(
            change.kind,
            change.type.name,
            change.id,
            change.op,
            version,
            None if ends is None else DiffEndpointsBody(ends.source, ends.target),
            list(change.changed) if change.op == "update" else None,
            ImageBody.of_any(change.before),
            ImageBody.of_any(change.after),
        )


class StatsBody(Body, frozen=True):
    """How many entities of a type differ, and how."""

    kind: EntityKind
    type_name: str
    inserted: int
    updated: int
    deleted: int

    @classmethod
    def of(cls, counted: TypeStats) -> StatsBody:
        """The counts of one type."""
        return convert(counted, cls, from_attributes=True)


class DiffBody(Body, frozen=True, kw_only=True):
    """The net differences between two states; only counted, they have no `changes`.

    `schema` is the plan that leads from the one schema to the other, where they differ.
    """

    from_graph_manifest_version: int
    to_graph_manifest_version: int
    schema: dict[str, Any] | None = None
    changes: list[DiffChangeBody] | None = None
    stats: list[StatsBody]

    @classmethod
    def of(cls, found: Diff, *, only_stats: bool = False) -> DiffBody:
        """All differences, or how many there are."""
        changes = (DiffChangeBody.of(change, found.version_of(change)) for change in found)
        return cls(
            from_graph_manifest_version=found.from_version,
            to_graph_manifest_version=found.to_version,
            schema=_schema_body(found),
            changes=None if only_stats else list(changes),
            stats=[StatsBody.of(counted) for counted in found.stats],
        )


def _schema_body(found: Diff) -> dict[str, Any] | None:
    plan = found.schema
    return plan.to_json() if plan.steps else None


# -- written while they are found --------------------------------------------------------


def streamed_block(
    cause: Cause, changes: Iterable[Change], next_page_token: str | None = None
) -> LazyObject:
    """A `BlockBody` of any length."""
    members: list[tuple[str, Any]] = [("cause", CauseBody.of(cause))]
    members.append(("changes", map(ChangeBody.of, changes)))
    if next_page_token is not None:
        members.append(("next_page_token", next_page_token))
    return LazyObject(members)


def streamed_feed(
    blocks: Iterable[tuple[Cause, Iterable[Change]]], last_page: Callable[[], FeedPage]
) -> LazyObject:
    """A `FeedBody` of any length; the last page is asked for when all blocks are written."""

    def members() -> Iterator[tuple[str, Any]]:
        yield "blocks", (streamed_block(cause, changes) for cause, changes in blocks)
        yield "cursor", last_page().cursor
        yield "caught_up", last_page().caught_up

    return LazyObject(members())


def streamed_diff(found: Diff) -> LazyObject:
    """A `DiffBody` of any length; the counts come last, for they are made on the way."""
    counts: dict[tuple[EntityKind, str], Counter[Op]] = {}

    def changes() -> Iterator[DiffChangeBody]:
        for change in found:
            counts.setdefault((change.kind, change.type.name), Counter())[change.op] += 1
            yield DiffChangeBody.of(change, found.version_of(change))

    def stats() -> Iterator[StatsBody]:
        for (kind, name), counted in counts.items():
            yield StatsBody(kind, name, counted["insert"], counted["update"], counted["delete"])

    schema = _schema_body(found)
    return LazyObject(
        [
            ("from_graph_manifest_version", found.from_version),
            ("to_graph_manifest_version", found.to_version),
            *([] if schema is None else [("schema", schema)]),
            ("changes", changes()),
            ("stats", stats()),
        ]
    )
