"""Sources of a pipeline as DataFrames: files, tables of Spark's catalog, and queries over them.

Owns opening them and what is left behind by that: copies and views are gone after the block.
Never reads more than Spark needs to know the columns.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.errors import OmniGraphError
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.pipeline.declared.document import Document, PipelineSource
from omnigraph.pipeline.declared.yaml_node import DocumentErrors
from omnigraph.pipeline.input.input_files import FoundFile, is_remote, open_file
from omnigraph.pipeline.input.load_files import find_files
from omnigraph.pipeline.source import FORMAT, register
from omnigraph.pipeline.spark.engine import SparkEngine
from omnigraph.pipeline.spark.errors import condition_of, failures, message_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FORMATS = ("avro", "csv", "jdbc", "json", FORMAT, "orc", "parquet", "text", "xml")
_COPIES_AT_ONCE = 8
_PIECE = 8 << 20


@contextmanager
def open_sources(
    document: Document, engine: SparkEngine, problems: DocumentErrors, *, columns_only: bool = False
) -> Iterator[dict[str, DataFrame]]:
    """The sources that can be opened; what is wrong with the others is told.

    With ``columns_only`` nothing may be computed from them.
    """
    with ExitStack() as after:
        opening = _Opening(engine, problems, after, columns_only=columns_only)
        has_queries = any(source.query is not None for source in document.sources.values())
        found: dict[str, DataFrame] = {}
        for name, source in document.sources.items():
            frame = opening.open(source)
            if frame is None:
                continue
            found[name] = frame
            if has_queries:
                opening.name(source, frame)
        yield found


@dataclass(frozen=True, slots=True)
class _Copies:
    """Objects as files of a directory, with the names of directories that they had."""

    directory: Path
    places: list[Path]

    @property
    def paths(self) -> list[str]:
        return list(map(str, self.places))

    @property
    def has_partitions(self) -> bool:
        """Whether names of directories hold columns (`year=2026/`)."""
        inner = (place.relative_to(self.directory).parent for place in self.places)
        return any("=" in str(names) for names in inner)


class _Opening:
    def __init__(
        self, engine: SparkEngine, problems: DocumentErrors, after: ExitStack, *, columns_only: bool
    ) -> None:
        self._engine = engine
        self._problems = problems
        self._after = after
        self._columns_only = columns_only

    def open(self, source: PipelineSource) -> DataFrame | None:
        """A source, or None, and a problem."""
        try:
            frame = self._frame(source)
            # On Connect nothing is looked at before somebody asks.
            _ = frame.schema
        except failures() as error:
            self._say(source, error)
            return None
        except OmniGraphError as error:
            self._problems.say(source.spot, str(error))
            return None
        return frame

    def name(self, source: PipelineSource, frame: DataFrame) -> None:
        """Let the queries of later sources see it."""
        try:
            frame.createTempView(source.name)
        except failures() as error:
            self._say(source, error)
            return
        self._after.callback(self._engine.session.catalog.dropTempView, source.name)

    def _frame(self, source: PipelineSource) -> DataFrame:
        session = self._engine.session
        if source.format == FORMAT:
            # Its tasks read the graph themselves, wherever it is.
            register(session)
            return session.read.format(FORMAT).options(**source.options).load(*source.paths)
        if source.table is not None:
            return session.read.table(source.table)
        if source.query is not None:
            return session.sql(source.query)
        reader = session.read.format(source.format or "").options(**source.options)
        if source.schema is not None:
            reader = reader.schema(source.schema)
        if not source.paths:
            return reader.load()
        if not self._engine.is_local or not any(map(is_remote, source.paths)):
            return reader.load(list(source.paths))
        copies = [self._copies(path) if is_remote(path) else None for path in source.paths]
        if len(copies) == 1 and copies[0] is not None and copies[0].has_partitions:
            reader = reader.option("basePath", str(copies[0].directory))
        return reader.load(
            [
                place
                for path, copied in zip(source.paths, copies, strict=True)
                for place in ([path] if copied is None else copied.paths)
            ]
        )

    def _copies(self, path: str) -> _Copies:
        """The objects of a path on this disk: a local Spark comes without object stores."""
        files = find_files(path)
        keys = [file.uri.removeprefix("s3://") for file in files]
        base = os.path.commonpath([key.rpartition("/")[0] for key in keys])
        directory = Path(tempfile.mkdtemp(prefix="omnigraph-source-"))
        self._after.callback(shutil.rmtree, directory, ignore_errors=True)
        count = 1 if self._columns_only else len(files)
        places = [directory / key[len(base) :].lstrip("/") for key in keys[:count]]
        with ThreadPoolExecutor(_COPIES_AT_ONCE) as threads:
            list(threads.map(_copy, files[:count], places))
        return _Copies(directory, places)

    def _say(self, source: PipelineSource, error: Exception) -> None:
        said = message_of(error) or str(error).partition("\n")[0]
        if condition_of(error).startswith("DATA_SOURCE_NOT_FOUND"):
            hint = did_you_mean(source.format or "", _FORMATS)
            said = f"Spark has no data source '{source.format}'" + (f"; {hint}" if hint else "")
        elif condition_of(error).startswith("TEMP_TABLE_OR_VIEW_ALREADY_EXISTS"):
            said = f"the session has a view '{source.name}' already: name the source otherwise"
        self._problems.say(source.spot, said)


def _copy(file: FoundFile, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    with closing(open_file(file.uri, file.size, file.version)) as opened, place.open("wb") as copy:
        shutil.copyfileobj(opened, copy, _PIECE)
