"""Where things are under the storage root of a cluster, and what is said of failures there.

Owns the names. `cluster.yaml` and its sources are never among them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location

STATE = "__cluster/state.json"
LOCK = "__cluster/lock.json"
RECOVERIES = "__cluster/recoveries"
APPROVALS = "__cluster/approvals"
RESOURCES = "__cluster/resources"
GRAPHS = "graphs"
SUFFIX = ".omni"
_GRAPH = re.compile(rf"(?P<root>.+)/{GRAPHS}/(?P<id>[^/]+){re.escape(SUFFIX)}/?")


@dataclass(frozen=True)
class Root:
    """The storage root of one cluster."""

    location: Location

    @cached_property
    def objects(self) -> ControlObjects:
        """Its control objects."""
        return ControlObjects(self.location)

    def graph(self, id_: str) -> Location:
        """Where a graph is."""
        return self.location.join(GRAPHS, f"{id_}{SUFFIX}")


def blob_name(address: str, digest: str) -> str:
    """The object that holds a query or a policy, by its address and digest."""
    kind, _, rest = address.partition(".")
    extension = "gq" if kind == "query" else "yaml"
    return f"{RESOURCES}/{kind}/{rest.replace('.', '/')}/{digest}.{extension}"


def cluster_of(location: str) -> tuple[Root, str] | None:
    """The cluster that a graph is stored in, and its id there, if it is in one."""
    parsed = Location.parse(location)
    found = _GRAPH.fullmatch(parsed.path)
    if found is None:
        return None
    root = Root(Location(parsed.scheme, found["root"]))
    return (root, found["id"]) if root.objects.read(STATE) is not None else None
