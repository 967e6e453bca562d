"""Plans of a pipeline: every mapping of a document as a DataFrame that Spark has analysed.

Owns turning expressions into columns, and telling which of them are wrong without reading
data. The texts are Spark's own SQL, each parsed as one expression and never put together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from omnigraph.lang.diagnostics import name_hint
from omnigraph.lang.types import Scalar, ValueType
from omnigraph.pipeline.declared.document import Expression
from omnigraph.pipeline.declared.types import Typed
from omnigraph.pipeline.declared.yaml_node import DocumentErrors
from omnigraph.pipeline.load.stage.frames import Frame
from omnigraph.pipeline.load.stage.spark_frames import KeyedEnd, misfits
from omnigraph.pipeline.spark.errors import condition_of, failures, message_of, parameter_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_SQL_TYPES = {
    Scalar.STRING: "string",
    Scalar.BLOB: "binary",
    Scalar.BOOL: "boolean",
    Scalar.I32: "int",
    Scalar.I64: "bigint",
    Scalar.U32: "bigint",
    Scalar.U64: "decimal(20, 0)",
    Scalar.F32: "float",
    Scalar.F64: "double",
    Scalar.DATE: "date",
    Scalar.DATETIME: "timestamp",
}


@dataclass(frozen=True, slots=True)
class _Named:
    """An expression and the column that it becomes; ``kind`` is what the column has to hold."""

    column: str
    expression: Expression
    kind: ValueType | None


def plan(typed: Typed, source: DataFrame, problems: DocumentErrors) -> Frame | None:
    """The rows of one mapping, or None, and the problems of its expressions."""
    mapped = typed.mapped
    before = len(problems.found)
    rows = source
    if mapped.where is not None:
        rows = _filtered(source, mapped.where, mapped.source, problems)
    named = {one.column: one for one in _named(typed)}
    columns = {
        name: column
        for name, one in named.items()
        if (column := _column(rows, one.expression, mapped.source, problems)) is not None
    }
    ends = {
        end: KeyedEnd(keyed.node, {name: _key_column(end, name) for name in keyed.members})
        for end, keyed in typed.keyed.items()
        if all(_key_column(end, name) in columns for name in keyed.members)
    }
    frame = rows.select(*(column.alias(name) for name, column in columns.items()))
    is_whole = len(problems.found) == before
    for violation in misfits(frame, typed.type, mapped.label, ends):
        said = violation.text.removeprefix(f"frame '{mapped.label}': ")
        guilty = named.get(violation.property or "")
        if guilty is not None:
            problems.say(guilty.expression.spot, said + _cast_hint(guilty))
        elif is_whole:
            # Else it is the column that could not be made which is missed.
            problems.say(mapped.spot, said)
    return Frame(typed.type, mapped.label, frame, ends) if is_whole else None


def _named(typed: Typed) -> Iterator[_Named]:
    text = ValueType(Scalar.STRING)
    for name, expression in typed.texts.items():
        property_ = typed.type.properties.get(name)
        yield _Named(name, expression, text if property_ is None else property_.type)
    for end, keyed in typed.keyed.items():
        for name, expression in keyed.members.items():
            kind = keyed.node.properties[name].type
            yield _Named(_key_column(end, name), expression, kind)


def _key_column(end: str, name: str) -> str:
    # A name that no property can have.
    return f"{end} {name}"


def _filtered(
    source: DataFrame, where: Expression, source_name: str, problems: DocumentErrors
) -> DataFrame:
    from pyspark.sql.functions import expr

    try:
        rows = source.where(expr(where.text))
        _ = rows.schema
    except failures() as error:
        problems.say(where.spot, _said(error, source, source_name))
        return source
    return rows


def _column(
    rows: DataFrame, expression: Expression, source_name: str, problems: DocumentErrors
) -> Column | None:
    """An expression that Spark understands; it is analysed by itself, to blame the right one."""
    from pyspark.sql.functions import expr

    try:
        column = expr(expression.text)
        _ = rows.select(column).schema
    except failures() as error:
        problems.say(expression.spot, _said(error, rows, source_name))
        return None
    return column


def _said(error: Exception, rows: DataFrame, source_name: str) -> str:
    if condition_of(error).startswith("UNRESOLVED_COLUMN"):
        name = parameter_of(error, "objectName").replace("`", "")
        hint = name_hint(name, rows.columns)
        return f"source '{source_name}' has no column '{name}'" + (f"; {hint}" if hint else "")
    return message_of(error) or str(error).partition("\n")[0]


def _cast_hint(named: _Named) -> str:
    kind = named.kind
    if kind is None or kind.is_list or kind.scalar not in _SQL_TYPES:
        return ""
    return f"; write cast({named.expression.text} as {_SQL_TYPES[kind.scalar]})"


def plans(
    typed: list[Typed], sources: Mapping[str, DataFrame], problems: DocumentErrors
) -> list[Frame]:
    """The rows of all mappings whose sources could be opened."""
    found = (
        plan(one, sources[one.mapped.source], problems)
        for one in typed
        if one.mapped.source in sources
    )
    return [frame for frame in found if frame is not None]
