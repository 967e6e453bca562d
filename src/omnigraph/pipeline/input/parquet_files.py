"""Parquet files: opening one for its footer or its rows.

Owns the errors of what is no Parquet. Never reads more than it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from omnigraph.errors import BadRequest
from omnigraph.pipeline.input.input_files import is_remote, local_errors, open_file
from omnigraph.pipeline.input.load_files import InputFile

# Columns are decoded as they are asked for, so a row group need not fit into memory.
_COLUMN_BUFFER = 1 << 20


@contextmanager
def open_parquet(file: InputFile) -> Iterator[Any]:
    """A `pyarrow.parquet.ParquetFile`; what is wrong with it is told with its name."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    remote = is_remote(file.uri)
    # Many small reads are slow over a network: there, a row group is fetched at once.
    options = {"pre_buffer": True} if remote else {"buffer_size": _COLUMN_BUFFER}
    with local_errors(file.uri), open_file(file.uri, file.size, file.version) as opened:
        try:
            yield pq.ParquetFile(pa.PythonFile(opened, mode="r"), **options)
        except UnicodeDecodeError:
            said = f"cannot read {file.uri} as Parquet: the name of a column is not UTF-8"
            raise BadRequest(said) from None
        except (pa.ArrowException, OSError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            reason = str(error).partition("\n")[0].rstrip(". ")
            raise BadRequest(f"cannot read {file.uri} as Parquet: {reason}") from None
