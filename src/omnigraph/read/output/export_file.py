"""Writing an export to a file: all of it or nothing, and what was written.

Owns which file is replaced and the report. Never leaves a half-written file under
the name that was asked for.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from omnigraph.errors import BadRequest
from omnigraph.lang.schema.catalog import EntityKind
from omnigraph.read.output.export import Export
from omnigraph.storage.objects.files import replaced_file


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export wrote: how many entities of every type, and how many bytes."""

    path: str
    nodes: dict[str, int]
    edges: dict[str, int]
    bytes: int

    @property
    def total(self) -> int:
        """How many entities, which is how many lines."""
        return sum(self.nodes.values()) + sum(self.edges.values())


def write_export(export: Export, path: str | Path) -> ExportReport:
    """Write all lines to a local file, replacing it in one step when they are complete."""
    target = _target(path)
    counts: dict[EntityKind, dict[str, int]] = {"node": {}, "edge": {}}
    for type_, _ in export.tables:
        counts[type_.kind][type_.name] = 0
    size = 0
    try:
        with replaced_file(target) as file:
            for chunk in export.chunks():
                file.write(chunk.data)
                counts[chunk.kind][chunk.type_name] += chunk.rows
                size += len(chunk.data)
    except OSError as error:
        raise BadRequest(f"cannot write {target}: {error.strerror or error}") from error
    return ExportReport(str(path), counts["node"], counts["edge"], size)


def _target(path: str | Path) -> Path:
    if "://" in str(path):
        raise BadRequest(f"cannot export to {path}: give the path of a local file")
    # A link keeps its place: what it points to is replaced.
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        raise BadRequest(f"cannot export to {path}: it is there and not a file")
    return target
