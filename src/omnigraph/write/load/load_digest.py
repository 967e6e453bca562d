"""What is loaded, in few words: by what a load's input is known when the load is repeated.

Owns which inputs are compared by what they hold (what lies in memory) and which by what they are
called (files): a file may be gone by the time a load is repeated. What can be read only once is
not compared. Reads nothing but memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from os import PathLike, fspath

import pyarrow as pa

from omnigraph.errors import OmniGraphError
from omnigraph.write.load.columns.frames import as_table
from omnigraph.write.load.input import is_frame, is_frame_of_spark, names_files
from omnigraph.write.publish.run_ids import digest_of

_AT_ONCE = 65_536


def digest_of_input(data: object) -> object:
    """Input as values of JSON's, equal for equal input."""
    if isinstance(data, str | PathLike) and names_files(data):
        return [fspath(data)]
    if isinstance(data, list | tuple):
        if names_files(data):
            return [fspath(one) for one in data]
        return {"records": digest_of({"records": data})}
    if isinstance(data, str):
        return {"lines": sha256(data.encode(errors="surrogatepass")).hexdigest()}
    if isinstance(data, bytes | bytearray | memoryview):
        return {"lines": sha256(data).hexdigest()}
    if isinstance(data, Mapping):
        return {str(name): _typed(str(name), value) for name, value in data.items()}
    return {"stream": True}


def _typed(name: str, value: object) -> object:
    """What is loaded as one type: files, or a frame."""
    if isinstance(value, str | PathLike | list | tuple):
        return digest_of_input(value)
    if is_frame_of_spark(value) or isinstance(value, pa.RecordBatchReader) or not is_frame(value):
        return {"stream": True}
    try:
        table, _ = as_table(name, value)
    except OmniGraphError:
        return {"stream": True}  # it will be refused in its own words
    return {"frame": _digest_of_table(table)}


def _digest_of_table(table: pa.Table) -> str:
    """The columns of a table, in whatever pieces it is."""
    digest = sha256()
    for field, column in zip(table.schema, table.columns, strict=True):
        whole = column.combine_chunks()
        digest.update(f"{field.name!r} {field.type} {len(whole)}".encode())
        for start in range(0, len(whole), _AT_ONCE):
            part = pa.record_batch([whole.slice(start, _AT_ONCE)], names=["column"])
            digest.update(part.serialize())
    return digest.hexdigest()
