"""Samples: the first rows of a file or a frame, in the types that its values have.

Owns reading them, and how many there are at most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from omnigraph.errors import BadRequest

ROWS = 1_000_000
BATCH = 65_536


@dataclass(frozen=True, slots=True)
class Sample:
    """Rows of one input under the name that a type of them would be derived from.

    ``is_whole`` says that there are no others.
    """

    name: str
    rows: pa.Table
    is_whole: bool
    path: str | None = None

    @property
    def is_csv(self) -> bool:
        """Whether its columns can be called otherwise when it is loaded."""
        return self.path is not None and not self.path.endswith(".parquet")


def samples_of(data: object, *, null: str | None = None, delimiter: str = ",") -> list[Sample]:
    """A sample of each file or frame."""
    if isinstance(data, Mapping):
        found = [_of(str(name), one, null, delimiter) for name, one in data.items()]
    elif isinstance(data, str | Path):
        found = [_of_file(Path(data), null, delimiter)]
    elif isinstance(data, Sequence) and all(isinstance(one, str | Path) for one in data):
        found = [_of_file(Path(one), null, delimiter) for one in data]
    else:
        raise BadRequest("give files, or frames by the names of their types")
    if not found:
        raise BadRequest("there is nothing to look at: give at least one file")
    return found


def _of(name: str, one: object, null: str | None, delimiter: str) -> Sample:
    if isinstance(one, str | Path):
        found = _of_file(Path(one), null, delimiter)
        return Sample(name, found.rows, found.is_whole, found.path)
    from omnigraph.write.load.columns.frames import as_table

    rows, _ = as_table(name, one)
    return Sample(name, rows.slice(0, ROWS), rows.num_rows <= ROWS)


def _of_file(path: Path, null: str | None, delimiter: str) -> Sample:
    try:
        if path.suffix == ".parquet":
            batches = pq.ParquetFile(path).iter_batches(BATCH)
            rows, is_whole = _first(batches, pq.read_schema(path))
        elif path.suffix in {".csv", ".tsv"}:
            rows, is_whole = _csv(path, null, "\t" if path.suffix == ".tsv" else delimiter)
        else:
            raise BadRequest(f"{path} is neither CSV nor Parquet")
    except FileNotFoundError:
        raise BadRequest(f"there is no file {path}") from None
    except (OSError, ValueError) as error:
        raise BadRequest(f"cannot read {path}: {error}") from None
    return Sample(path.stem, rows, is_whole, str(path))


def _csv(path: Path, null: str | None, delimiter: str) -> tuple[pa.Table, bool]:
    """A CSV file; types are those of all its rows where it is small, else as far as it is read."""
    convert = pa_csv.ConvertOptions(
        null_values=[""] if null is None else ["", null],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        timestamp_parsers=[pa_csv.ISO8601],
    )
    parse = pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    read = pa_csv.ReadOptions(block_size=64 << 20)
    reader = pa_csv.open_csv(path, read, parse, convert)
    return _first(reader, reader.schema)


def _first(batches: Any, schema: pa.Schema) -> tuple[pa.Table, bool]:
    """The first rows, and whether they are all."""
    taken, count = [], 0
    for batch in islice(batches, None):
        taken.append(batch)
        count += batch.num_rows
        if count > ROWS:
            break
    rows = pa.Table.from_batches(taken, schema)
    return rows.slice(0, ROWS), count <= ROWS
