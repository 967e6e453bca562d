"""The outcome of a load: what its caller is told, whatever engine it ran on.

Owns assembling it. Never loads anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.manifest.entries import Commit
from omnigraph.write.change.results import BulkWork, LoadResult
from omnigraph.write.load.options import LoadOptions
from omnigraph.write.publish.driver import WriteOutcome, Writer


@dataclass(frozen=True, slots=True)
class Accepted:
    """What a load has taken and left: rows by type key, rejects by code, and their list."""

    rows: Mapping[str, int]
    rejects: Mapping[str, int]
    rejects_file: str | None = None

    def of(self, kind: str) -> dict[str, int]:
        """The rows of nodes or of edges, by the name of their type."""
        named = {key.partition(":")[::2]: count for key, count in self.rows.items()}
        return {name: count for (found, name), count in named.items() if found == kind}


def load_result(
    writer: Writer,
    actor: str | None,
    options: LoadOptions,
    written: WriteOutcome,
    accepted: Accepted,
    *,
    work: BulkWork | None = None,
) -> LoadResult:
    """What a load did; one with ``work`` ran on Spark."""
    return LoadResult(
        writer.branch,
        options.mode,
        accepted.of("node"),
        accepted.of("edge"),
        written.commit,
        actor,
        writer.fork_from,
        written.branch_created,
        rejects=accepted.rejects,
        rejects_file=accepted.rejects_file,
        engine="inline" if work is None else "spark",
        is_dry_run=options.dry_run,
        work=work,
    )


def repeated_result(
    writer: Writer, actor: str | None, options: LoadOptions, done: Commit, *, engine: str = "inline"
) -> LoadResult:
    """What is told of a load whose commit the branch has."""
    return LoadResult(
        writer.branch, options.mode, {}, {}, done, actor, engine=engine, repeats_run=True
    )
