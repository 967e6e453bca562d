"""The change feed as a stream of Spark: offsets are cursors, and a task reads a commit.

Owns the options, the columns, and which commits make a micro-batch. A cursor names a commit and
commits never change, so a batch that is played again has the same rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec
import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StringType, StructField, StructType, TimestampType

from omnigraph.errors import BadRequest, ChangeFeedGap, NotFound
from omnigraph.history.changes import Cause, Change, ChangeFilter, Filters, Image
from omnigraph.history.feed import Feed, open_block
from omnigraph.lang.diagnostics import name_hint
from omnigraph.manifest.branches import normalise_branch
from omnigraph.manifest.entries import MAIN
from omnigraph.manifest.store import GraphHandle, Manifest
from omnigraph.storage.objects.location import Location

OPTION = "changes"
"""The option that makes a stream of the source, and says where it begins."""
MAX_COMMITS = 128
ROWS = 4_096
_LISTS = ("kinds", "types", "ops")
_OPTIONS = ("path", "branch", OPTION, "max_commits", *_LISTS)
_STARTS = ("now", "beginning")
_CURSOR = "cursor"

_TEXTS = ("kind", "type", "id", "op", "src", "dst", "before", "after")
_OPTIONAL = ("actor", "src", "dst", "before", "after")
SCHEMA = StructType(
    [
        StructField("commit", StringType(), nullable=False),
        StructField("committed_at", TimestampType(), nullable=False),
        StructField("actor", StringType()),
        *(StructField(name, StringType(), name in _OPTIONAL) for name in _TEXTS),
    ]
)
_ARROW = pa.schema(
    [
        pa.field("commit", pa.string(), nullable=False),
        pa.field("committed_at", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("actor", pa.string()),
        *(pa.field(name, pa.string(), nullable=name in _OPTIONAL) for name in _TEXTS),
    ]
)


@dataclass(frozen=True)
class _CommitPart(InputPartition):
    """The changes from one commit to the next."""

    parent: str
    commit: str
    wanted: ChangeFilter


class ChangeReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads the commits of a branch, in their order."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._root, self._branch = _place(options)
        self._start = options[OPTION]
        self._most = _max_commits(options)
        chosen = {name: _names(options.get(name)) for name in _LISTS}
        self._filters = Filters(**chosen)
        self._end: str | None = None
        # What cannot be followed is told before the query runs.
        self.initialOffset()

    @property
    def _feed(self) -> Feed:
        graph = GraphHandle(self._root, Manifest(self._root), read_only=True)
        # Whoever reads the files of a graph reads all of it.
        return Feed(graph, lambda shown, _: shown)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Where a query begins that has no checkpoint."""
        if self._start in _STARTS or self._start.startswith("after:"):
            return {_CURSOR: self._feed.cursor_at(self._branch, self._filters, self._start)}
        return {_CURSOR: self._feed.ahead(self._branch, self._filters, self._start, 0)}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """So many commits at once; Spark has no word for those."""
        return ReadMaxFiles(self._most)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """How far the next batch goes: never into commits that came after a query's end."""
        if self._end is not None and start[_CURSOR] == self._end:
            return start
        most = limit.max_files if isinstance(limit, ReadMaxFiles) else None
        feed = self._feed
        cursor = feed.ahead(self._branch, self._filters, start[_CURSOR], most)
        if self._end is None:
            return {_CURSOR: cursor}
        left = len(feed.between(self._branch, self._filters, start[_CURSOR], self._end)[0])
        return {_CURSOR: cursor if most is not None and most < left else self._end}

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """The head of the branch."""
        return {_CURSOR: self._feed.cursor_at(self._branch, self._filters, "now")}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """What is there now is all there is for this query."""
        self._end = self._feed.cursor_at(self._branch, self._filters, "now")

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """A task for each commit."""
        pairs, wanted = self._feed.between(
            self._branch, self._filters, start[_CURSOR], end[_CURSOR]
        )
        return [_CommitPart(before.id, after.id, wanted) for before, after in pairs]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The changes of a commit, in the order of the feed."""
        if not isinstance(partition, _CommitPart):
            return
        manifest = Manifest(self._root)
        try:
            commit = manifest.find_commit(partition.commit)
            before = manifest.view_at(manifest.find_commit(partition.parent)).snapshot
        except NotFound as error:
            raise ChangeFeedGap(
                f"cleanup has reclaimed commit {partition.parent}: what came after it cannot be"
                " told any more; begin again with a new checkpoint",
                details={"first_unreadable_commit_id": partition.parent},
            ) from error
        after = manifest.view_at(commit).snapshot
        changes = iter(open_block(before, after, partition.wanted))
        while some := list(islice(changes, ROWS)):
            yield _batch(Cause.of(commit), some)


def _batch(cause: Cause, changes: Iterable[Change]) -> pa.RecordBatch:
    rows = [
        {
            "commit": cause.graph_commit_id,
            "committed_at": cause.authored_at,
            "actor": cause.actor_id,
            "kind": one.kind,
            "type": one.type.name,
            "id": one.id,
            "op": one.op,
            "src": None if one.endpoints is None else one.endpoints.source,
            "dst": None if one.endpoints is None else one.endpoints.target,
            "before": _text(one.before),
            "after": _text(one.after),
        }
        for one in changes
    ]
    return pa.RecordBatch.from_pylist(rows, _ARROW)


def _text(image: Image | None) -> str | None:
    return None if image is None else msgspec.json.encode(image.properties).decode()


# -- options -----------------------------------------------------------------------


def require_stream(options: Mapping[str, str]) -> StructType:
    """The columns of a stream with these options; what is wrong with them is told."""
    for name in options:
        if name.lower() not in _OPTIONS:
            hint = name_hint(name, _OPTIONS[1:])
            raise BadRequest(f"a stream has no option {name}" + (f": {hint}" if hint else ""))
    _place(options)
    _max_commits(options)
    return SCHEMA


def _place(options: Mapping[str, str]) -> tuple[Location, str]:
    if not options.get("path"):
        raise BadRequest("which graph? give its path or URI to load(…)")
    return Location.parse(options["path"]), normalise_branch(options.get("branch") or MAIN)


def _max_commits(options: Mapping[str, str]) -> int:
    text = options.get("max_commits", str(MAX_COMMITS))
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise BadRequest(f"max_commits is a number of commits from 1 on, found {text!r}")
    return int(text)


def _names(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",")]
