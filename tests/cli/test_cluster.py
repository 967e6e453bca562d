"""`omnigraph cluster`, and clusters as the targets of other commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.deployments import ONE, TWO, WIDER, Deployment


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Deployment:
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    return Deployment.make(tmp_path / "team")


def test_from_a_file_to_graphs(team: Deployment, run: Callable[..., Any]) -> None:
    where = ("--config", str(team.directory))
    assert run("cluster", "validate", *where).code == 0
    ran = run("cluster", "apply", *where)
    assert ran.code == 1
    assert "ERROR state_missing __cluster/state.json: " in ran.err
    assert run("cluster", "import", *where).code == 0
    ran = run("cluster", "plan", *where)
    assert "create graph.ferries  (applied)" in ran.out
    ran = run("cluster", "apply", *where, "--as", "act-ann")
    assert ran.code == 0
    assert ran.out.endswith("4 applied, 0 left; converged (revision 2)\n")
    assert "nothing is different" in run("cluster", "plan", *where).out
    team.write("ferries.pg", WIDER)
    assert "node:Port.name is added" in run("cluster", "plan", *where).out
    assert run("cluster", "status", *where).code == 0
    assert run("cluster", "refresh", *where).code == 0


def test_the_bodies_of_every_command(team: Deployment, run: Callable[..., Any]) -> None:
    def asked(*args: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            run("cluster", *args, "--config", str(team.directory), "--json").out
        )
        return found

    validated = asked("validate")
    assert [*validated] == [
        "ok",
        "config_dir",
        "config_file",
        "resource_digests",
        "resources",
        "dependencies",
        "diagnostics",
    ]
    assert validated["dependencies"][0] == {"from": "policy.team", "to": "graph.ferries"}
    assert asked("import")["operation"] == "import"
    planned = asked("plan")
    assert planned["state_observations"]["state_revision"] == 1
    assert planned["desired_revision"]["config_digest"]
    applied = asked("apply", "--as", "act-ann")
    assert (applied["applied_count"], applied["deferred_count"]) == (4, 0)
    assert (applied["converged"], applied["state_written"]) == (True, True)
    assert applied["actor"] == "act-ann"
    team.declare(TWO)
    asked("apply")
    team.declare(ONE)
    assert asked("plan")["approvals_required"] == [
        {
            "resource": "graph.crew",
            "reason": "deleting a graph deletes everything in it",
            "satisfied": False,
        }
    ]
    assert asked("approve", "graph.crew", "--as", "act-ann")["approved_by"] == "act-ann"
    assert asked("apply")["converged"]
    assert asked("status")["resource_statuses"]["graph.ferries"] == {"status": "applied"}
    assert asked("force-unlock", "L1")["diagnostics"][0]["code"] == "state_lock_missing"


def test_who_approves_has_to_be_known(team: Deployment, run: Callable[..., Any]) -> None:
    ran = run("cluster", "approve", "graph.x", "--config", str(team.directory))
    assert ran.code == 2
    assert "--as ACTOR" in ran.err
    ran = run("cluster", "plan", "--as", "act-ann", "--config", str(team.directory))
    assert ran.code == 2
    assert "takes no --as" in ran.err


@pytest.fixture
def deployed(team: Deployment) -> Deployment:
    return team.deployed()


def test_direct_commands_find_the_graph_of_a_cluster(
    deployed: Deployment, tmp_path: Path, run: Callable[..., Any]
) -> None:
    where = str(deployed.directory)
    for verb in (["optimize"], ["verify"], ["repair"], ["cleanup", "--keep", "3"]):
        assert run(*verb, "--cluster", where).code == 0, verb
    assert "graphs/ferries.omni" in run("optimize", "--cluster", f"file://{where}").err
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.yaml").write_text(
        f"clusters: {{ brain: {{ root: {where} }} }}\n"
        "profiles: { there: { cluster: brain, default_graph: ferries } }\n"
    )
    assert run("optimize", "--cluster", "brain").code == 0
    assert run("optimize", "--profile", "there").code == 0
    assert run("queries", "list", "--profile", "there").out == "ports()  read\n"
    ran = run("optimize", "--cluster", "brain", "--graph", "ferry")
    assert ran.code == 1
    assert "did you mean" in ran.err
    query = deployed.directory / "ferries.gq"
    ran = run("lint", "--query", str(query), "--cluster", where)
    assert "Lint complete" in ran.out + ran.err


def test_data_commands_take_no_cluster(deployed: Deployment, run: Callable[..., Any]) -> None:
    ran = run(
        "query",
        "-e",
        "query q() { match { $p: Port } return { $p.code } }",
        "--cluster",
        str(deployed.directory),
    )
    assert ran.code == 2
    assert "takes no --cluster" in ran.err


def test_which_graph_of_several(deployed: Deployment, run: Callable[..., Any]) -> None:
    deployed.declare(TWO)
    deployed.apply()
    where = str(deployed.directory)
    ran = run("optimize", "--cluster", where)
    assert ran.code == 1
    assert "has the graphs crew, ferries: choose one with --graph" in ran.err
    assert run("optimize", "--cluster", where, "--graph", "crew").code == 0


def test_the_graphs_of_a_cluster_are_changed_by_the_cluster(
    deployed: Deployment, run: Callable[..., Any]
) -> None:
    schema = ("--schema", str(deployed.directory / "ferries.pg"))
    graph = str(deployed.root.graph("ferries"))
    ran = run("schema", "apply", graph, *schema)
    assert ran.code == 1
    assert "omnigraph cluster apply" in ran.err
    ran = run("init", str(deployed.root.graph("other")), *schema)
    assert ran.code == 1
    assert "declare it in cluster.yaml" in ran.err


def test_stored_queries_as_they_were_applied(deployed: Deployment, run: Callable[..., Any]) -> None:
    where = ("--cluster", str(deployed.directory))
    deployed.write("ferries.gq", "nonsense")
    listed = json.loads(run("queries", "list", *where, "--json").out)
    assert listed == {
        "queries": [
            {
                "name": "ports",
                "mcp_expose": False,
                "tool_name": "ports",
                "mutation": False,
                "params": [],
            }
        ]
    }
    assert run("queries", "validate", *where).code == 0
    deployed.graph().apply_schema("node Harbour { code: String @key }\n")
    ran = run("queries", "validate", *where, "--json")
    assert ran.code == 1
    assert json.loads(ran.out)["breakages"][0]["query"] == "ports"


def test_policies_as_they_were_applied(
    deployed: Deployment, tmp_path: Path, run: Callable[..., Any]
) -> None:
    where = ("--cluster", str(deployed.directory))
    deployed.write("policy.yaml", "nonsense")
    assert run("policy", "validate", *where).out == "policy valid: bundle 'team' [1 actors]\n"
    ran = run("policy", "explain", *where, "--actor", "act-ann", "--action", "read")
    assert ran.out.startswith("decision: allow\n")
    cases = tmp_path / "cases.yaml"
    cases.write_text(
        "version: 1\ncases: [{ id: a, actor: act-ann, action: admin, expect: deny }]\n"
    )
    assert run("policy", "test", *where, "--tests", str(cases)).code == 0
    ran = run("policy", "validate", *where, "--graph", "other")
    assert ran.code == 1
    ran = run("policy", "validate")
    assert ran.code == 2
    assert "give --policy FILE, --cluster DIR|URI" in ran.err


def test_which_policy_of_several(deployed: Deployment, run: Callable[..., Any]) -> None:
    where = ("--cluster", str(deployed.directory))
    more = (Path(__file__).parents[2] / "examples/cluster/policies/server.yaml").read_text()
    deployed.write("server.yaml", more)
    deployed.declare(ONE + "  server: { file: server.yaml, applies_to: [cluster] }\n")
    assert deployed.apply().converged
    ran = run("policy", "validate", *where)
    assert ran.code == 1
    assert "which policy of server (cluster), team (graph.ferries)?" in ran.err
    assert "bundle 'team'" in run("policy", "validate", *where, "--graph", "ferries").out
    assert "bundle 'server'" in run("policy", "validate", *where, "--graph", "cluster").out


def test_a_cluster_is_served_as_it_was_applied(
    deployed: Deployment, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    where = str(deployed.directory)
    ran = run("serve", "--cluster", where, "--graph", "ferries")
    assert ran.code == 2
    assert "leave --queries, --policy and --graph out" in ran.err
    ran = run("serve", where, "--cluster", where)
    assert ran.code == 2
    # It has policies, and nobody has a token.
    for name in ("TOKEN", "TOKENS_FILE", "TOKENS_JSON"):
        monkeypatch.delenv(f"OMNIGRAPH_SERVER_BEARER_{name}", raising=False)
    ran = run("serve", "--cluster", where, "--bind", "127.0.0.1:0")
    assert ran.code == 1
    assert "no bearer tokens" in ran.err


def test_every_graph_may_be_asked_for(
    team: Deployment, run: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    team.declare(TWO.replace("crew:", "crew_2:"))
    team.deployed()
    monkeypatch.setenv("OMNIGRAPH_SERVER_BEARER_TOKEN", "a-token")
    serve = ("serve", "--cluster", str(team.directory), "--bind", "nowhere")
    ran = run(*serve, "--require-all-graphs")
    assert ran.code == 1
    assert "graph crew_2: its id" in ran.err
    # Without that, it goes on to where it is to listen.
    assert "cannot listen on 'nowhere'" in run(*serve).err
    monkeypatch.setenv("OMNIGRAPH_REQUIRE_ALL_GRAPHS", "1")
    assert "graph crew_2: its id" in run(*serve).err
