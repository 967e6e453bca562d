"""The outcome of a load: what its caller is told, whatever engine it ran on.

Owns assembling it. Never loads anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.write.change.protocol import WriteOutcome
from omnigraph.write.change.results import BulkWork, LoadResult
from omnigraph.write.load.options import LoadOptions


@dataclass(frozen=True, slots=True)
class Accepted:
    """What a load has taken and left: rows by type key, rejects by code, and their list."""

    rows: Mapping[str, int] = field(default_factory=dict)
    rejects: Mapping[str, int] = field(default_factory=dict)
    rejects_file: str | None = None

    def of(self, kind: str) -> dict[str, int]:
        """The rows of nodes or of edges, by the name of their type."""
        named = {key.partition(":")[::2]: count for key, count in self.rows.items()}
        return {name: count for (found, name), count in named.items() if found == kind}


def load_result(
    options: LoadOptions,
    written: WriteOutcome,
    actor: str | None,
    accepted: Accepted,
    *,
    engine: str = "inline",
    work: BulkWork | None = None,
) -> LoadResult:
    """What a load did; of one that the branch has, that and nothing else."""
    if written.repeats:
        return LoadResult(
            written.branch,
            options.mode,
            {},
            {},
            written.commit,
            actor,
            engine=engine,
            repeats_run=True,
        )
    return LoadResult(
        written.branch,
        options.mode,
        accepted.of("node"),
        accepted.of("edge"),
        written.commit,
        actor,
        written.fork_from,
        written.branch_created,
        rejects=accepted.rejects,
        rejects_file=accepted.rejects_file,
        engine=engine,
        is_dry_run=options.dry_run,
        work=work,
    )
