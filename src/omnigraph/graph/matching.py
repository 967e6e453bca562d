"""The match of a mutation, read for a session.

Owns that whoever matches may read, and finds what is shown to them. How a match runs is the
business of `read`, what is done with its rows that of `write`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.graph.access import Access
from omnigraph.lang.query.plan import ReadPlan
from omnigraph.lang.query.values import Values
from omnigraph.manifest.snapshot import catalog_of
from omnigraph.read.output.result import Result
from omnigraph.read.queries import MatchQuery
from omnigraph.storage.budget import Budget

if TYPE_CHECKING:
    from omnigraph.write.publish.base import Base


@dataclass(frozen=True, slots=True)
class SessionMatching:
    """Reading what an actor sees of a branch."""

    access: Access
    branch: str

    def rows(self, match: ReadPlan, values: Values, base: Base, budget: Budget) -> pa.Table:
        """The rows that a match binds on a base."""
        self.access.authorize("read", self.branch, None)
        shown = self.access.limited(base.snapshot, self.branch)
        catalog = catalog_of(shown.schema)
        query = MatchQuery(match, values, budget, self.access.embedding)
        return query.rows(shown, catalog)

    def shown(self, rows: pa.Table) -> list[dict[str, Any]]:
        """Rows as the results of queries have them."""
        return Result(rows, "mutation", "", self.branch).rows
