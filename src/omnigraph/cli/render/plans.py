"""Plans for people: the words of a plan with a colour for every tier.

Owns the colours and the lines about commits. The wording of steps is that of plans.
"""

from __future__ import annotations

from textwrap import indent
from typing import TYPE_CHECKING

import click

from omnigraph.cli.render.tables import time_text
from omnigraph.read.output.cells import printable

if TYPE_CHECKING:
    from omnigraph.evolve.log import SchemaCommit
    from omnigraph.lang.schema.migration.plan import MigrationPlan

_COLOURS = {"refused": "red", "destructive": "magenta", "validated": "yellow", "safe": "green"}


def plan_text(plan: MigrationPlan) -> str:
    """A plan by tiers; printing leaves the colours out where none belong."""
    return plan.describe(_coloured)


def log_text(log: list[SchemaCommit]) -> str:
    """Commits that changed the schema, and what each did to it."""
    return "\n".join(_entry(found) for found in log)


def _entry(found: SchemaCommit) -> str:
    from omnigraph.lang.schema.migration.plan import MigrationPlan

    commit = found.commit
    author = "" if commit.actor is None else f" by {printable(commit.actor)}"
    heading = f"commit {commit.id} of {time_text(commit.created_at)}{author}"
    heading = f"{heading} on {commit.branch or 'main'}"
    if commit.merged_parent_id is not None:
        heading = f"{heading}, merge of {printable(str(commit.metadata.get('source', 'a branch')))}"
    done = "the first schema" if commit.parent_id is None else plan_text(MigrationPlan(found.steps))
    return click.style(heading, fg="cyan") + "\n" + indent(done, "  ")


def _coloured(tier: str, text: str) -> str:
    return click.style(text, fg=_COLOURS[tier], bold=True)
