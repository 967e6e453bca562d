"""The worked examples of the language that change a graph, as a person runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.pilot_graph import DATA, SCHEMA

Run = Callable[..., Any]
PROGRAM = str(Path(sys.executable).with_name("omnigraph"))

ANN = {"id": "Ann", "hired": "2020-01-02", "hours": 30, "name": "Ann", "ratings": ["a", "b"]}
BEN = {"id": "Ben", "hired": None, "hours": 25, "name": "Ben", "ratings": ["b"]}
CAT = {"id": "Cat", "hired": None, "hours": 35, "name": "Cat", "ratings": None}
DAN = {"id": "Dan", "hired": None, "hours": None, "name": "Dan", "ratings": None}
PILOTS = [ANN, BEN, CAT, DAN]
TRAINS = {"e1": "Ann→Ben", "e2": "Ann→Cat", "e3": "Ben→Dan", "e4": "Ann→Ben"}
STATIONED = {"w1": "Ann→Arda", "w2": "Ben→Brell"}


class Pilots:
    """The graph of the examples and what a person does with it."""

    def __init__(self, run: Run, uri: str) -> None:
        self.run = run
        self.uri = uri

    def mutate(self, body: str) -> dict[str, Any]:
        """Run the statements of a query; returns what is printed for programs."""
        ran = self.run(*("mutate", "--store", self.uri, "-e", f"query q() {{ {body} }}", "--json"))
        assert (ran.code, ran.err) == (0, "")
        printed: dict[str, Any] = json.loads(ran.out)
        assert (printed["branch"], printed["query_name"]) == ("main", "q")
        return printed

    def refused(self, body: str) -> str:
        """Run statements that must be refused, and change nothing; returns what is said."""
        before = self.run("export", self.uri).out, self.head
        ran = self.run("mutate", "--store", self.uri, "-e", f"query q() {{ {body} }}", "--json")
        assert ran.code == 1
        assert json.loads(ran.out)["error"]
        assert (self.run("export", self.uri).out, self.head) == before
        said: str = ran.err
        return said

    @property
    def head(self) -> str:
        commits = json.loads(self.run("commit", "list", self.uri, "--json").out)["commits"]
        newest: str = commits[0]["graph_commit_id"]
        return newest

    def nodes(self, name: str) -> list[dict[str, Any]]:
        lines = self.run("export", self.uri, "--type", name).out.splitlines()
        return [json.loads(line)["data"] for line in lines]

    def edges(self, name: str) -> dict[str, str]:
        lines = map(json.loads, self.run("export", self.uri, "--type", name).out.splitlines())
        return {edge["data"]["id"]: f"{edge['from']}→{edge['to']}" for edge in lines}

    def counts(self) -> dict[str, int]:
        """How many entities of each type there are, as a snapshot says."""
        shown = json.loads(self.run("snapshot", self.uri, "--json").out)["datasets"]
        return {found["type_name"]: found["entity_count"] for found in shown}


@pytest.fixture
def pilots(run: Run, tmp_path: Path) -> Pilots:
    (tmp_path / "s.pg").write_text(SCHEMA)
    (tmp_path / "d.jsonl").write_text(DATA)
    uri = str(tmp_path / "pilots.omni")
    assert run("init", uri, "--schema", str(tmp_path / "s.pg")).code == 0
    ran = run("load", uri, "--data", str(tmp_path / "d.jsonl"), "--mode", "append")
    assert ran.code == 0
    assert ran.out == (
        f"loaded {uri} on branch main with append: "
        "12 entities across 2 node types and 2 edge types\n"
    )
    return Pilots(run, uri)


def test_the_data_is_what_the_examples_start_from(pilots: Pilots) -> None:
    assert pilots.nodes("Pilot") == PILOTS
    assert [base["name"] for base in pilots.nodes("Base")] == ["Arda", "Brell"]
    assert pilots.edges("Trains") == TRAINS
    assert pilots.edges("StationedAt") == STATIONED
    assert pilots.counts() == {"Base": 2, "Pilot": 4, "StationedAt": 2, "Trains": 4}


def test_27_an_upsert_replaces_the_row_and_keeps_its_edges(pilots: Pilots) -> None:
    done = pilots.mutate('insert Pilot { name: "Ann" }')
    assert (done["affected_nodes"], done["affected_edges"]) == (1, 0)
    blank = {"id": "Ann", "hired": None, "hours": None, "name": "Ann", "ratings": None}
    assert pilots.nodes("Pilot") == [blank, BEN, CAT, DAN]
    assert pilots.edges("Trains") == TRAINS
    assert pilots.edges("StationedAt") == STATIONED


def test_28_an_edge_to_nowhere_is_refused(pilots: Pilots) -> None:
    said = pilots.refused('insert Trains { from: "Ann", to: "Zed" }')
    assert said == "error: dst 'Zed' not found in Pilot\n"


def test_29_an_end_from_the_same_query_is_seen(pilots: Pilots) -> None:
    before = pilots.head
    done = pilots.mutate('insert Pilot { name: "Eve" } insert Trains { from: "Eve", to: "Ann" }')
    assert (done["affected_nodes"], done["affected_edges"]) == (1, 1)
    assert done["commit"]["parent_commit_id"] == before
    assert done["commit"]["graph_commit_id"] == pilots.head
    assert pilots.counts()["Pilot"] == 5
    (new,) = set(pilots.edges("Trains").items()) - set(TRAINS.items())
    assert new[1] == "Eve→Ann"


def test_30_an_update_of_one_row_and_of_none(pilots: Pilots) -> None:
    done = pilots.mutate('update Pilot set { hours: 31 } where name = "Ann"')
    assert (done["affected_nodes"], done["affected_edges"]) == (1, 0)
    assert pilots.nodes("Pilot") == [{**ANN, "hours": 31}, BEN, CAT, DAN]
    head = pilots.head
    done = pilots.mutate("update Pilot set { hours: 31 } where hours > 100")
    assert (done["affected_nodes"], done["affected_edges"], done["commit"]) == (0, 0, None)
    assert pilots.head == head


def test_31_deleting_a_node_deletes_its_edges(pilots: Pilots) -> None:
    done = pilots.mutate('delete Pilot where name = "Ann"')
    assert (done["affected_nodes"], done["affected_edges"]) == (1, 4)
    assert pilots.nodes("Pilot") == [BEN, CAT, DAN]
    assert pilots.edges("Trains") == {"e3": "Ben→Dan"}
    assert pilots.edges("StationedAt") == {"w2": "Ben→Brell"}


def test_32_deleting_edges_by_their_end(pilots: Pilots) -> None:
    done = pilots.mutate('delete Trains where from = "Ann"')
    assert (done["affected_nodes"], done["affected_edges"]) == (0, 3)
    assert pilots.nodes("Pilot") == PILOTS
    assert pilots.edges("Trains") == {"e3": "Ben→Dan"}
    assert pilots.edges("StationedAt") == STATIONED


def test_33_what_two_deletes_share_counts_once(pilots: Pilots) -> None:
    done = pilots.mutate('delete Pilot where name = "Ann" delete Pilot where hours > 29')
    assert (done["affected_nodes"], done["affected_edges"]) == (2, 4)
    assert pilots.nodes("Pilot") == [BEN, DAN]
    assert pilots.edges("Trains") == {"e3": "Ben→Dan"}
    assert pilots.edges("StationedAt") == {"w2": "Ben→Brell"}


def test_34_inserting_and_deleting_mix(pilots: Pilots) -> None:
    done = pilots.mutate('insert Pilot { name: "X" } delete Pilot where name = "Ben"')
    assert (done["affected_nodes"], done["affected_edges"]) == (2, 4)
    assert pilots.edges("StationedAt") == {"w1": "Ann→Arda"}


def test_35_a_key_is_immutable(pilots: Pilots) -> None:
    said = pilots.refused('update Pilot set { name: "Y" } where name = "Ben"')
    assert "cannot update @key property 'name' — delete and re-insert instead" in said


@pytest.mark.slow
def test_the_installed_program_does_the_same(pilots: Pilots) -> None:
    """Examples 29 and 28 one after the other, each in a process of its own."""

    def start(*args: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [PROGRAM, *args], capture_output=True, text=True, check=False, timeout=60
        )

    both = 'query q() { insert Pilot { name: "Eve" } insert Trains { from: "Eve", to: "Ann" } }'
    done = start("mutate", "--store", pilots.uri, "-e", both)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "changed main via q: 1 nodes, 1 edges"
    lost = 'query q() { insert Trains { from: "Eve", to: "Zed" } }'
    done = start("mutate", "--store", pilots.uri, "-e", lost, "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"] == "dst 'Zed' not found in Pilot"
    assert done.stderr == "error: dst 'Zed' not found in Pilot\n"
    assert [pilot["name"] for pilot in pilots.nodes("Pilot")][-1] == "Eve"
    assert "Eve→Ann" in pilots.edges("Trains").values()
