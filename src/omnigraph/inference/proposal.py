"""Proposals: a schema for some files or frames, and the commands that load them under it.

Owns what is a node and what an edge: rows that only tie others together are edges, all others
nodes. Every choice that could be another is said in a comment.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow.compute as pc

from omnigraph.graph.guard import guarded
from omnigraph.inference.columns import Column, column_of, property_name, singular, type_name
from omnigraph.inference.samples import Sample, samples_of
from omnigraph.write.load.csv_options import CsvOptions

ENDS = ("from", "to")


@dataclass(frozen=True, slots=True)
class Reference:
    """A column whose values are keys of a type."""

    column: Column
    target: str


@dataclass(frozen=True, slots=True)
class ProposedType:
    """The rows of an input as a type; an edge type has two references and no key."""

    sample: Sample
    name: str
    columns: Sequence[Column]
    key: Column | None = None
    references: Sequence[Reference] = ()

    @property
    def is_edge(self) -> bool:
        """Whether its rows only tie others together."""
        return self.key is None and len(self.references) >= len(ENDS)

    @property
    def ends(self) -> Sequence[Reference]:
        """Where an edge begins and ends."""
        return self.references[: len(ENDS)] if self.is_edge else ()

    @property
    def properties(self) -> list[Column]:
        """The columns that are not ends."""
        ends = [end.column for end in self.ends]
        return [column for column in self.columns if column not in ends]

    @property
    def renamed(self) -> dict[str, str]:
        """What columns have to be called when they are loaded, where it is something else."""
        ends = zip((end.column.source for end in self.ends), ENDS, strict=False)
        others = ((column.source, column.name) for column in self.properties)
        return {source: name for source, name in (*ends, *others) if source != name}


@dataclass(frozen=True, slots=True)
class InferredSchema:
    """A schema that fits some data, and the commands that load it."""

    schema: str
    commands: tuple[str, ...]

    def __str__(self) -> str:
        return self.schema


@guarded
def infer(data: object, *, null: str | None = None, delimiter: str = ",") -> InferredSchema:
    """Propose a schema for CSV and Parquet files, or for frames by name; nothing is loaded.

    The first million rows of each are looked at. Types follow from values, keys from columns
    whose values are all different, edges from columns whose values are keys of others.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"title": ["Speed", "Heat"], "year": [1994, 1995]})
    >>> proposal = og.infer({"Film": frame})
    >>> "title: String @key" in proposal.schema
    True
    """
    # Refuses what these cannot be.
    CsvOptions(delimiter=delimiter, null=null)
    types = [_proposed(one) for one in samples_of(data, null=null, delimiter=delimiter)]
    types = [replace(one, key=_key(one, types)) for one in types]
    types = [_with_references(one, types) for one in types]
    nodes = [one for one in types if not one.is_edge]
    edges = [one for one in types if one.is_edge]
    parts = [_node_text(one) for one in nodes] + [_edge_text(one) for one in edges]
    return InferredSchema("\n".join(parts), _commands(types, null, delimiter))


def _proposed(sample: Sample) -> ProposedType:
    columns = [
        column_of(name, values, is_text=sample.is_csv)
        for name, values in zip(sample.rows.column_names, sample.rows.columns, strict=True)
    ]
    return ProposedType(sample, type_name(sample.name), columns)


def _key(one: ProposedType, types: Sequence[ProposedType]) -> Column | None:
    """The key among the columns whose values are all different: what others refer to, if any do.

    A number is a key if it is called so: measurements are often all different.
    """
    others = [column for other in types if other is not one for column in other.columns]
    keys = [
        column
        for column in one.columns
        if column.can_be_key and (column.type == "String" or _rank(column, one.name) < _UNNAMED)
    ]

    def order(column: Column) -> tuple[int, int, int]:
        asked = sum(_refers(other, column, one.name) for other in others)
        return -asked, _rank(column, one.name), one.columns.index(column)

    return min(keys, key=order, default=None)


_UNNAMED = 8


def _rank(column: Column, type_: str) -> int:
    """How likely a column is the key by its name."""
    name, own = property_name(column.source).lower(), type_.lower()
    likely = ("id", f"{own}_id", f"{own}id", "key", "code", f"{own}_code", "number", own)
    return likely.index(name) if name in likely else _UNNAMED


def _with_references(one: ProposedType, types: Sequence[ProposedType]) -> ProposedType:
    """With the columns that hold keys; a key that is a reference itself is no key."""
    found = [
        Reference(column, target.name)
        for column in one.columns
        for target in types
        if target.key is not None and column is not target.key
        if _refers(column, target.key, target.name)
    ]
    # Of several types that a column could refer to, the one that its name is like.
    first: dict[str, Reference] = {}
    for reference in sorted(found, key=lambda one: not _alike(one.column, one.target)):
        first.setdefault(reference.column.source, reference)
    references = [first[column.source] for column in one.columns if column.source in first]
    key = one.key
    if key is not None and len(references) >= len(ENDS):
        is_reference = key.source in first
        key = None if is_reference or _is_chance(key, one, references, types) else key
    return ProposedType(one.sample, one.name, one.columns, key, tuple(references))


def _is_chance(
    key: Column, one: ProposedType, references: Sequence[Reference], types: Sequence[ProposedType]
) -> bool:
    """Whether values that are all different only happen to be, in rows that begin with two keys."""
    if _rank(key, one.name) < _UNNAMED:
        return False
    ends = references[len(ENDS) - 1].column
    if one.columns.index(ends) > one.columns.index(key):
        return False
    others = [column for other in types if other is not one for column in other.columns]
    return not any(_refers(column, key, one.name) for column in others)


def _refers(column: Column, key: Column, type_: str) -> bool:
    """Whether the values of a column are keys of a type, and that is not by chance."""
    if not len(column.values) or column.type != key.type:
        return False
    if column.type != "String" and not _alike(column, type_):
        return False
    values = column.values.cast(key.values.type)
    return bool(pc.all(pc.is_in(values.unique(), value_set=key.values)).as_py())


def _alike(column: Column, target: str) -> bool:
    """Whether the name of a column speaks of a type."""
    words = [singular(word) for word in property_name(column.source).lower().split("_")]
    return target.lower() in "".join(words)


# -- as text -----------------------------------------------------------------------------


def _node_text(one: ProposedType) -> str:
    lines = [f"// {_origin(one.sample)}", f"node {one.name} {{"]
    for column in one.columns:
        spelled = f"    {column.name}: {column.spelled}"
        if column is one.key:
            lines.append(f"    // all {len(column.values):,} values are different")
            spelled += " @key"
        lines += [
            f"    // its values are keys of {reference.target}: an edge would say it better"
            for reference in one.references
            if reference.column is column
        ]
        lines += _noted(column)
        lines.append(spelled)
    if one.key is None:
        lines.insert(1, "// no column tells every row from every other: ids are made")
    return "\n".join([*lines, "}", ""])


def _edge_text(one: ProposedType) -> str:
    source, target = one.ends
    why = " and ".join(f"`{end.column.source}` holds keys of {end.target}" for end in one.ends)
    head = f"edge {one.name}: {source.target} -> {target.target}"
    lines = [f"// {_origin(one.sample)}: {why}"]
    if not one.properties:
        return "\n".join([*lines, head, ""])
    body = [
        line
        for column in one.properties
        for line in (*_noted(column), f"    {column.name}: {column.spelled}")
    ]
    return "\n".join([*lines, f"{head} {{", *body, "}", ""])


def _noted(column: Column) -> list[str]:
    return [] if column.note is None else [f"    // {column.note}"]


def _origin(sample: Sample) -> str:
    rows = f"{sample.rows.num_rows:,} rows"
    if sample.rows.num_rows == 1:
        rows = "1 row"
    where = sample.name if sample.path is None else sample.path
    return f"{where}: {rows}" if sample.is_whole else f"{where}: the first {rows}"


def _commands(types: Sequence[ProposedType], null: str | None, delimiter: str) -> tuple[str, ...]:
    """What to type next; frames are loaded from Python."""
    if any(one.sample.path is None for one in types):
        return ()
    words = ["omnigraph", "load", "graph.omni", "--mode", "append"]
    renamed: dict[str, str] = {}
    for one in types:
        words += ["--data", f"{one.name}={one.sample.path}"]
        if one.sample.is_csv:
            renamed |= {f"{one.name}.{old}": new for old, new in one.renamed.items()}
    for old, new in renamed.items():
        words += ["--rename", f"{old}={new}"]
    if null is not None:
        words += ["--null", null]
    if delimiter != ",":
        words += ["--delimiter", delimiter]
    return ("omnigraph init graph.omni --schema schema.pg", shlex.join(words))
