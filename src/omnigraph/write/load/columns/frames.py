"""Frames: tables of Arrow, pandas or Polars decoded into the columns of a type.

Owns which columns a frame may have and what a missing one means. A missing column is
an absent property; a null cell is an explicit null. Never imports a frame library.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import BadRequest, Rule
from omnigraph.lang.diagnostics import name_hint
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType, PropertyDef
from omnigraph.lang.structural import ENDPOINTS, ID, end_type_column, spelling
from omnigraph.lang.types import Scalar
from omnigraph.write.change.change_set import EntityType, row_columns, type_key
from omnigraph.write.load.columns.frame_columns import convert_column, decoded, texts
from omnigraph.write.load.columns.keyed_ends import KEY, TYPE, EndNodes, ids_of_column
from omnigraph.write.load.columns.texts import NOT_UTF8, is_text, require_readable_names
from omnigraph.write.load.columns.typed_rows import default_of, derived_ids, marked
from omnigraph.write.load.ndjson.exact import no_id_text, unknown_property, wrong_id_text
from omnigraph.write.load.ndjson.values import ValueTypeError
from omnigraph.write.rules.row_rules import check_required, check_shapes
from omnigraph.write.rules.violations import SourceMap, Violation, Violations


def read_frame(
    type_: EntityType,
    name: str,
    table: pa.Table,
    violations: Violations,
    places: SourceMap,
    *,
    is_pandas: bool = False,
    patches: bool = False,
    nodes: EndNodes | None = None,
) -> pa.Table | None:
    """The columns of one frame, or None if something is wrong with it."""
    require_readable_names(table.schema, f"frame '{name}'")
    frame = _Frame(
        type_,
        name,
        table,
        violations,
        places,
        nodes=nodes or {},
        is_pandas=is_pandas,
        patches=patches,
    )
    return frame.read()


def read_tables(
    frames: Mapping[str, object], catalog: Catalog
) -> Iterator[tuple[str, EntityType, pa.Table, bool]]:
    """The name, type and table of each frame, and whether pandas made it; by type key."""
    types = frame_types(frames, catalog)
    for name, type_ in sorted(types.items(), key=lambda named: type_key(named[1])):
        table, is_pandas = as_table(name, frames[name])
        yield name, type_, table, is_pandas


def frame_types(names: Iterable[str], catalog: Catalog) -> dict[str, EntityType]:
    """The types that frames are named after; no two frames are of one type."""
    types: dict[str, EntityType] = {}
    for name in names:
        type_ = find_frame_type(name, catalog)
        twin = next((other for other, known in types.items() if known == type_), None)
        if twin is not None:
            raise BadRequest(f"'{twin}' and '{name}' are frames of one type; join them")
        types[name] = type_
    return types


def find_frame_type(name: str, catalog: Catalog) -> EntityType:
    """The type that a frame is named after."""
    node, edge = catalog.named(name)
    bare = name.rpartition(":")[2]
    if node is not None and edge is not None:
        # Node names are exact, so a node wins over an edge that differs in case only.
        if edge.name == bare:
            raise BadRequest(
                f"'{bare}' is a node type and an edge type: write 'node:{bare}' or 'edge:{bare}'"
            )
        return node
    if found := node or edge:
        return found
    hint = name_hint(bare, (*catalog.nodes, *catalog.edges))
    raise BadRequest(f"no type '{name}' for this frame" + (f"; {hint}" if hint else ""))


def as_table(name: str, frame: object) -> tuple[pa.Table, bool]:
    """A frame as an Arrow table, and whether pandas made it."""
    if isinstance(frame, pa.Table):
        return frame, False
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame]), False
    if isinstance(frame, pa.RecordBatchReader):
        return frame.read_all(), False
    if type(frame).__module__.partition(".")[0] == "pandas":
        return _from_pandas(name, frame), True
    if hasattr(frame, "__arrow_c_stream__"):
        return pa.table(frame), False
    raise BadRequest(
        f"'{name}' is no frame but {type(frame).__name__}: give a pyarrow Table, a pandas or"
        " polars DataFrame, or anything else that exports an Arrow stream"
    )


def _from_pandas(name: str, frame: Any) -> pa.Table:
    if not hasattr(frame, "columns"):
        raise BadRequest(f"'{name}' is a pandas {type(frame).__name__}: give a DataFrame")
    try:
        return pa.Table.from_pandas(frame, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, ValueError) as error:
        raise BadRequest(
            f"frame '{name}' cannot be read: {'; '.join(map(str, error.args))}"
        ) from None


def _listed(names: Iterable[str]) -> str:
    return " and ".join(f"'{name}'" for name in names)


def _mask(marks: pa.Array) -> np.ndarray:
    mask: np.ndarray = marks.to_numpy(zero_copy_only=False)
    return mask


def _lost(before: pa.Array, after: pa.Array) -> np.ndarray:
    """The rows in which a conversion turned something into null, also inside of lists."""
    lost = _mask(pc.and_(before.is_valid(), after.is_null()))
    if isinstance(after, (pa.ListArray, pa.FixedSizeListArray)) and not lost.any():
        inside = pc.and_(pc.list_flatten(before).is_valid(), pc.list_flatten(after).is_null())
        lost = np.zeros(len(after), dtype=bool)
        lost[pc.list_parent_indices(after).to_numpy()[_mask(inside)]] = True
    return lost


def known_columns(type_: EntityType) -> set[str]:
    """What the columns of a type may be called."""
    known = {*_spellings(type_, ID), *type_.properties}
    if isinstance(type_, EdgeType):
        known |= {name for column in ENDPOINTS for name in _spellings(type_, column)}
        known |= {name for column in type_.shared for name in _type_spellings(type_, column)}
    return known


def _spellings(type_: EntityType, column: str) -> tuple[str, ...]:
    """What a frame may call a structural column."""
    word = ENDPOINTS.get(column)
    names = (column, spelling(column, type_.properties))
    return tuple(dict.fromkeys(names if word is None else (word, *names)))


def _type_spellings(type_: EntityType, column: str) -> list[str]:
    """What a frame may call the types of the nodes at an end."""
    return [end_type_column(label, type_.properties) for label in _spellings(type_, column)]


class _Frame:
    """Reads the columns of one frame and reports what does not fit."""

    def __init__(
        self,
        type_: EntityType,
        name: str,
        table: pa.Table,
        violations: Violations,
        places: SourceMap,
        *,
        nodes: EndNodes,
        is_pandas: bool,
        patches: bool,
    ) -> None:
        self._nodes = nodes
        self._type = type_
        self._patches = patches
        self._table = table
        self._violations = violations
        self._places = places
        self._name = name
        self._pandas = is_pandas

    def read(self) -> pa.Table | None:
        """The columns of the batch, or None if something is wrong."""
        before = self._violations.total
        self._check_names()
        columns = {ID: self._ids()}
        if not isinstance(self._type, NodeType):
            columns |= {column: self._end(column) for column in ENDPOINTS}
        schema = row_columns(self._type)
        for name in self._type.properties:
            columns[name] = self._property(name, schema.field(name).type)
        if self._violations.total > before:
            return None
        table = pa.table(columns)
        names = {*self._table.column_names, *self._type.key} if self._patches else None
        check_required(
            self._type, table, self._violations, self._places, before_embedding=True, given=names
        )
        check_shapes(self._type, table, self._violations, self._places)
        if self._violations.total > before:
            return None
        identified = self._identified(table)
        if identified is None or not self._patches:
            return identified
        for name, marks in marked(self._marks()).items():
            identified = identified.append_column(name, marks)
        return identified

    def _marks(self) -> dict[str, pa.Array]:
        """Which cells are given: all of a column that is there."""
        known = {name: name in self._table.column_names for name in self._type.properties}
        if not isinstance(self._type, NodeType):
            known |= {end: bool(self._given(end)) for end in ENDPOINTS}
        rows = len(self._table)
        return {
            name: pa.repeat(pa.scalar(is_there), rows)
            for name, is_there in known.items()
            if name not in self._type.key
        }

    def _check_names(self) -> None:
        names = self._table.column_names
        known = known_columns(self._type)
        for at, name in enumerate(names):
            if name in names[:at]:
                self._say("format", f"the frame has two columns '{name}'", name)
            elif name not in known:
                self._say("format", unknown_property(self._type, name), name)

    def _ids(self) -> pa.Array:
        given = self._given(ID)
        if not given:
            if self._patches and not self._type.key:
                label = spelling(ID, self._type.properties)
                self._say("required", no_id_text(self._type, label), label)
            return pa.nulls(len(self._table), pa.string())
        if len(given) > 1:
            self._say("format", f"only one of the columns {_listed(given)} can be the id", given[0])
        name = given[0]
        ids = self._texts(name, name)
        if ids.null_count:
            said = f"'{name}' must be a string, found null; leave the column out to have ids made"
            self._say_missing(said, name, name, ids)
        return ids

    def _typed(self, column: str, nodes: pa.Array) -> pa.Array:
        """The nodes at an end, with their types where a column tells them."""
        if not isinstance(self._type, EdgeType) or column not in self._type.shared:
            return nodes
        names = self._table.column_names
        types = [name for name in _type_spellings(self._type, column) if name in names]
        if not types:
            return nodes
        told = self._column(types[0])
        return pa.StructArray.from_arrays([told, nodes], [TYPE, KEY])

    def _given(self, column: str) -> list[str]:
        return [name for name in _spellings(self._type, column) if name in self._table.column_names]

    def _end(self, column: str) -> pa.Array:
        given = self._given(column)
        if not given and self._patches and not self._type.key:
            return pa.nulls(len(self._table), pa.string())
        if len(given) != 1:
            said = "only one of the columns" if given else "a column"
            spelled = _listed(given or [ENDPOINTS[column]])
            self._say("format", f"an edge needs {said} {spelled} with the ids of nodes", None)
            return pa.nulls(len(self._table), pa.string())
        node = self._nodes.get(column)
        try:
            found = self._typed(column, self._column(given[0]))
            ends = ids_of_column(given[0], node, found, pandas=self._pandas)
        except ValueTypeError as misfit:
            self._say(misfit.rule, misfit.text, given[0])
            return pa.array([""] * len(self._table))
        if ends.null_count:
            said = f"'{given[0]}' must be the id of a node, found null"
            if is_text(decoded(found).type):
                self._say_missing(said, given[0], None, ends)
            else:
                self._say_rows("type", said, None, _mask(ends.is_null()))
        return ends

    def _texts(self, name: str, property_: str) -> pa.Array:
        try:
            return texts(name, self._column(name))
        except ValueTypeError as misfit:
            self._say(misfit.rule, misfit.text, property_)
            return pa.array([""] * len(self._table))

    def _say_missing(self, text: str, name: str, property_: str | None, found: pa.Array) -> None:
        """Report structural cells that are null, or that became so for they are no text."""
        lost = _lost(decoded(self._column(name)), found)
        self._say_rows("format", f"'{name}': {NOT_UTF8}", property_, lost)
        self._say_rows("type", text, property_, _mask(found.is_null()) & ~lost)

    def _property(self, name: str, stored: pa.DataType) -> pa.Array:
        property_ = self._type.properties[name]
        if name not in self._table.column_names:
            is_left = self._patches and name not in self._type.key
            default = None if is_left else default_of(property_, stored)
            if default is None:
                return pa.nulls(len(self._table), stored)
            return pa.repeat(default, len(self._table))
        column = decoded(self._column(name))
        try:
            converted = convert_column(property_.type, column, pandas=self._pandas)
        except (ValueTypeError, pa.ArrowInvalid) as misfit:
            said = misfit.text if isinstance(misfit, ValueTypeError) else str(misfit)
            self._say("type", f"{self._type.name}.{name}: {said}", name)
            return pa.nulls(len(self._table), stored)
        lost = _lost(column, converted)
        if lost.any():
            self._say_lost(property_, lost)
        if pa.types.is_null(converted.type):
            return pa.nulls(len(converted), stored)
        return converted.cast(stored)

    def _say_lost(self, property_: PropertyDef, lost: np.ndarray) -> None:
        kind, where = property_.type.without_null, f"{self._type.name}.{property_.name}"
        if kind.scalar is Scalar.STRING:
            # Text that is text always fits.
            self._say_rows("format", f"{where}: {NOT_UTF8}", property_.name, lost)
            return
        self._say_rows("type", f"{where}: the value does not fit {kind}", property_.name, lost)

    def _column(self, name: str) -> pa.Array:
        combined = self._table.column(self._table.column_names.index(name)).combine_chunks()
        if isinstance(combined, pa.ChunkedArray):
            raise BadRequest(f"column '{name}' of frame '{self._name}' is too large; split it")
        return combined

    def _identified(self, table: pa.Table) -> pa.Table | None:
        derived = derived_ids(self._type, table)
        if derived is None:
            return table
        wrong = pc.not_equal(table.column(ID), derived)
        at = np.flatnonzero(pc.fill_null(wrong, fill_value=False).to_numpy())
        if len(at):
            label = self._given(ID)[0]
            given, right = table.column(ID).take(at), derived.take(at)
            self._violations.add_all(
                len(at),
                (
                    self._violation("format", wrong_id_text(label, has, needs), label, int(row))
                    for row, has, needs in zip(
                        at, given.to_pylist(), right.to_pylist(), strict=True
                    )
                ),
            )
            return None
        return table.set_column(0, ID, derived)

    def _say(self, rule: Rule, text: str, property_: str | None) -> None:
        """Report a problem of the frame as a whole."""
        said = f"frame '{self._name}': {text}"
        self._violations.add(Violation(rule, said, type_key(self._type), property_))

    def _say_rows(self, rule: Rule, text: str, property_: str | None, broken: np.ndarray) -> None:
        at = np.flatnonzero(broken)
        kept = at[: self._violations.room].tolist()
        self._violations.add_all(
            len(at), (self._violation(rule, text, property_, row) for row in kept)
        )

    def _violation(self, rule: Rule, text: str, property_: str | None, row: int) -> Violation:
        place = self._places.place(row, property_)
        return Violation(rule, text, type_key(self._type), property_, place=place)
