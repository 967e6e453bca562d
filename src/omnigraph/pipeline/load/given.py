"""What was given: files that exist, and frames and lines that have to be written down first.

Owns telling them apart for a load on Spark, in the words of a load in this process. Never
reads any of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from os import PathLike
from typing import TYPE_CHECKING, Any, cast

from omnigraph.errors import BadRequest
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.pipeline.input.load_files import InputFile, find_inputs
from omnigraph.pipeline.load.choice import are_paths
from omnigraph.pipeline.load.stage.frames import Frame, GivenLines, UnstagedInput
from omnigraph.pipeline.load.stage.spark_frames import is_spark_frame
from omnigraph.write.change.type_batch import EntityType
from omnigraph.write.load.columns.frames import as_table, find_frame_type
from omnigraph.write.load.input import LineSources, encode_records, is_text, read_sources

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class LoadInput:
    """The input of one load."""

    files: tuple[InputFile, ...] = ()
    unwritten: tuple[UnstagedInput, ...] = ()

    @property
    def session(self) -> SparkSession | None:
        """The session that frames of Spark's belong to: nothing else can compute them."""
        for one in self.unwritten:
            if isinstance(one, Frame) and is_spark_frame(one.rows):
                return cast("DataFrame", one.rows).sparkSession
        return None


def given(data: object, catalog: Catalog) -> LoadInput:
    """Paths, NDJSON text, envelopes, or frames or paths by type name."""
    names = [*catalog.nodes, *catalog.edges]
    if isinstance(data, Mapping):
        return _by_type(data, catalog, names)
    if isinstance(data, (bytes, bytearray, memoryview)):
        return LoadInput(unwritten=(GivenLines([bytes(data)]),))
    if isinstance(data, str) and is_text(data):
        # As a load in this process takes it, which refuses what is not Unicode.
        sources = cast("LineSources", read_sources(data)).sources
        return LoadInput(unwritten=(GivenLines([source.data for source in sources]),))
    if are_paths(data):
        return LoadInput(tuple(find_inputs(data, names)))
    if not isinstance(data, Iterable) or hasattr(data, "__arrow_c_stream__"):
        raise BadRequest(
            f"cannot load {type(data).__name__}: give a path, NDJSON text, envelope records, or"
            ' frames by type name, like {"Person": frame}'
        )
    return _of_iterable(iter(data), names)


def _of_iterable(items: Iterator[Any], names: list[str]) -> LoadInput:
    first = next(items, None)
    if first is None:
        return LoadInput(unwritten=(GivenLines([]),))
    rest = chain([first], items)
    if isinstance(first, (str, PathLike)):
        return LoadInput(tuple(find_inputs(list(rest), names)))
    return LoadInput(unwritten=(GivenLines(encode_records(rest)),))


def _by_type(data: Mapping[Any, object], catalog: Catalog, names: list[str]) -> LoadInput:
    frames = {name: value for name, value in data.items() if not are_paths(value)}
    if not any(map(_is_frame, frames.values())) and {"type", "edge"} & set(data) - set(names):
        raise BadRequest("this is one envelope: put it into a list")
    types: dict[str, EntityType] = {}
    for name, value in frames.items():
        if not isinstance(name, str):
            raise BadRequest(f"frames are named by their type, found the name {name!r}")
        if not _is_frame(value):
            as_table(name, value)  # which says what a frame is
        type_ = find_frame_type(name, catalog)
        twin = next((other for other, known in types.items() if known == type_), None)
        if twin is not None:
            raise BadRequest(f"'{twin}' and '{name}' are frames of one type; join them")
        types[name] = type_
    paths = {name: value for name, value in data.items() if name not in frames}
    return LoadInput(
        tuple(find_inputs(paths, names)) if paths else (),
        tuple(Frame(type_, name, frames[name]) for name, type_ in types.items()),
    )


def _is_frame(value: object) -> bool:
    return hasattr(value, "__arrow_c_stream__") or hasattr(value, "columns")
