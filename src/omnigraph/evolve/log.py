"""The schema log: the commits that changed the schema of a branch, with what they did to it.

Owns reading the steps that a commit notes. Never reads a table or a schema.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from omnigraph.lang.schema.migration.plan import MigrationPlan
from omnigraph.lang.schema.migration.steps import Step, steps_from_json
from omnigraph.manifest.entries import SCHEMA_STEPS, Commit


@dataclass(frozen=True, slots=True)
class SchemaCommit:
    """A commit that changed the schema; the one that made the graph has no steps."""

    commit: Commit
    steps: tuple[Step, ...]

    def __repr__(self) -> str:
        commit = self.commit
        author = "" if commit.actor is None else f" by {commit.actor}"
        made = "the first schema" if commit.parent_id is None else str(MigrationPlan(self.steps))
        return f"commit {commit.id}{author} on {commit.branch or 'main'}: {made}"


def schema_log(commits: Iterable[Commit]) -> list[SchemaCommit]:
    """Those of some commits that changed the schema, in their order."""
    return [
        SchemaCommit(commit, steps_from_json(commit.metadata.get(SCHEMA_STEPS, ())))
        for commit in commits
        if commit.parent_id is None or commit.metadata.get(SCHEMA_STEPS)
    ]
