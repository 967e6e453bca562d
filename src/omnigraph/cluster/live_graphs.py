"""Graphs as they are: whether one is there, with which schema, at which version.

Owns looking. Changes nothing, not even what opening a graph would mend.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph import graph
from omnigraph.cluster.layout import Root
from omnigraph.cluster.ledger import Observation
from omnigraph.config.cluster.digests import digest_of_text
from omnigraph.errors import NotFound, OmniGraphError
from omnigraph.evolve.genesis import find_remains
from omnigraph.lang.schema.migration.plan import MigrationPlan
from omnigraph.lang.source import Source
from omnigraph.storage.objects.control_objects import ControlObjects


@dataclass(frozen=True, slots=True)
class LiveGraph:
    """A graph that is there."""

    observation: Observation
    schema: str


@dataclass(frozen=True, slots=True)
class BrokenGraph:
    """Something that is no graph, or none that can be opened."""

    reason: str
    is_unfinished_init: bool = False
    """Whether it is nothing but what an init that died has left: no row was ever in it."""


def look_at(root: Root, id_: str) -> LiveGraph | BrokenGraph | None:
    """A graph by its id; None where there is nothing at all."""
    location = root.graph(id_)
    try:
        opened = graph.open(str(location), read_only=True)
        state = opened.manifest.view().state
        seen = Observation(state.version, digest_of_text(state.schema.source))
        return LiveGraph(seen, state.schema.source)
    except NotFound:
        return _remains(root, id_)
    except OmniGraphError as error:
        return BrokenGraph(error.message)


def _remains(root: Root, id_: str) -> BrokenGraph | None:
    location = root.graph(id_)
    objects = ControlObjects(location)
    try:
        if not objects.list():
            return None
        others = find_remains(objects)
    except OmniGraphError as error:
        return BrokenGraph(error.message)
    if others.others:
        found = others.describe_others()
        return BrokenGraph(f"there is no graph at {location}, but files are ({found})")
    return BrokenGraph(
        f"there is no graph at {location}, but what an init that died has left",
        is_unfinished_init=True,
    )


def plan_for(root: Root, id_: str, schema: Source) -> MigrationPlan:
    """What it takes to give a graph a schema."""
    opened = graph.open(str(root.graph(id_)), read_only=True)
    return opened.plan_schema(schema, check=True)
