"""Row rules: what one row must obey by itself, checked whole columns at a time.

Owns required values, value shapes, `@range`, `@check` and enums, and how each is
told. Never looks at other rows or at the graph, so it runs inside Spark tasks too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Rule, quoted
from omnigraph.lang.schema.catalog import CheckRule, NodeType, PropertyDef, RangeRule
from omnigraph.lang.schema.keys import canonical_float
from omnigraph.lang.structural import ID
from omnigraph.lang.types import FLOATS
from omnigraph.rows.patterns import found_in
from omnigraph.write.change.change_set import EntityType, type_key
from omnigraph.write.rules.row_limits import check_sizes
from omnigraph.write.rules.violations import SourceMap, Violation, Violations


def required_text(name: str) -> str:
    """What is said about a missing value."""
    return f"non-nullable property '{name}' has null or invalid values"


def check_required(
    type_: EntityType,
    rows: pa.Table,
    violations: Violations,
    places: SourceMap,
    *,
    before_embedding: bool = False,
    given: Collection[str] | None = None,
) -> None:
    """Every non-nullable property has a value; of patches, every one of those ``given``.

    ``before_embedding`` leaves out the vectors that are still to be computed.
    """
    rule = _Report(type_, rows, violations, places)
    for name, property_ in sorted(type_.properties.items()):
        if given is not None and name not in given:
            continue
        if property_.type.nullable or (before_embedding and property_.embedding is not None):
            continue
        column = rows.column(name)
        if column.null_count:
            rule.report("required", name, column.is_null(), required_text(name))


def check_values(
    type_: EntityType, rows: pa.Table, violations: Violations, places: SourceMap
) -> None:
    """Values have the shape of their type and obey `@range`, `@check` and their enum.

    A row that is too large is refused at once, whatever else is wrong.
    """
    check_sizes(type_, rows)
    check_contents(type_, rows, violations, places)


def check_contents(
    type_: EntityType, rows: pa.Table, violations: Violations, places: SourceMap
) -> None:
    """The same of rows of any size."""
    check_shapes(type_, rows, violations, places)
    rule = _Report(type_, rows, violations, places)
    if isinstance(type_, NodeType):
        for range_ in type_.ranges:
            _check_range(type_, range_, rule)
        for check in type_.checks:
            _check_pattern(type_, check, rule)
    for _, property_ in sorted(type_.properties.items()):
        if property_.type.enum_values is not None:
            _check_enum(type_, property_, rule)


def check_shapes(
    type_: EntityType, rows: pa.Table, violations: Violations, places: SourceMap
) -> None:
    """Lists have no null elements; floats and the numbers of vectors are finite."""
    rule = _Report(type_, rows, violations, places)
    ranged = {found.property for found in type_.ranges} if isinstance(type_, NodeType) else set()
    for name, property_ in sorted(type_.properties.items()):
        kind = property_.type
        column = rows.column(name)
        nested = kind.is_list or kind.is_vector
        if nested and pc.list_flatten(column).null_count:
            noun = "vector" if kind.is_vector else "list"
            text = f"{type_.name}.{name}: a {noun} has no null elements"
            rule.report("type", name, _any_element(column, pc.is_null), text)
        if kind.is_vector or kind.scalar in FLOATS:
            # NaN is told in the words of @range where there is one.
            test = pc.is_inf if name in ranged else _is_unbounded
            text = f"{type_.name}.{name}: the number is not finite; write null if there is none"
            rule.report("type", name, _any_element(column, test) if nested else test(column), text)


def _is_unbounded(numbers: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.invert(pc.is_finite(numbers))


def _check_range(type_: NodeType, range_: RangeRule, rule: _Report) -> None:
    name = range_.property
    where = f"@range violation on {type_.name}.{name}"
    is_float = type_.properties[name].type.scalar in FLOATS
    column = rule.rows.column(name)

    def shown(value: float) -> str:
        return _float_text(value) if is_float else str(value)

    if is_float:
        rule.report("range", name, pc.is_nan(column), f"{where}: value is NaN")
    if range_.minimum is not None:
        limit = _bound_text(range_.minimum)
        below = below_range(column, range_.minimum)
        rule.report("range", name, below, lambda v: f"{where}: value {shown(v)} < min {limit}")
    if range_.maximum is not None:
        most = _bound_text(range_.maximum)
        above = above_range(column, range_.maximum)
        rule.report("range", name, above, lambda v: f"{where}: value {shown(v)} > max {most}")


def below_range(column: pa.ChunkedArray, minimum: float) -> pa.ChunkedArray:
    """Which numbers are less than a bound; NaN is neither less nor more."""
    # Integers beyond 2^53 lose digits here, as the rule says.
    values = column.cast(pa.float64(), safe=False)
    return pc.and_(pc.is_finite(values), pc.less(values, float(minimum)))


def above_range(column: pa.ChunkedArray, maximum: float) -> pa.ChunkedArray:
    """Which numbers are more than a bound."""
    values = column.cast(pa.float64(), safe=False)
    return pc.and_(pc.is_finite(values), pc.greater(values, float(maximum)))


def outside_enum(column: pa.ChunkedArray, allowed: Iterable[str]) -> pa.ChunkedArray:
    """Which texts are none of these."""
    known = pc.is_in(column, pa.array(allowed, pa.string()))
    return pc.and_(column.is_valid(), pc.invert(known))


def _bound_text(bound: float) -> str:
    return str(bound) if isinstance(bound, int) else _float_text(bound)


def _float_text(value: float) -> str:
    return canonical_float(value, 64) if np.isfinite(value) else str(value)


def _check_pattern(type_: NodeType, check: CheckRule, rule: _Report) -> None:
    name, pattern = check.property, check.pattern
    where = f"@check violation on {type_.name}.{name}"
    column = rule.rows.column(name)
    try:
        matched = found_in(column, pattern)
    except ValueError as error:
        # Only a schema that was accepted under looser rules can have one.
        text = f"{where}: '{quoted(pattern)}' is no pattern of RE2: {quoted(error)}"
        rule.report("check", name, column.is_valid(), text)
        return
    rule.report(
        "check",
        name,
        pc.invert(matched),
        lambda value: (
            f"{where}: value '{quoted(value)}' does not match pattern '{quoted(pattern)}'"
        ),
    )


def _check_enum(type_: EntityType, property_: PropertyDef, rule: _Report) -> None:
    name, allowed = property_.name, property_.type.enum_values or ()
    column = rule.rows.column(name)
    expected = quoted(", ".join(allowed))
    rule.report(
        "enum",
        name,
        outside_enum(column, allowed),
        lambda value: (
            f"invalid enum value '{quoted(value)}' for {type_.name}.{name} (expected: {expected})"
        ),
    )


def _any_element(
    column: pa.ChunkedArray, test: Callable[[pa.ChunkedArray], pa.ChunkedArray]
) -> np.ndarray:
    """Which rows have an element that passes a test."""
    hits = pc.fill_null(test(pc.list_flatten(column)), fill_value=False).to_numpy()
    broken = np.zeros(len(column), dtype=bool)
    # Rows are counted through all chunks.
    broken[pc.list_parent_indices(column).to_numpy()[hits]] = True
    return broken


class _Report:
    """Turns the mask of a rule into violations; makes text only for those that are kept."""

    def __init__(
        self, type_: EntityType, rows: pa.Table, violations: Violations, places: SourceMap
    ) -> None:
        self.rows = rows
        self._key = type_key(type_)
        self._violations = violations
        self._places = places

    def report(
        self,
        rule: Rule,
        name: str,
        broken: pa.ChunkedArray | np.ndarray,
        text: str | Callable[[Any], str],
    ) -> None:
        """Count the rows a mask marks (null counts as fine) and describe the first of them."""
        if not isinstance(broken, np.ndarray):
            broken = pc.fill_null(broken, fill_value=False).to_numpy()
        at = np.flatnonzero(broken)
        if len(at):
            found = self._describe(rule, name, at[: self._violations.room], text)
            self._violations.add_all(len(at), found)

    def _describe(
        self, rule: Rule, name: str, at: np.ndarray, text: str | Callable[[Any], str]
    ) -> Iterator[Violation]:
        values = self.rows.column(name).take(at).to_pylist()
        ids = self.rows.column(ID).take(at).to_pylist()
        for row, value, id_ in zip(at.tolist(), values, ids, strict=True):
            place = self._places.place(row, name)
            said = text if isinstance(text, str) else text(value)
            yield Violation(rule, said, self._key, name, id_, place)
