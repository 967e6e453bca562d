"""Small clusters in a directory: what the tests of clusters share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

import omnigraph as og
from omnigraph.cluster.applying import apply
from omnigraph.cluster.approving import approve
from omnigraph.cluster.layout import Root
from omnigraph.cluster.ledger import Ledger
from omnigraph.cluster.observing import import_
from omnigraph.cluster.reports import Applied, Report
from omnigraph.storage.objects import faults
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location

SCHEMA = "node Port {\n    code: String @key\n    berths: I32?\n}\n"
WIDER = SCHEMA.replace("berths: I32?", "berths: I32?\n    name: String?")
QUERIES = (
    "query ports() {\n    match {\n        $p: Port\n    }\n    return { $p.code as code }\n}\n"
)
POLICY = """\
version: 1
groups: { team: [act-ann] }
rules:
  - id: team
    allow: { actors: { group: team }, actions: [read, change, invoke_query] }
"""
ONE = """\
version: 1
graphs:
  ferries: { schema: ferries.pg, queries: ferries.gq }
policies:
  team: { file: policy.yaml, applies_to: [ferries] }
"""
TWO = ONE.replace("policies:", "  crew: { schema: crew.pg }\npolicies:")

PORTS = "query q() { match { $p: Port } return { $p.code as code } }"
OTHER = """\
version: 1
graphs:
  ferries: { schema: ferries.pg, queries: ferries.gq }
  staff: { schema: crew.pg }
policies:
  team: { file: policy.yaml, applies_to: [ferries, staff] }
"""


class Killed(BaseException):
    """What a process that is killed would have done is not done: neither this nor any cleaning."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """A directory with a cluster.yaml, and the storage root that it names."""

    directory: Path
    storage: str | None = None

    @classmethod
    def make(cls, directory: Path, text: str = ONE, storage: str | None = None) -> Deployment:
        directory.mkdir(parents=True, exist_ok=True)
        found = cls(directory, storage)
        found.write("ferries.pg", SCHEMA)
        found.write("crew.pg", SCHEMA.replace("Port", "Person"))
        found.write("ferries.gq", QUERIES)
        found.write("policy.yaml", POLICY)
        found.declare(text)
        return found

    def write(self, name: str, text: str) -> None:
        (self.directory / name).write_text(text, encoding="utf-8")

    def declare(self, text: str) -> None:
        more = "" if self.storage is None else f"storage: {self.storage}\n"
        self.write("cluster.yaml", text + more)

    @property
    def root(self) -> Root:
        return Root(Location.parse(self.storage or str(self.directory)))

    @property
    def ledger(self) -> Ledger:
        data = self.root.objects.read("__cluster/state.json")
        assert data is not None
        return msgspec.json.decode(data, type=Ledger)

    def graph(self, id_: str = "ferries") -> og.Graph:
        return og.open(str(self.root.graph(id_)))

    def deployed(self) -> Deployment:
        """The same, applied for the first time."""
        assert import_(self.directory).ok
        assert apply(self.directory, "act-ann").converged
        return self

    def apply(self) -> Applied:
        return apply(self.directory, "act-ann")

    def approve(self, resource: str) -> None:
        found = approve(self.directory, resource, "act-ann")
        assert found.ok, found.diagnostics

    def unlock(self) -> None:
        """As somebody does who knows that the process is dead."""
        self.root.objects.delete("__cluster/lock.json")


def codes(found: Report) -> list[str]:
    """The codes of what was found, but for the one that is always there."""
    every = [one.code for one in found.diagnostics]
    return [one for one in every if one != "external_blob_ingress_default_deny"]


@contextmanager
def killed_at(point: str, passing: int = 1, *, surely: bool = True) -> Iterator[None]:
    """Die at a point, as if by a signal: nothing reaches the storage of the cluster after it.

    Unless it has to come to that ``surely``, a point that is not passed kills nobody.
    """
    seen = 0
    is_dead = False

    def watch(passed: str, _: str) -> None:
        nonlocal seen, is_dead
        if is_dead:
            raise Killed
        if passed == point:
            seen += 1
            if seen == passing:
                is_dead = True
                raise Killed

    count = ControlObjects.count

    def counted(self: ControlObjects, operation: object) -> None:
        if is_dead:
            raise Killed
        count(self, operation)  # type: ignore[arg-type]  # it is handed on as it is

    ControlObjects.count = counted  # type: ignore[method-assign]  # for as long as the block lasts
    try:
        with faults.watched(watch):
            yield
    except Killed:
        pass
    finally:
        ControlObjects.count = count  # type: ignore[method-assign]  # as it was
    assert is_dead or not surely, f"{point} was not passed so often"


def before_everything(directory: Path, storage: str | None = None) -> Deployment:
    """A cluster of two graphs, of which one is to go, one to change, and another to come."""
    team = Deployment.make(directory / "team", TWO, storage).deployed()
    team.graph().load([{"type": "Port", "data": {"code": "ARD"}}], mode="append")
    team.write("ferries.pg", WIDER)
    team.write("ferries.gq", (team.directory / "ferries.gq").read_text() + "// More to come.\n")
    team.declare(OTHER)
    team.approve("graph.crew")
    return team


def assert_deployed(team: Deployment) -> None:
    """Everything is as it was declared, and nothing else is there."""
    assert team.ledger.graphs == ["ferries", "staff"]
    assert team.graph().query(PORTS).rows == [{"code": "ARD"}]
    assert "name" in team.graph().catalog.nodes["Port"].properties
    if team.storage is None:
        assert not Path(team.root.graph("crew").path).exists()
    assert ControlObjects(team.root.graph("crew")).list() == []
    assert team.root.objects.list("__cluster/recoveries") == []
    again = team.apply()
    assert (again.converged, again.state_written, codes(again)) == (True, False, [])
