"""Embedding what is stored: `@embed` vectors that are missing, or to be made anew.

Owns the backfill of one type as one commit, or as one for so many rows, so that whoever starts it
again goes on where it has ended. In this process nothing is written before every vector of a
commit is made; tasks elsewhere write their rows themselves. Memory is bounded either way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.embed.providers import embedder_of
from omnigraph.errors import BadRequest
from omnigraph.lang.query.values import statement_time
from omnigraph.lang.structural import ID
from omnigraph.manifest.entries import Commit
from omnigraph.manifest.publish_request import PendingCommit
from omnigraph.manifest.snapshot import find_commit
from omnigraph.rows.external_sort import Spool
from omnigraph.storage.tables.fragments import FragmentPart, layout_of
from omnigraph.storage.tables.table import ROW_ADDRESS, Table
from omnigraph.storage.tables.version_diff import fragment_delta
from omnigraph.storage.tables.write_rows import WrittenRows, write_streams
from omnigraph.write.change.change_set import type_key
from omnigraph.write.change.protocol import Change, Effects, WriteOutcome, WriteTxn
from omnigraph.write.embedded_rows import (
    EmbeddedRows,
    EmbedJob,
    EmbedPass,
    EmbedWork,
    embedded_schema,
    write_embedded,
)
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.driver import Target, run
from omnigraph.write.publish.failpoints import reach
from omnigraph.write.publish.read_set import RecordedRead, WholeTable
from omnigraph.write.publish.staged_files import delete_files
from omnigraph.write.publish.staging import commit_rows
from omnigraph.write.recovery.intents import WriterKind

TASK_ROWS = 100_000
"""About so many rows are one task's, in whole files."""
_Job = TypeVar("_Job")
_Made = TypeVar("_Made")


class Workers(Protocol):
    """Who embeds elsewhere, if that is worth it."""

    def takes(self, rows: int) -> bool:
        """Whether so many rows are theirs."""

    def run(
        self, title: str, function: Callable[[_Job], _Made], jobs: Sequence[_Job], rows: int
    ) -> Iterable[_Made]:
        """What a function makes of every job, in their order; in all, they read so many rows."""


@dataclass(frozen=True, slots=True)
class EmbedResult:
    """What a backfill did: how many vectors of each property are new.

    ``rows`` counts the nodes. The commit is None when nothing changed.
    """

    branch: str
    type_name: str
    vectors: Mapping[str, int]
    rows: int
    actor: str | None
    commit: Commit | None

    @property
    def embedding(self) -> Mapping[str, str] | None:
        """The provider and the model that made them."""
        return None if self.commit is None else self.commit.metadata["embedding"]


@dataclass(frozen=True, slots=True)
class RowsUnchanged:
    """A claim: the rows that get vectors are those that they were made from."""

    type_key: str
    addresses: npt.NDArray[np.uint64] = field(compare=False)

    def holds(self, before: Base, after: Base) -> bool:
        """Whether nobody has changed or deleted one of them; other rows do not matter."""
        if RecordedRead(self.type_key, WholeTable()).holds(before, after):
            return True
        old, new = before.table(self.type_key), after.table(self.type_key)
        same = old.identity == new.identity
        return same and fragment_delta(old.table, new.table).has_same(self.addresses)


@dataclass(frozen=True, slots=True)
class _Filled:
    """The rows that have new vectors, here or in files already, and where those lie that go."""

    type_key: str
    rows: Spool | WrittenRows
    replaced: pa.Table


@dataclass(slots=True)
class Backfill(Change[EmbedResult]):
    """One commit of a backfill; ``embedding`` is None for what the environment says.

    ``where`` chooses nodes as in a mutation. Without a ``property``, all that have `@embed`
    are meant. With ``commit_rows`` only the next files are looked at that have so many rows,
    beginning with the fragment ``first``; ``following`` is the one to go on with, if any.
    """

    kind: ClassVar[WriterKind] = "Mutation"

    type_name: str
    property: str | None = None
    where: str | None = None
    only_missing: bool = True
    actor: str | None = None
    embedding: EmbedderConfig | None = None
    workers: Workers | None = None
    commit_rows: int | None = None
    first: int = 0
    notes: dict[str, Any] = field(init=False)
    commit: PendingCommit = field(init=False)
    following: int | None = field(init=False, default=None)
    vectors: dict[str, int] = field(init=False, default_factory=dict)
    rows: int = field(init=False, default=0)
    _filled: _Filled | None = field(init=False, default=None)
    _base: Base | None = field(init=False, default=None)
    _files: list[tuple[str, str]] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        self.notes = {"operation": "embed"}
        self.commit = PendingCommit.mint(self.actor)

    def result(self, written: WriteOutcome) -> EmbedResult:
        """How many vectors are new."""
        return EmbedResult(
            written.branch, self.type_name, self.vectors, self.rows, self.actor, written.commit
        )

    def prepare(self, txn: WriteTxn) -> bool:
        """Make all vectors of the base that are wanted."""
        work = EmbedWork(
            txn.base.catalog,
            self.type_name,
            self.property,
            self.where,
            self.only_missing,
            statement_time(),
            self.embedding,
        )
        names = work.names
        key = type_key(work.node)
        table = txn.base.table(key).table
        parts = self._parts(table)
        rows = table.pin.row_count if parts is None else sum(part.rows for part in parts)
        if self.workers is not None and rows and self.workers.takes(rows):
            self._filled = self._elsewhere(txn, EmbedJob(work, table, parts), key, rows)
        else:
            self._filled = self._here(EmbedJob(work, table, parts), key)
        self.vectors = {name: self.vectors.get(name, 0) for name in names}
        self.rows = self._filled.replaced.num_rows
        if not self.rows:
            return False
        addresses = self._filled.replaced.column(ROW_ADDRESS).to_numpy()
        txn.reads.claim(RowsUnchanged(key, addresses))
        return True

    def _parts(self, table: Table) -> tuple[FragmentPart, ...] | None:
        """The files to be looked at; None for all of them."""
        self.following = None
        if self.commit_rows is None:
            return None
        chosen: list[FragmentPart] = []
        rows = 0
        # What is written meanwhile, by us and by others, has higher numbers and is found there.
        for part in layout_of(table).parts:
            if part.number < self.first:
                continue
            if rows >= self.commit_rows:
                self.following = part.number
                break
            chosen.append(part)
            rows += part.rows
        return tuple(chosen)

    def _here(self, job: EmbedJob, key: str) -> _Filled:
        """Make the vectors in this process, and write nothing yet."""
        embedder = embedder_of(self.embedding)
        looking = EmbedPass(job, embedder)
        spool = Spool(embedded_schema(job.table))
        gone: list[pa.Table] = []
        for filled in looking.rows():
            spool.add(filled.drop_columns([ROW_ADDRESS]))
            gone.append(filled.select([ID, ROW_ADDRESS]))
        self.vectors = dict(looking.vectors)
        self._note(embedder.used)
        return _Filled(key, spool, _together(gone))

    def _elsewhere(self, txn: WriteTxn, job: EmbedJob, key: str, rows: int) -> _Filled:
        """Have tasks make the vectors and write the rows; what earlier ones wrote goes."""
        workers, files = self.workers, txn.files
        if workers is None:
            raise AssertionError("somebody has to do it")
        if self._base is not None:
            delete_files(self._base, self._files)
            self._files.clear()
        self._base = txn.base
        files.begin([key], txn.base)
        # What the environment says here need not be what it says there.
        config = self.embedding or EmbedderConfig.of_environment()
        work = replace(job.work, embedding=config)
        parts = layout_of(job.table).parts if job.parts is None else job.parts
        jobs = [EmbedJob(work, job.table, group) for group in _groups(parts)]
        made: list[EmbeddedRows] = []
        for one in workers.run("embedding", write_embedded, jobs, rows):
            made.append(one)
            self._files += [(key, name) for name in one.written.files]
            files.name({key: one.written.files}, txn.base)
            reach("rows_written", key)
        vectors: Counter[str] = Counter()
        for one in made:
            vectors.update(one.vectors)
        self.vectors = dict(vectors)
        self._note(next((one.used for one in made if one.used), None))
        written = WrittenRows(
            tuple(text for one in made for text in one.written.fragments),
            tuple(row_id for one in made for row_id in one.written.row_ids),
            sum(one.written.count for one in made),
        )
        return _Filled(key, written, _together([gone for one in made for gone in one.replaced]))

    def _note(self, used: Mapping[str, str] | None) -> None:
        self.notes = {"operation": "embed"} | ({} if used is None else {"embedding": used})

    def stage(self, txn: WriteTxn) -> Effects:
        """Put the rows that have new vectors in place of those that had none."""
        filled = self._filled
        if filled is None:
            raise AssertionError("vectors are made before they are written")
        base, files, key = txn.base, txn.files, filled.type_key
        found, rows = base.table(key), filled.rows
        if isinstance(rows, WrittenRows):
            return (commit_rows(found, rows, files.stamp(), filled.replaced),)
        files.begin([key], base, rows.size)
        written = write_streams(found.table, rows.tables(), ())
        files.name({key: written.files}, base)
        reach("rows_written", key)
        return (commit_rows(found, written, files.stamp(), filled.replaced),)

    def discard(self, txn: WriteTxn) -> None:
        """Delete what tasks have written; nobody needs the intent then."""
        if self._files and find_commit(txn.base.view, self.commit.id) is None:
            delete_files(txn.base, self._files)
            txn.files.close()


def backfill(first: Backfill, target: Target) -> EmbedResult:
    """Run a backfill, commit by commit; what was committed stays, whatever becomes of the rest.

    The result is that of all of them, with the last commit.
    """
    if first.commit_rows is not None:
        if first.commit_rows < 1:
            raise BadRequest("a commit has at least one row: give commit_rows more than 0")
        if not first.only_missing:
            raise BadRequest(
                "vectors that are there are made again in one commit: nobody could tell, after "
                "some of several, which are new; leave commit_rows out, or only_missing"
            )
    done = run(first, target)
    vectors = Counter(done.vectors)
    following = first.following
    while following is not None:
        change = replace(first, first=following)
        one = run(change, target)
        vectors.update(one.vectors)
        done = replace(one, rows=done.rows + one.rows, commit=one.commit or done.commit)
        following = change.following
    return replace(done, vectors={name: vectors[name] for name in done.vectors})


def _together(tables: Sequence[pa.Table]) -> pa.Table:
    empty = pa.schema([pa.field(ID, pa.string()), pa.field(ROW_ADDRESS, pa.uint64())]).empty_table()
    return pa.concat_tables(tables) if tables else empty


def _groups(parts: Iterable[FragmentPart]) -> list[tuple[FragmentPart, ...]]:
    """Files that one task looks at together."""
    groups: list[list[FragmentPart]] = []
    rows = TASK_ROWS
    for part in parts:
        if rows >= TASK_ROWS:
            groups.append([])
            rows = 0
        groups[-1].append(part)
        rows += part.rows
    return [tuple(group) for group in groups]
