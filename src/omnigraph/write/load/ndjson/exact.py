"""Exact reading: the lines of one type, value by value.

Owns finding every problem of a line with its column. Takes what the bulk path
refused; gives the same rows where there turns out to be nothing wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Rule, quoted
from omnigraph.lang.diagnostics import name_hint
from omnigraph.lang.schema.catalog import NodeType, PropertyDef
from omnigraph.lang.schema.keys import keyed_edge_id, keyed_node_id
from omnigraph.lang.structural import ENDPOINTS, ID, spelling
from omnigraph.lang.types import Scalar
from omnigraph.write.change.change_set import EntityType, row_columns, type_key
from omnigraph.write.load.columns.cells import read_date, read_datetime
from omnigraph.write.load.columns.keyed_ends import EndNodes, end_id
from omnigraph.write.load.columns.typed_rows import default_of, derived_ids, marked
from omnigraph.write.load.ndjson.envelopes import LineErrors, check_envelope
from omnigraph.write.load.ndjson.json_text import BadLineError, read_json
from omnigraph.write.load.ndjson.lines import find, find_name
from omnigraph.write.load.ndjson.values import ValueTypeError, column_of, convert, describe
from omnigraph.write.rules.row_rules import required_text

PHYSICAL = frozenset(
    {
        "_tombstone",
        "_rowid",
        "_rowaddr",
        "_rowoffset",
        "_row_created_at_version",
        "_row_last_updated_at_version",
    }
)
_ABSENT = object()


def unknown_property(type_: EntityType, name: str) -> str:
    """What is said about a name that is no property of a type."""
    if name in PHYSICAL:
        return f"'{name}' is reserved physical state"
    word = ENDPOINTS.get(f"@{name.removeprefix('@')}")
    if word is not None and not isinstance(type_, NodeType):
        return f'\'{name}\' is reserved structural state; give "{word}" beside "data"'
    said = f"unknown property '{quoted(name)}' for {type_.name}"
    hint = name_hint(name, type_.properties)
    return f"{said}; {hint}" if hint else said


def read_exact(
    type_: EntityType,
    lines: Sequence[bytes],
    ordinals: Sequence[int],
    problems: LineErrors,
    *,
    patches: bool = False,
    nodes: EndNodes | None = None,
) -> pa.Table | None:
    """The columns of lines whose type is known, or None if some of them have problems."""
    before = problems.total
    reader = _Reader(type_, problems, nodes or {}, patches=patches)
    for line, ordinal in zip(lines, ordinals, strict=True):
        reader.read(line, ordinal)
    if problems.total > before:
        return None
    table = reader.table()
    derived = derived_ids(type_, table)
    return table if derived is None else table.set_column(0, ID, derived)


def wrong_id_text(label: str, given: str, right: str) -> str:
    """What is said about an id that its key does not give."""
    return f"{label} '{quoted(given)}' is not the id its key gives: '{quoted(right)}'; leave it out"


def no_id_text(type_: EntityType, label: str) -> str:
    """What is said about a patch that nothing addresses."""
    return f"{type_.name} has no key: give the '{label}' of what is to be patched or added"


def _calendar(value: Any, scalar: Scalar) -> Any:
    """The default of a property as its stored number, where it is a date or a time."""
    if isinstance(value, str) and scalar is Scalar.DATE:
        return read_date(value)
    if isinstance(value, str) and scalar is Scalar.DATETIME:
        return read_datetime(value)
    return value


class _Reader:
    """Collects the values of lines, column by column, and reports what does not fit."""

    def __init__(
        self, type_: EntityType, problems: LineErrors, nodes: EndNodes, *, patches: bool
    ) -> None:
        self._type = type_
        self._nodes = nodes
        self._key = type_key(type_)
        self._ids = tuple(dict.fromkeys((spelling(ID, type_.properties), ID)))
        self._problems = problems
        self._schema = row_columns(type_)
        self._columns: dict[str, list[Any]] = {name: [] for name in self._schema.names}
        self._defaulted = {
            name for name, property_ in type_.properties.items() if property_.default is not None
        }
        self._patches = patches
        self._given: dict[str, list[bool]] = {}
        if patches:
            self._given = {name: [] for name in self._schema.names if name not in type_.key}
            del self._given[ID]
        self._absent: dict[str, list[bool]] = {name: [] for name in self._defaulted}

    def read(self, line: bytes, ordinal: int) -> None:
        try:
            envelope = read_json(line)
        except BadLineError as bad:
            self._say(ordinal, bad.text, bad.column)
            return
        text = line.decode()
        may_lack = self._patches and not self._type.key
        for found in check_envelope(self._type, envelope, text, may_lack_ends=may_lack):
            self._say(ordinal, found.text, found.column)
        ends: dict[str, Any] = {}
        if not isinstance(self._type, NodeType):
            ends = {
                column: self._end(column, envelope[word], text, ordinal)
                for column, word in ENDPOINTS.items()
                if word in envelope
            }
            ends = {column: ends.get(column) for column in ENDPOINTS}
            for column, end in ends.items():
                self._columns[column].append(end)
                if column in self._given:
                    self._given[column].append(end is not None)
        data = envelope.get("data", {})
        if type(data) is dict:
            self._read_data(data, ends, text, ordinal)

    def _end(self, column: str, value: Any, text: str, ordinal: int) -> str | None:
        word = ENDPOINTS[column]
        try:
            return end_id(word, self._nodes.get(column), value)
        except ValueTypeError as misfit:
            self._say(ordinal, misfit.text, find(text, (word,)))
            return None

    def _read_data(
        self, data: dict[str, Any], ends: dict[str, Any], text: str, ordinal: int
    ) -> None:
        for name in data:
            if name in self._type.properties or name in self._ids:
                continue
            if self._problems.full:
                self._problems.total += 1
                continue
            column = find_name(text, ("data", name))
            self._say(ordinal, unknown_property(self._type, name), column, name)
        given = [name for name in self._ids if name in data]
        if len(given) > 1:
            said = f"'{given[0]}' and '{given[1]}' both give the id: keep one"
            self._say(ordinal, said, find_name(text, ("data", given[0])), given[0])
        label = given[0] if given else self._ids[0]
        id_ = data.get(label, _ABSENT)
        if id_ is not _ABSENT and type(id_) is not str:
            said = f"'{label}' must be a string, found {describe(id_)}"
            self._say(ordinal, said, find(text, ("data", label)), label, rule="type")
            id_ = _ABSENT
        if id_ is _ABSENT and self._patches and not self._type.key and not given:
            self._say(ordinal, no_id_text(self._type, label), None, label, rule="required")
        self._columns[ID].append(None if id_ is _ABSENT else id_)
        row = dict(ends)
        for name, property_ in self._type.properties.items():
            value = data.get(name, _ABSENT)
            row[name] = self._value(property_, value, text, ordinal)
            self._columns[name].append(row[name])
            if name in self._given:
                self._given[name].append(value is not _ABSENT)
            if name in self._defaulted:
                self._absent[name].append(value is _ABSENT)
        if isinstance(id_, str) and self._type.key:
            self._check_id((label, id_), row, text, ordinal)

    def _check_id(
        self, named: tuple[str, str], row: dict[str, Any], text: str, ordinal: int
    ) -> None:
        label, given = named
        type_ = self._type
        key = {name: self._key_value(name, row[name]) for name in type_.key}
        if None in key.values():
            return
        right = (
            keyed_node_id(type_, key) if isinstance(type_, NodeType) else keyed_edge_id(type_, key)
        )
        if given != right:
            column = find(text, ("data", label))
            self._say(ordinal, wrong_id_text(label, given, right), column, label)

    def _key_value(self, member: str, value: Any) -> Any:
        """A member of the key as it is stored; None where it is missing, which is told already."""
        if member in ENDPOINTS:
            return value if type(value) is str else None
        property_ = self._type.properties[member]
        if value is None:
            return _calendar(property_.default, property_.type.scalar)
        if property_.type.scalar is Scalar.F32:
            return pa.scalar(value).cast(pa.float32()).as_py()
        return value

    def _value(self, property_: PropertyDef, value: Any, text: str, ordinal: int) -> Any:
        name = property_.name
        if value is _ABSENT and name in self._given:
            return None
        if value is None or value is _ABSENT:
            filled = value is _ABSENT and property_.default is not None
            if not (filled or property_.type.nullable or property_.embedding is not None):
                column = None if self._problems.full else find(text, ("data", name))
                self._say(ordinal, required_text(name), column, name, rule="required")
            return None
        try:
            return convert(property_.type, value)
        except ValueTypeError as misfit:
            path: tuple[str | int, ...] = ("data", name)
            if misfit.index is not None:
                path = (*path, misfit.index)
            column = None if self._problems.full else find(text, path)
            said = f"{self._type.name}.{name}: {misfit.text}"
            self._say(ordinal, said, column, name, rule=misfit.rule)
            return None

    def _say(
        self,
        ordinal: int,
        text: str,
        column: int | None,
        property_: str | None = None,
        *,
        rule: Rule = "format",
    ) -> None:
        self._problems.add(
            ordinal, rule, text, column=column, type_key=self._key, property_=property_
        )

    def table(self) -> pa.Table:
        """The columns of what was read; only for lines without problems."""
        arrays = []
        for field in self._schema:
            values = self._columns[field.name]
            property_ = self._type.properties.get(field.name)
            if property_ is None:
                arrays.append(pa.array(values, pa.string()))
                continue
            array = column_of(property_.type, values, field.type)
            default = default_of(property_, field.type)
            if default is not None and field.name not in self._given:
                array = pc.if_else(pa.array(self._absent[field.name], pa.bool_()), default, array)
            arrays.append(array)
        marks = marked({name: pa.array(m, pa.bool_()) for name, m in self._given.items()})
        return pa.Table.from_arrays([*arrays, *marks.values()], names=[*self._schema.names, *marks])
