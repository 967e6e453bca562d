"""Checks of a load: queries that must find nothing in what it would publish.

Owns running them on the staged state, and that the verdict is good for what is published: every
type that a check reads is one that the load depends on. Must never change anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from omnigraph.errors import CheckFailed
from omnigraph.lang.query.compile import CompiledQuery, compile_query
from omnigraph.lang.query.params import coerce_params
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.read.queries import Query
from omnigraph.write.publish.base import Base
from omnigraph.write.publish.read_set import ReadSet

ROWS_TOLD = 20
"""So many rows of a check that failed are told; all are counted."""
_ROWS_SHOWN = 3


@dataclass(frozen=True, slots=True)
class StagedCheck:
    """A read query by a name of its own; ``query`` chooses one of several in the source."""

    name: str
    source: str
    query: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    path: str = "<check>"

    def compile(self, catalog: Catalog) -> CompiledQuery:
        """The query, of which the parameters fit too; what is wrong is raised."""
        compiled = compile_query(self.source, catalog, self.query, path=self.path)
        compiled.require_read()
        coerce_params(compiled.params, self.params)
        return compiled


def require_checks(
    checks: Sequence[StagedCheck], base: Base, staged: Snapshot, reads: ReadSet
) -> None:
    """Refuse a state in which a check finds rows; all checks are made before."""
    failed = []
    for check in checks:
        for touched in check.compile(base.catalog).operation.reads:
            key = f"{'edge' if touched.is_edge else 'node'}:{touched.type_name}"
            if key in base.snapshot.tables:
                reads.depend_on(key)
        asked = Query(check.source, check.query, check.params, check.path)
        found = asked.run(staged, base.catalog)
        if len(found):
            told = next(found.pages(ROWS_TOLD))
            failed.append({"name": check.name, "total": len(found), "rows": told})
    if failed:
        raise CheckFailed("\n".join(_lines(failed)), details={"checks": failed})


def _lines(failed: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = []
    for one in failed:
        lines.append(f"check '{one['name']}' finds {one['total']} rows that must not be there:")
        lines += [f"  {msgspec.json.encode(row).decode()}" for row in one["rows"][:_ROWS_SHOWN]]
        if one["total"] > _ROWS_SHOWN:
            lines.append(f"  … and {one['total'] - _ROWS_SHOWN} more")
    return [*lines, f"{len(failed)} of the checks failed; nothing was written"]
