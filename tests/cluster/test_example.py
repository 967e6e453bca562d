"""The example of a cluster: validated, planned, applied and served."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from omnigraph.cluster.applying import apply
from omnigraph.cluster.observing import import_
from omnigraph.cluster.planning import plan, validate
from omnigraph.errors import BadRequest
from omnigraph.server.boot import Boot
from omnigraph.server.settings import Limits
from omnigraph.server.sources.cluster import ClusterGraphs
from omnigraph.server.tokens import Tokens
from tests.cluster.deployments import ONE, TWO, Deployment

EXAMPLE = Path(__file__).parents[2] / "examples" / "cluster"
TOKENS = {"act-ann": "token-of-ann", "act-ben": "token-of-ben"}


def bearer(actor: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKENS[actor]}"}


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("example") / "cluster"
    shutil.copytree(EXAMPLE, directory)
    assert validate(directory).ok
    assert import_(directory).ok
    assert len(plan(directory).changes) == 15
    assert apply(directory, "act-ann").converged
    return directory


@pytest.fixture(scope="module")
def client(example: Path) -> Iterator[TestClient]:
    boot = Boot(
        source=ClusterGraphs(str(example)),
        tokens=Tokens.of(list(TOKENS.items())),
        limits=Limits(),
        with_access_log=False,
    )
    with TestClient(boot(), raise_server_exceptions=False) as found:
        yield found


def test_every_graph_is_served_with_its_queries(client: TestClient) -> None:
    crew = client.get("/graphs/crew/queries", headers=bearer("act-ben")).json()["queries"]
    assert [one["name"] for one in crew] == ["on_board", "relieve"]
    ferries = client.get("/graphs/ferries/queries", headers=bearer("act-ben")).json()["queries"]
    assert len(ferries) == 7
    asked = client.post(
        "/graphs/crew/queries/on_board",
        json={"params": {"vessel": "Linnet"}},
        headers=bearer("act-ben"),
    )
    assert asked.status_code == 200
    assert asked.json()["rows"] == []


def test_the_policies_of_the_cluster_decide(client: TestClient) -> None:
    assert client.get("/graphs", headers=bearer("act-ben")).status_code == 403
    listed = client.get("/graphs", headers=bearer("act-ann")).json()
    assert [one["graph_id"] for one in listed["graphs"]] == ["crew", "ferries"]
    relieve = {"json": {"params": {"name": "Ann"}}}
    for actor, status in (("act-ben", 403), ("act-ann", 200)):
        asked = client.post(
            "/graphs/crew/queries/relieve",
            headers=bearer(actor),
            **relieve,  # type: ignore[arg-type]  # a body
        )
        assert asked.status_code == status


def test_schemas_of_a_cluster_are_not_applied_over_http(client: TestClient) -> None:
    body = {"schema_source": (EXAMPLE / "schemas" / "crew.pg").read_text()}
    asked = client.post("/graphs/crew/schema/apply", json=body, headers=bearer("act-ann"))
    assert asked.status_code in (403, 409)


def test_what_is_served_is_what_was_applied_and_not_the_working_tree(tmp_path: Path) -> None:
    team = Deployment.make(tmp_path).deployed()
    team.write("ferries.gq", "query other() { match { $p: Port } return { $p.code } }")
    team.write("ferries.pg", "nonsense")
    (tmp_path / "policy.yaml").unlink()
    team.declare("version: 7\ngraphs: { more: { scheme: x } }\n")
    found = ClusterGraphs(str(tmp_path)).open()
    assert found.graphs["ferries"].queries.by_name.keys() == {"ports"}
    assert found.has_policies
    assert not found.can_apply_schemas
    # Also where the configuration cannot be read at all, by its storage root.
    (tmp_path / "cluster.yaml").unlink()
    assert ClusterGraphs(f"file://{tmp_path}").open().graphs.keys() == {"ferries"}
    assert ClusterGraphs(str(tmp_path)).open().graphs.keys() == {"ferries"}


def test_a_graph_that_cannot_be_served_is_kept_away_from_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    team = Deployment.make(tmp_path, TWO.replace("crew:", "crew_2:")).deployed()
    found = ClusterGraphs(str(tmp_path)).open()
    assert found.graphs.keys() == {"ferries"}
    # It goes to other processes as what it is made from.
    source = pickle.loads(pickle.dumps(ClusterGraphs(str(tmp_path))))  # noqa: S301 - just made here
    assert source.open().graphs.keys() == {"ferries"}
    assert "letters, digits and hyphens" in found.quarantined["crew_2"]
    with pytest.raises(BadRequest, match="graph crew_2: its id"):
        ClusterGraphs(str(tmp_path), require_all=True).open()

    boot = Boot(
        source=ClusterGraphs(str(tmp_path)),
        tokens=Tokens.of(list(TOKENS.items())),
        limits=Limits(),
        with_access_log=False,
    )
    with TestClient(boot()) as client:
        assert "graph crew_2 is not served: its id" in capsys.readouterr().err
        # There is no policy for the server, so that nobody may list.
        assert client.get("/graphs", headers=bearer("act-ann")).status_code == 403
        assert client.get("/graphs/crew_2/schema", headers=bearer("act-ann")).status_code == 400
    shutil.rmtree(team.root.graph("ferries").path)
    with pytest.raises(BadRequest, match="cluster_no_healthy_graphs"):
        ClusterGraphs(str(tmp_path)).open()


def test_whoever_may_list_the_graphs_is_told_of_those_in_quarantine(tmp_path: Path) -> None:
    text = TWO.replace("crew:", "crew_2:") + "  all: { file: server.yaml, applies_to: [cluster] }\n"
    team = Deployment.make(tmp_path, text)
    shutil.copy(EXAMPLE / "policies" / "server.yaml", team.directory)
    team.deployed()
    boot = Boot(
        source=ClusterGraphs(str(tmp_path)),
        tokens=Tokens.of(list(TOKENS.items())),
        limits=Limits(),
        with_access_log=False,
    )
    with TestClient(boot()) as client:
        listed = client.get("/graphs", headers=bearer("act-ann")).json()
        assert [one["graph_id"] for one in listed["graphs"]] == ["ferries"]
        assert [one["graph_id"] for one in listed["quarantined"]] == ["crew_2"]
        assert client.get("/graphs", headers=bearer("act-ben")).status_code == 403


def test_a_query_that_no_longer_fits_quarantines_its_graph(tmp_path: Path) -> None:
    team = Deployment.make(tmp_path, TWO).deployed()
    team.graph().apply_schema("node Harbour { code: String @key }\n")
    found = ClusterGraphs(str(tmp_path)).open()
    assert found.graphs.keys() == {"crew"}
    assert "Port" in found.quarantined["ferries"]


def test_the_provider_of_a_graph_makes_its_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        ONE.replace("queries: ferries.gq", "embedding_provider: fake")
        .replace("graphs:", "providers: { embedding: { fake: { kind: mock } } }\ngraphs:")
        .partition("policies:")[0]
    )
    team = Deployment.make(tmp_path, text)
    team.write(
        "ferries.pg",
        "node Note {\n    name: String @key\n    text: String\n"
        "    vector: Vector(64)? @embed(text)\n}\n",
    )
    team.deployed()
    # What the environment says is for graphs that name no provider.
    monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "nobody")
    graph = ClusterGraphs(str(tmp_path)).open().graphs["ferries"].session("act-ann")
    graph.load([{"type": "Note", "data": {"name": "a", "text": "boats"}}], mode="append")
    graph.mutate('query add() { insert Note { name: "b", text: "ports" } }')
    found = graph.query(
        "query near() { match { $n: Note } return { $n.name as name } "
        'order { nearest($n.vector, "boats") } limit 1 }'
    )
    assert found.rows == [{"name": "a"}]
    assert graph.commits.list()[0].metadata["embedding"]["provider"] == "mock"


def test_a_provider_without_its_key_quarantines_the_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provided = "providers: { embedding: { real: { kind: openai, api_key: '${TEAM_KEY}' } } }\n"
    text = TWO.replace("crew.pg", "crew.pg, embedding_provider: real")
    Deployment.make(tmp_path, text.replace("graphs:", f"{provided}graphs:")).deployed()
    source = ClusterGraphs(str(tmp_path))
    monkeypatch.delenv("TEAM_KEY", raising=False)
    assert source.open().quarantined == {
        "crew": "its embedding provider needs TEAM_KEY, which is not set"
    }
    monkeypatch.setenv("TEAM_KEY", "very-secret")
    assert source.open().quarantined == {}
    assert b"very-secret" not in b"".join(
        one.read_bytes() for one in tmp_path.rglob("*") if one.is_file()
    )


def test_a_server_with_policies_and_no_tokens_does_not_start(tmp_path: Path) -> None:
    Deployment.make(tmp_path).deployed()
    boot = Boot(source=ClusterGraphs(str(tmp_path)), tokens=Tokens(), limits=Limits())
    with pytest.raises(BadRequest, match="no bearer tokens"):
        replace(boot, unauthenticated=True, with_access_log=False)()
