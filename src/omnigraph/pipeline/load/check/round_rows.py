"""The rows of one round of checks: those that are left of the input, and the stored ones they meet.

Owns which of them may meet at all, and how much there is to cut. Reads a few keys to know their
width, and cuts none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from omnigraph.lang.schema.catalog import EdgeType, NodeType
from omnigraph.lang.structural import ID
from omnigraph.pipeline.load.check.key_source import KeySource, grouped
from omnigraph.pipeline.load.stage.staged_types import StagedType
from omnigraph.storage.tables.fragments import layout_of
from omnigraph.write.change.change_set import EntityType, find_type, key_texts
from omnigraph.write.load.changes import LoadMode
from omnigraph.write.publish.base import Base
from omnigraph.write.rules.edges import ends_of

# A range of so many bytes of keys takes some hundred megabytes to decide about.
RANGE_BYTES = 48 << 20
# What is noted of a key beside its text.
NOTED_BYTES = 24
# Of fewer keys no more are asked about than these are compared with everything stored.
FEW_KEYS = 500_000
# Beyond so many stored rows to a staged one, looking at all of them costs less than cutting them.
MANY_STORED = 4


def ranges_for(size: int) -> int:
    """Into how many ranges so many bytes of keys are cut."""
    return max(1, -(-size // RANGE_BYTES))


def is_few(asked: int, stored: int) -> bool:
    """Whether so few rows ask about so many stored ones that only their keys are cut of these."""
    return asked <= FEW_KEYS and stored >= MANY_STORED * asked


@dataclass(frozen=True, slots=True)
class RoundRows:
    """Staged rows by type, and the base; ``touched`` are the types that an overwrite replaces.

    Tasks are so much smaller than usual as ``share`` says.
    """

    base: Base
    staged: Mapping[str, StagedType]
    mode: LoadMode
    touched: frozenset[str]
    share: int = 1
    _known: dict[str, int] = field(default_factory=dict)

    # -- what there is ---------------------------------------------------------------

    @property
    def replaces(self) -> bool:
        """Whether touched types are replaced as a whole."""
        return self.mode == "overwrite"

    def edges(self) -> Iterator[tuple[str, EdgeType, StagedType]]:
        """The staged types of edges, by name."""
        for _, edge in sorted(self.base.catalog.edges.items()):
            key = f"edge:{edge.name}"
            if key in self.staged:
                yield key, edge, self.staged[key]

    def ends(self) -> dict[str, list[tuple[str, str]]]:
        """By node type, where staged edges name its nodes: the type and the column."""
        ends: dict[str, list[tuple[str, str]]] = {}
        for key, edge, _ in self.edges():
            for column, end in ends_of(edge):
                if column not in edge.shared:
                    ends.setdefault(end, []).append((key, column))
        return ends

    def shared_ends(self) -> Iterator[tuple[str, EdgeType, str]]:
        """The ends of staged edges, and of stored ones that may lose nodes, of several types."""
        catalog = self.base.catalog
        for _, edge in sorted(catalog.edges.items()):
            key = f"edge:{edge.name}"
            for column in edge.shared:
                replaced = {f"node:{node.name}" for node in catalog.nodes_at(edge, column)}
                loses = self.replaces and key not in self.touched and self.stored_rows(key)
                if key in self.staged or (loses and not replaced.isdisjoint(self.touched)):
                    yield key, edge, column

    def stored(self, key: str) -> tuple[KeySource, ...]:
        """The stored rows of a type, in the groups that tasks take."""
        table = self.base.table(key).table
        return grouped(table, layout_of(table).parts, self.share)

    def has_stored(self, key: str) -> bool:
        """Whether stored rows of a type stay, or are looked at one by one."""
        replaced = self.replaces and key in self.touched
        return not replaced and self.stored_rows(key) > 0

    def stored_rows(self, key: str) -> int:
        """How many rows of a type the base has."""
        rows: int = self.base.table(key).table.pin.row_count
        return rows

    def supersedes(self, key: str) -> bool:
        """Whether rows of a type may give way to later ones."""
        staged = self.staged[key]
        return staged.has_given_ids and not staged.type.key

    def meets(self, key: str) -> bool:
        """Whether rows of a type may take the place of stored ones."""
        return self.staged[key].has_given_ids and self.has_stored(key)

    def stored_ids(self) -> list[str]:
        """The types whose stored ids the input is compared with."""
        keys = {f"node:{end}" for end in self.ends()}
        keys |= {key for key in self.staged if self.meets(key)}
        return sorted(key for key in keys if self.has_stored(key))

    def counts_stored(self, key: str) -> bool:
        """Whether the stored edges of a type count beside the staged ones."""
        type_ = self.staged[key].type
        if not isinstance(type_, EdgeType) or not type_.is_bounded:
            return False
        # Sources that lose edges matter too, though no staged row names them.
        return self.has_stored(key) or bool(type_.min_out and self.stored_rows(key))

    # -- how much there is -------------------------------------------------------------

    def ranges_of(self, space: str) -> int:
        """Of how many ranges a key space is, by its bytes: that of a node type has its ends too."""
        known = self._known.get(space)
        if known is not None:
            return known
        key, _, rule = space.partition("|")
        type_ = find_type(self.base.catalog, key)
        members = tuple(rule.split("-")) if rule else (ID,)
        size = self._size(key, type_, members)
        if isinstance(type_, NodeType) and not rule:
            asked = [one for one, _ in self.ends().get(type_.name, ())]
            size += sum(self.staged[one].count for one in asked) * self._width(key, type_, members)
        self._known[space] = made = ranges_for(size * self.share)
        return made

    def ranges_of_end(self, edge: EdgeType, column: str) -> int:
        """Of how many ranges the nodes at an end are, and what edges call them."""
        if column not in edge.shared:
            return self.ranges_of(f"node:{edge.end(column)}")
        space = f"{edge.name}|{column}"
        if space not in self._known:
            key = f"edge:{edge.name}"
            size = self._size(key, edge, (column,))
            for node in self.base.catalog.nodes_at(edge, column):
                size += self._size(f"node:{node.name}", node, (ID,))
            self._known[space] = ranges_for(size)
        return self._known[space]

    def _size(self, key: str, type_: EntityType, members: tuple[str, ...]) -> int:
        rows = self.staged[key].count if key in self.staged else 0
        stored = 0 if self.is_filtered(key) else self.stored_rows(key)
        return (rows + stored) * self._width(key, type_, members)

    def _width(self, key: str, type_: EntityType, members: tuple[str, ...]) -> int:
        """About how many bytes are kept of a key."""
        sources = self.staged[key].groups if key in self.staged else self.stored(key)
        for source in sources[:1]:
            some = KeySource(source.table, source.parts[:1])
            for rows in some.read(members):
                keys = key_texts(type_, members, rows)
                return NOTED_BYTES + int(keys.nbytes) // max(1, len(keys))
        return NOTED_BYTES

    def asking_rows(self, key: str) -> int:
        """How many staged rows ask about the ids of a type."""
        own = self.staged[key].count if key in self.staged else 0
        ends = self.ends().get(key.partition(":")[2], ()) if key.startswith("node:") else ()
        return own + sum(self.staged[one].count for one, _ in ends)

    def is_filtered(self, key: str) -> bool:
        """Whether only those of the stored keys of a type are cut that the input asks about."""
        return is_few(self.asking_rows(key), self.stored_rows(key))
