"""What the driver and the tasks of a load tell each other: plain data.

Owns its shape. Everything here is sent to executors and back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.embed.configuration import EmbedderConfig
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.pipeline.input.splits import Split
from omnigraph.pipeline.load.stage.area import StagingArea
from omnigraph.storage.tables.table import Table
from omnigraph.storage.tables.write_rows import WrittenRows
from omnigraph.write.load.rejects import Reject


@dataclass(frozen=True, slots=True)
class StageJob:
    """What every staging task needs to know: the schema, and the tables to write for."""

    catalog: Catalog
    tables: Mapping[str, Table]
    area: StagingArea
    embedding: EmbedderConfig


@dataclass(frozen=True, slots=True)
class RowOrigin:
    """Rows of one type that came from one split: from the ``first`` accepted one on."""

    split: int
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class StagedRows:
    """One data file of a type, and where its rows came from, in their order."""

    type_key: str
    written: WrittenRows
    runs: tuple[RowOrigin, ...]
    size: int
    has_given_ids: bool


@dataclass(frozen=True, slots=True)
class StagedSplit:
    """What became of one split; the rejects count lines from the beginning of the split."""

    number: int
    lines: int
    accepted: Mapping[str, int]
    codes: Mapping[str, int]
    rejects: tuple[Reject, ...] = ()


@dataclass(frozen=True, slots=True)
class StagedTask:
    """What one staging task has done, in the order of the input."""

    splits: tuple[StagedSplit, ...]
    rows: tuple[StagedRows, ...]
    embedding: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class SplitGroup:
    """The splits of one task."""

    job: StageJob
    splits: tuple[Split, ...]
    shown: int = field(default=100)
    """How many rejects of a split are told; all of them are counted."""
