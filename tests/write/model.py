"""What the contract says about writes, as plainly as it can be said: dicts and loops.

Knows nothing of the program under test. Slow, small, and meant to be read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal

from omnigraph.lang.structural import DST, SRC

Row = dict[str, Any]
Rows = dict[str, Row]
Graph = dict[str, Rows]
Mode = Literal["append", "merge", "overwrite"]


class Refused(Exception):
    """A write that must not happen; ``rule`` is the rule it breaks first, or what it meets."""

    def __init__(self, rule: str) -> None:
        super().__init__(rule)
        self.rule = rule


@dataclass(frozen=True)
class Prop:
    """A property."""

    name: str
    type: str
    nullable: bool = True
    default: Any = None
    has_default: bool = False
    unique: bool = False
    range: tuple[int, int] | None = None
    enum: tuple[str, ...] = ()

    def declaration(self) -> str:
        text = f"{self.name}: {self.type}{'?' if self.nullable else ''}"
        if self.unique:
            text += " @unique"
        if self.has_default:
            text += f" @default({self.default})"
        return text


@dataclass(frozen=True)
class Type:
    """A node type, or with a source an edge type."""

    name: str
    props: tuple[Prop, ...]
    key: tuple[str, ...] = ()
    source: str | None = None
    target: str | None = None
    card: tuple[int, int | None] = (0, None)
    unique_ends: bool = False

    @property
    def is_edge(self) -> bool:
        return self.source is not None

    @property
    def type_key(self) -> str:
        return f"{'edge' if self.is_edge else 'node'}:{self.name}"

    def declaration(self) -> str:
        body = [prop.declaration() for prop in self.props]
        body += [f"@range({p.name}, {p.range[0]}..{p.range[1]})" for p in self.props if p.range]
        if len(self.key) > 1:
            body.append(f"@key({', '.join(self.key)})")
        if self.unique_ends:
            body.append("@unique(src, dst)")
        if not self.is_edge:
            head = f"node {self.name}"
            if len(self.key) == 1:
                body[0] += " @key"
        else:
            low, high = self.card
            bounds = f"{low}..{'' if high is None else high}"
            head = f"edge {self.name}: {self.source} -> {self.target} @card({bounds})"
        return head + " {\n    " + "\n    ".join(body) + "\n}\n"

    def id_of(self, row: Row) -> str:
        """The id that the key gives; of an edge it begins with both ends."""
        parts = [str(row[name]) for name in self.key]
        if len(parts) == 1:
            return parts[0]
        return json.dumps(parts, separators=(",", ":"), ensure_ascii=False)

    def constraints(self) -> list[tuple[tuple[str, ...], bool]]:
        """What must be unique, the key first, and whether it is the key."""
        found = [(self.key, True)] if self.key else []
        found += [((prop.name,), False) for prop in self.props if prop.unique]
        if self.unique_ends:
            found.append(((DST, SRC), False))
        return found


Schema = Mapping[str, Type]
"""By type key."""


def schema_text(schema: Schema) -> str:
    """The schema as people write it."""
    return "\n".join(type_.declaration() for type_ in schema.values())


@dataclass(frozen=True)
class Condition:
    """`column op value`; `@id`, `from` and `to` are columns, too."""

    column: str
    op: str
    value: Any

    def holds(self, id_: str, row: Row) -> bool:
        name = {"from": SRC, "to": DST}.get(self.column, self.column)
        found = id_ if name == "@id" else row[name]
        if self.op == "is null":
            return found is None
        if self.op == "is not null":
            return found is not None
        if found is None:
            return False
        match self.op:
            case "=":
                return bool(found == self.value)
            case "!=":
                return bool(found != self.value)
            case "<":
                return bool(found < self.value)
            case ">=":
                return bool(found >= self.value)
            case "in":
                return found in self.value
            case "contains":
                return self.value in found
        raise AssertionError(self.op)


@dataclass(frozen=True)
class Insert:
    """One new node or edge; with another verb one that must not or may exist."""

    type: Type
    values: Row
    verb: Literal["insert", "create", "upsert"] = "insert"


@dataclass(frozen=True)
class Update:
    """New values for the rows that meet all conditions."""

    type: Type
    values: Row
    where: tuple[Condition, ...]


@dataclass(frozen=True)
class Delete:
    """The rows that meet all conditions go."""

    type: Type
    where: tuple[Condition, ...]


Statement = Insert | Update | Delete


@dataclass
class Change:
    """What a write does to one type.

    ``left_out`` are the properties that inserts did not mention, of rows that were there;
    ``revived`` are rows that were deleted before they were inserted.
    """

    type: Type
    rows: Rows = field(default_factory=dict)
    batches: list[list[tuple[str, Row]]] = field(default_factory=list)
    deleted: set[str] = field(default_factory=set)
    replaces_all: bool = False
    left_out: set[tuple[str, str]] = field(default_factory=set)
    revived: set[str] = field(default_factory=set)


class Model:
    """One branch of a graph."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.graph: Graph = {key: {} for key in schema}
        self.emptied: dict[str, tuple[int, tuple[str, ...]]] = {}
        self.is_changed = False
        self._fresh = 0

    def fork(self) -> Model:
        """A branch with the same rows."""
        other = Model(self.schema)
        other.graph = deepcopy(self.graph)
        return other

    def fresh_id(self) -> str:
        """Stands for an id that the graph makes up."""
        self._fresh += 1
        return f"?{self._fresh}"

    # -- loads -------------------------------------------------------------------------

    def load(self, records: Iterable[Row], mode: Mode) -> dict[str, int]:
        """Load envelopes; counts them by type key."""
        changes: dict[str, Change] = {}
        for record in records:
            key = f"node:{record['type']}" if "type" in record else f"edge:{record['edge']}"
            type_ = self.schema[key]
            change = changes.setdefault(key, Change(type_, replaces_all=mode == "overwrite"))
            if not change.batches:
                change.batches.append([])
            change.batches[0].append(self._loaded(type_, record))
        for change in changes.values():
            self._check_required(change.type, (row for _, row in change.batches[0]))
        for change in changes.values():
            for id_, row in change.batches[0]:
                change.rows.pop(id_, None)
                change.rows[id_] = row
        self._check(changes)
        for key, change in changes.items():
            ids = [id_ for id_, _ in change.batches[0]]
            if mode != "merge" and len(set(ids)) < len(ids):
                raise Refused("key_conflict")
            if mode == "append" and self.graph[key].keys() & set(ids):
                raise Refused("key_conflict")
        self._apply(changes)
        return {key: len(change.batches[0]) for key, change in changes.items()}

    def _loaded(self, type_: Type, record: Row) -> tuple[str, Row]:
        data = dict(record["data"])
        given = data.pop("id", None)
        row = self._row(type_, data)
        if type_.is_edge:
            row |= {SRC: record["from"], DST: record["to"]}
        if type_.key:
            return type_.id_of(row), row
        return given or self.fresh_id(), row

    def _row(self, type_: Type, values: Row) -> Row:
        # An explicit null is a value.
        return {prop.name: values.get(prop.name, prop.default) for prop in type_.props}

    # -- mutations ---------------------------------------------------------------------

    def mutate(self, statements: Iterable[Statement]) -> tuple[int, int]:
        """Run statements one by one, then judge; counts affected nodes and edges."""
        changes: dict[str, Change] = {}
        counts = {"node": 0, "edge": 0}
        for statement in statements:
            change = changes.setdefault(statement.type.type_key, Change(statement.type))
            kind = "edge" if statement.type.is_edge else "node"
            match statement:
                case Insert():
                    self._insert(changes, change, statement)
                    counts[kind] += 1
                case Update(type_, values, where):
                    chosen = self._chosen(type_, where, changes)
                    for id_, row in chosen.items():
                        change.rows[id_] = row | values
                        change.left_out -= {(id_, name) for name in values}
                    counts[kind] += len(chosen)
                case Delete(type_, where):
                    gone = set(self._chosen(type_, where, changes))
                    counts[kind] += self._remove(changes, type_, gone)
                    counts["edge"] += 0 if type_.is_edge else self._cascade(changes, type_, gone)
        self._check(changes)
        self.emptied = {
            key: found for key, change in changes.items() if (found := self._emptied(change))[0]
        }
        self.is_changed = any(change.rows or change.deleted for change in changes.values())
        self._apply(changes)
        return counts["node"], counts["edge"]

    def _insert(self, changes: dict[str, Change], change: Change, statement: Insert) -> None:
        type_, values, verb = statement.type, statement.values, statement.verb
        row = self._row(type_, values)
        if type_.is_edge:
            row |= {SRC: values["from"], DST: values["to"]}
        id_ = type_.id_of(row) if type_.key else self.fresh_id()
        current = self._after(type_.type_key, changes).get(id_)
        if current is not None and verb == "create":
            raise Refused("key_conflict")
        if current is not None and verb == "upsert":
            row = current | {name: values[name] for name in values if name in current}
        change.left_out -= {(id_, name) for name in values}
        if current is not None and verb == "insert" and id_ not in change.revived:
            change.left_out |= {(id_, name) for name in row if name not in values}
        if id_ in change.deleted:
            change.deleted.remove(id_)
            change.revived.add(id_)
        change.rows[id_] = row

    def _chosen(
        self, type_: Type, where: tuple[Condition, ...], changes: Mapping[str, Change]
    ) -> Rows:
        return {
            id_: row
            for id_, row in self._after(type_.type_key, changes).items()
            if all(condition.holds(id_, row) for condition in where)
        }

    def _remove(self, changes: dict[str, Change], type_: Type, gone: set[str]) -> int:
        change = changes.setdefault(type_.type_key, Change(type_))
        for id_ in gone:
            change.rows.pop(id_, None)
        change.deleted |= gone & self.graph[type_.type_key].keys()
        return len(gone)

    def _cascade(self, changes: dict[str, Change], node: Type, gone: set[str]) -> int:
        count = 0
        for key, edge in self.schema.items():
            for column, end in ((SRC, edge.source), (DST, edge.target)):
                if end == node.name:
                    after = self._after(key, changes)
                    touching = {id_ for id_, row in after.items() if row[column] in gone}
                    count += self._remove(changes, edge, touching)
        return count

    def _emptied(self, change: Change) -> tuple[int, tuple[str, ...]]:
        """How many stored rows an insert has emptied, and of what."""
        stored = self.graph[change.type.type_key]
        lost = {
            (id_, name)
            for id_, name in change.left_out
            if id_ in change.rows and change.rows[id_][name] is None
            if id_ in stored and stored[id_][name] is not None
        }
        return len({id_ for id_, _ in lost}), tuple(sorted({name for _, name in lost}))

    # -- rules -------------------------------------------------------------------------

    def _apply(self, changes: Mapping[str, Change]) -> None:
        for key in changes:
            self.graph[key] = self._after(key, changes)

    def _after(self, key: str, changes: Mapping[str, Change]) -> Rows:
        """The rows of a type when the write is done."""
        stored, change = self.graph[key], changes.get(key)
        if change is None:
            return stored
        if change.replaces_all:
            return dict(change.rows)
        kept = {id_: row for id_, row in stored.items() if id_ not in change.deleted}
        return kept | change.rows

    def _check(self, changes: Mapping[str, Change]) -> None:
        ordered = sorted(changes.values(), key=lambda change: change.type.name)
        for change in ordered:
            self._check_required(change.type, change.rows.values())
        for change in ordered:
            self._check_values(change)
        for change in ordered:
            if not change.type.is_edge:
                self._check_unique(change)
        for key, edge in sorted(self.schema.items()):
            if edge.is_edge:
                if key in changes:
                    self._check_unique(changes[key])
                self._check_ends(edge, changes)
                self._check_cardinality(edge, changes)

    def _check_required(self, type_: Type, rows: Iterable[Row]) -> None:
        needed = [prop.name for prop in type_.props if not prop.nullable]
        if any(row[name] is None for row in rows for name in needed):
            raise Refused("required")

    def _check_values(self, change: Change) -> None:
        for prop in change.type.props:
            for row in change.rows.values():
                value = row[prop.name]
                if prop.range and value is not None and not prop.range[0] <= value <= prop.range[1]:
                    raise Refused("range")
        for prop in change.type.props:
            for row in change.rows.values():
                if prop.enum and row[prop.name] is not None and row[prop.name] not in prop.enum:
                    raise Refused("enum")

    def _check_unique(self, change: Change) -> None:
        for members, is_key in change.type.constraints():

            def tuples(rows: Iterable[tuple[str, Row]]) -> list[tuple[Any, ...]]:
                found = [tuple(row[name] for name in members) for _, row in rows]  # noqa: B023 - used at once
                return [values for values in found if None not in values]

            # Two records of one batch, two rows of the final image, a row left alone.
            untouched = [
                (id_, row)
                for id_, row in self.graph[change.type.type_key].items()
                if id_ not in change.rows and id_ not in change.deleted
            ]
            compared = [*change.batches, list(change.rows.items())]
            if not is_key and not change.replaces_all:
                written = set(tuples(change.rows.items()))
                if written & set(tuples(untouched)):
                    raise Refused("unique")
            for rows in compared:
                values = tuples(rows)
                if len(set(values)) < len(values):
                    raise Refused("unique")

    def _check_ends(self, edge: Type, changes: Mapping[str, Change]) -> None:
        for column, end in ((SRC, edge.source), (DST, edge.target)):
            nodes = self._after(f"node:{end}", changes)
            if any(
                row[column] not in nodes for row in self._after(edge.type_key, changes).values()
            ):
                raise Refused("endpoint")

    def _check_cardinality(self, edge: Type, changes: Mapping[str, Change]) -> None:
        change = changes.get(edge.type_key)
        if change is None:
            return
        stored = self.graph[edge.type_key]
        after = self._after(edge.type_key, changes)
        touched = stored.keys() if change.replaces_all else change.rows.keys() | change.deleted
        affected = {stored[id_][SRC] for id_ in touched if id_ in stored}
        affected |= {row[SRC] for row in change.rows.values()}
        # A source that goes itself is nobody's concern.
        affected &= self._after(f"node:{edge.source}", changes).keys()
        low, high = edge.card
        for source in affected:
            count = sum(row[SRC] == source for row in after.values())
            if count < low or (high is not None and count > high):
                raise Refused("cardinality")
