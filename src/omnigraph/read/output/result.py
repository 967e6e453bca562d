"""Results: what a query returned, as a table, as rows, and as other libraries want it.

Owns the conversions. Immutable; nothing is converted before somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, overload

import msgspec
import pyarrow as pa

from omnigraph.errors import BadRequest
from omnigraph.extras import require_extra
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.read.output.json_text import join_texts, json_text

if TYPE_CHECKING:
    from rich.console import Group

# Rows that are turned into text or Python objects at a time.
PAGE = 65_536


@dataclass(frozen=True, repr=False)
class Result:
    """The rows of one query at one commit.

    ``branch`` is the branch that was asked, ``snapshot`` the commit; one of them is None.
    """

    table: pa.Table
    """The rows, in the types that are stored."""
    query_name: str
    commit_id: str
    branch: str | None
    snapshot: str | None = None

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in the order of the query."""
        return list(self.table.column_names)

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """The rows as JSON would have them: dates are texts, null is explicit."""
        return [row for page in self.pages() for row in page]

    def pages(self, size: int = PAGE) -> Iterator[list[dict[str, Any]]]:
        """The same rows, so many at a time.

        >>> films = graph.query("match { $f: Film } return { $f.year as year } order { year }")
        >>> [len(page) for page in films.pages(size=1)]
        [1, 1]
        """
        if all(_is_plain(field.type) for field in self.table.schema):
            for start in range(0, len(self), size):
                yield self.table.slice(start, size).to_pylist()
            return
        for text in self.json_pages(size):
            yield msgspec.json.decode(text, type=list[dict[str, Any]])

    def json_pages(self, size: int = PAGE) -> Iterator[str]:
        """The rows as JSON arrays of so many rows each.

        >>> films = graph.query("match { $f: Film } return { $f.year as year } order { year }")
        >>> next(films.json_pages(size=1))
        '[{"year":1999}]'
        """
        for start in range(0, len(self), size):
            lines = _json_lines(self.table.slice(start, size))
            yield f"[{','.join(lines.to_pylist())}]"

    def json_lines(self, size: int = PAGE) -> Iterator[str]:
        """The rows as JSON, one a line, so many lines at a time.

        >>> films = graph.query("match { $f: Film } return { $f.year as year } order { year }")
        >>> print(*films.json_lines())
        {"year":1999}
        {"year":2014}
        """
        for start in range(0, len(self), size):
            lines = _json_lines(self.table.slice(start, size))
            yield "\n".join(lines.to_pylist())

    def json_rows(self) -> str:
        """All rows as one JSON array.

        >>> films = graph.query("match { $f: Film } return { $f.year as year } order { year }")
        >>> films.json_rows()
        '[{"year":1999},{"year":2014}]'
        """
        return f"[{','.join(page[1:-1] for page in self.json_pages())}]"

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table; a `DateTime` is a timestamp of milliseconds in UTC.

        >>> films = graph.query("match { $f: Film } return { $f.year as year } order { year }")
        >>> films.to_arrow().schema.field("year").type
        DataType(int32)
        """
        return self.table

    def to_pandas(self) -> Any:
        """The rows as a pandas frame; integers have pandas' own types, which know null.

        >>> films = graph.query("match { $f: Film } return { $f.year as year } order { year }")
        >>> films.to_pandas()["year"].tolist()
        [1999, 2014]
        """
        require_extra("notebook", "to_pandas()", otherwise="use to_arrow() or to_dicts()")
        pd = import_module("pandas")
        integers = {
            pa.int32(): pd.Int32Dtype(),
            pa.int64(): pd.Int64Dtype(),
            pa.uint32(): pd.UInt32Dtype(),
            pa.uint64(): pd.UInt64Dtype(),
        }
        return self.to_arrow().to_pandas(types_mapper=integers.get)

    def to_polars(self) -> Any:
        """The rows as a polars frame; polars has to be installed.

        >>> films = graph.query("match { $f: Film } return { $f.year as year } order { year }")
        >>> films.to_polars().shape
        (2, 1)
        """
        try:
            polars = import_module("polars")
        except ImportError:
            raise BadRequest(
                "polars is not installed: install it (pip install polars), or use to_arrow() "
                "or to_pandas()"
            ) from None
        return polars.from_arrow(self.to_arrow())

    def to_dicts(self) -> list[dict[str, Any]]:
        """The rows with Python's own values: a `Date` is a date, a `DateTime` a datetime.

        >>> films = graph.query("match { $f: Film } return { $f.year as year } order { year }")
        >>> films.to_dicts()
        [{'year': 1999}, {'year': 2014}]
        """
        found: list[dict[str, Any]] = self.table.to_pylist()
        return found

    def scalar(self) -> Any:
        """The only value there is; an error when there is none, or another.

        >>> graph.query("match { $f: Film } return { count($f) as films }").scalar()
        2
        """
        if self.table.num_rows != 1 or self.table.num_columns != 1:
            raise BadRequest(
                f"the result is not one value: it has {_counted(len(self), 'row')} and "
                f"{_counted(self.table.num_columns, 'column')}"
            )
        return self.table.column(0)[0].as_py()

    def head(self, count: int = 5) -> Result:
        """The first rows.

        >>> films = graph.query("match { $f: Film } return { $f.year as year } order { year }")
        >>> films.head(1).rows
        [{'year': 1999}]
        """
        return self[: max(count, 0)]

    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, key: slice) -> Result: ...

    @overload
    def __getitem__(self, key: str) -> list[Any]: ...

    def __getitem__(self, key: int | slice | str) -> dict[str, Any] | Result | list[Any]:
        """A row by its number, some rows as a result, or the values of a column by its name."""
        if isinstance(key, str):
            if key not in self.columns:
                hint = did_you_mean(key, self.columns) or f"there are {', '.join(self.columns)}"
                raise BadRequest(f"there is no column {key!r}: {hint}")
            return [row[key] for row in self.rows]
        places = range(len(self))[key]
        if isinstance(places, int):
            return next(iter(self._taken([places])))
        return self._taken(places)

    def _taken(self, places: Sequence[int]) -> Result:
        return replace(self, table=self.table.take(pa.array(places, pa.int64())))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """What other libraries read Arrow data through: `pl.DataFrame(result)`, DuckDB, pyarrow."""
        return self.table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (row for page in self.pages() for row in page)

    # -- for people ------------------------------------------------------------------

    @property
    def target(self) -> str:
        """Where the rows are from, in words."""
        return f"branch {self.branch}" if self.snapshot is None else f"snapshot {self.snapshot}"

    def __repr__(self) -> str:
        from omnigraph.read.output.shown_text import text_of

        return text_of(self)

    def __rich__(self) -> Group:
        from omnigraph.read.output.shown_text import rich_text

        return rich_text(self)

    def _repr_html_(self) -> str:
        from omnigraph.read.output.shown_text import html_of

        return html_of(self)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _json_lines(table: pa.Table) -> pa.Array:
    """Each row as a JSON object."""
    if not table.num_columns:
        return pa.array(["{}"] * table.num_rows, pa.string())
    pieces: list[pa.Array | str] = []
    for number, name in enumerate(table.column_names):
        label = msgspec.json.encode(name).decode()
        pieces.append(("{" if number == 0 else ",") + label + ":")
        pieces.append(json_text(table.column(name).combine_chunks()))
    return join_texts(*pieces, "}")


def _is_plain(type_: pa.DataType) -> bool:
    """Whether Python's own values are what JSON would have."""
    plain = (pa.types.is_string, pa.types.is_integer, pa.types.is_boolean)
    return any(test(type_) for test in plain)
