"""What was given: files that exist, and frames and lines that have to be written down first.

Owns telling them apart for a load on Spark, in the words of a load in this process. Never
reads any of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from omnigraph.lang.schema.catalog import Catalog
from omnigraph.pipeline.input.load_files import InputFile, find_inputs
from omnigraph.pipeline.load.stage.frames import Frame, GivenLines, UnstagedInput
from omnigraph.pipeline.load.stage.spark_frames import is_spark_frame
from omnigraph.write.load.columns.frames import as_table, frame_types
from omnigraph.write.load.input import (
    PathInput,
    RecordInput,
    TextInput,
    classify,
    is_frame,
    names_files,
    require_names,
)
from omnigraph.write.load.streams import whole_lines

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
    match classify(data):
        case TextInput(pieces):
            return LoadInput(unwritten=(GivenLines(whole_lines(pieces)),))
        case RecordInput() as records:
            return LoadInput(unwritten=(GivenLines(records.lines(catalog).pieces),))
        case PathInput(paths):
            return LoadInput(tuple(find_inputs(list(paths), names)))
        case found:
            return _by_type(found.by_type, catalog, names)


def _by_type(data: Mapping[Any, object], catalog: Catalog, names: list[str]) -> LoadInput:
    frames = {name: value for name, value in data.items() if not names_files(value)}
    require_names(frames, data, names)
    for name, value in frames.items():
        if not is_frame(value):
            as_table(name, value)  # which says what a frame is
    paths = {name: value for name, value in data.items() if name not in frames}
    return LoadInput(
        tuple(find_inputs(paths, names)) if paths else (),
        tuple(
            Frame(type_, name, frames[name]) for name, type_ in frame_types(frames, catalog).items()
        ),
    )
