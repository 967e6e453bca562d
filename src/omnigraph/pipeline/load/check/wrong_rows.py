"""Wrong rows: which rows of some fragments have the keys that a range has found, and what is said.

Owns finding them where the keys were cut, by reading the keys once more: only fragments in which
something was found are read. Rows are listed in files; who asked is told how many there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Rule
from omnigraph.lang.schema.catalog import EdgeType
from omnigraph.lang.structural import ID
from omnigraph.pipeline.load.check.cuts import FIRST, HOLDER, KEY, LAST
from omnigraph.pipeline.load.check.key_source import KeySource, RowList, rows_at
from omnigraph.pipeline.load.check.ranges import EDGES
from omnigraph.pipeline.load.stage.area import StagingArea
from omnigraph.storage.tables.table import ROW_ADDRESS
from omnigraph.write.change.change_set import EntityType, key_texts
from omnigraph.write.rules.edges import cardinality_text, endpoint_text
from omnigraph.write.rules.uniqueness import Constraint, key_text

MESSAGE, ENTITY, RULE = "message", "entity", "rule"
WRONG = pa.schema([(ROW_ADDRESS, pa.uint64()), (MESSAGE, pa.string()), (ENTITY, pa.string())])

Which = Literal["all", "others", "earlier", "named"]
"""Of the rows of a key: all, those that are not the first, not the last, or the one named."""


@dataclass(frozen=True, slots=True)
class SetRule:
    """A rule, and where it stands among those of its load: the first one broken is told."""

    order: int
    code: Rule
    type_key: str
    property: str


class Wording(Protocol):
    """What is said about wrong rows."""

    @property
    def columns(self) -> tuple[str, ...]:
        """What must be known of the rows beside their ids."""

    def say(self, found: pa.Table, rows: pa.Table) -> Sequence[str]:
        """A text for each row, given what was found about its key."""


@dataclass(frozen=True, slots=True)
class LostEnd:
    """An end is no node."""

    edge: EdgeType
    column: str
    end: str

    columns: tuple[str, ...] = ()

    def say(self, found: pa.Table, rows: pa.Table) -> Sequence[str]:  # noqa: ARG002 - the protocol
        """Tell the end."""
        return [
            endpoint_text(self.edge, self.column, text, self.end)
            for text in found.column(KEY).to_pylist()
        ]


@dataclass(frozen=True, slots=True)
class HeldTuple:
    """Another row has the tuple."""

    constraint: Constraint

    @property
    def columns(self) -> tuple[str, ...]:
        """The members of the tuple."""
        return self.constraint.members

    def say(self, found: pa.Table, rows: pa.Table) -> Sequence[str]:
        """Tell the other."""
        return self.constraint.texts(rows, found.column(HOLDER).to_pylist())


@dataclass(frozen=True, slots=True)
class KnownId:
    """A strict load may not meet the id."""

    type: EntityType
    problem: str

    columns: tuple[str, ...] = ()

    def say(self, found: pa.Table, rows: pa.Table) -> Sequence[str]:  # noqa: ARG002 - the protocol
        """Tell the id."""
        return [
            key_text(one, self.problem, self.type.name) for one in found.column(KEY).to_pylist()
        ]


@dataclass(frozen=True, slots=True)
class WrongDegree:
    """A source has too many edges, or too few."""

    edge: EdgeType

    columns: tuple[str, ...] = ()

    def say(self, found: pa.Table, rows: pa.Table) -> Sequence[str]:  # noqa: ARG002 - the protocol
        """Tell how many."""
        pairs = zip(found.column(KEY).to_pylist(), found.column(EDGES).to_pylist(), strict=True)
        return [cardinality_text(self.edge, source, count) for source, count in pairs]


@dataclass(frozen=True, slots=True)
class RowSearch:
    """The rows of one cut that have keys which ranges have found.

    So many are ``shown``: listed with what is said of them. With ``lists_all`` the others are
    listed, too.
    """

    area: StagingArea
    source: KeySource
    type: EntityType
    members: tuple[str, ...]
    found: RowList
    which: Which
    group: int
    rule: SetRule | None = None
    wording: Wording | None = None
    shown: int = 0
    lists_all: bool = True
    strays: bool = False


@dataclass(frozen=True, slots=True)
class WrongRows:
    """How many rows of a group are wrong, and the file that lists them.

    ``strays`` are stored rows that no staged one is to blame for.
    """

    group: int
    count: int
    file: str
    rule: SetRule | None = None
    strays: bool = False

    def read(self, area: StagingArea) -> pa.Table:
        """The rows that are listed."""
        batch = area.read_slice(self.file, 0, WRONG)
        return WRONG.empty_table() if batch is None else pa.Table.from_batches([batch])


def search(job: RowSearch) -> WrongRows:
    """Find the rows, list them and say what is wrong with the first of them."""
    found = job.found.read()
    addresses, places = _hits(job, found)
    shown = min(job.shown, len(addresses)) if job.wording is not None else 0
    listed = addresses if job.lists_all else addresses[:shown]
    messages, entities = pa.nulls(len(listed), pa.string()), pa.nulls(len(listed), pa.string())
    if job.wording is not None and shown:
        columns = tuple(dict.fromkeys((ID, *job.wording.columns)))
        rows = rows_at(job.source, addresses[:shown], columns)
        said = job.wording.say(found.take(pa.array(places[:shown])), rows)
        rest = pa.nulls(len(listed) - shown, pa.string())
        messages = pa.concat_arrays([pa.array(said, pa.string()), rest])
        entities = pa.concat_arrays([*rows.column(ID).cast(pa.string()).chunks, rest])
    batch = pa.record_batch([pa.array(listed), messages, entities], schema=WRONG)
    file = job.area.write_slices("wrong", [batch])
    return WrongRows(job.group, len(addresses), file, job.rule, job.strays)


def _hits(job: RowSearch, found: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """The addresses of the rows in their order, and what was found about the key of each."""
    wanted = found.column(KEY).combine_chunks()
    keys, addresses = [pa.array([], pa.string())], [np.empty(0, np.uint64)]
    for rows in job.source.read(job.members):
        keys.append(key_texts(job.type, job.members, rows))
        addresses.append(rows.column(ROW_ADDRESS).to_numpy())
    # All at once: what is wanted is put in order for every comparison.
    at = pc.index_in(pa.concat_arrays(keys), value_set=wanted, skip_nulls=True)
    hit = np.flatnonzero(at.is_valid().to_numpy(zero_copy_only=False))
    own = np.concatenate(addresses)[hit]
    place = at.take(pa.array(hit)).to_numpy().astype(np.int64)
    if job.which == "all" or not len(own):
        return own, place
    kept = found.column(LAST if job.which == "earlier" else FIRST).to_numpy()[place]
    chosen = own == kept if job.which == "named" else own != kept
    return own[chosen], place[chosen]
