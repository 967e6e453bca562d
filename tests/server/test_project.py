"""Graphs of a project on a server: what is served, and what the command line makes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import omnigraph as og
from omnigraph.cli.main import main
from omnigraph.config.credentials import store_token
from omnigraph.errors import BadRequest, NotFound, PolicyDenied
from omnigraph.maintain.reconcile import Maintainer
from omnigraph.maintain.steps import MaintenanceLimits
from omnigraph.server.app import Application
from omnigraph.server.maintenance import ROUND_SECONDS, _keeper
from omnigraph.server.served import ServedGraphs, state_of
from omnigraph.server.sources.project import ProjectGraphs
from omnigraph.server.tokens import Tokens
from tests.client.running import TOKENS, new_graph, running

STORED = """\
query person($name: String) {
    match { $p: Person { name: $name } }
    return { $p.name as name, $p.age as age }
}

query add($name: String) {
    insert Person { name: $name }
}
"""
POLICY = """\
version: 1
groups: { team: [ann] }
rules:
  - { id: all, allow: { actors: { group: team }, actions: [read, change, invoke_query] } }
"""
LISTING = """\
version: 1
groups: { team: [ann] }
rules:
  - { id: list, allow: { actors: { group: team }, actions: [graph_list] } }
"""
FILE = """\
version: 1
graphs:
  film: { uri: film.omni, queries: q.gq, policy: { file: policy.yaml } }
  other: { uri: other.omni, queries: { only: { file: two.gq } } }
  far: { uri: "http://127.0.0.1:1/graphs/film" }
maintenance: { keep: 30d, commits: 1000 }
server:
  policy: { file: server.yaml }
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with two graphs, as the working directory of somebody without configuration."""
    monkeypatch.setenv("OMNIGRAPH_HOME", str(tmp_path / "home"))
    for name in ("PROFILE", "GRAPH", "BRANCH", "CONFIG", "BEARER_TOKEN", "TOKEN_PROD"):
        monkeypatch.delenv(f"OMNIGRAPH_{name}", raising=False)
    found = tmp_path / "project"
    found.mkdir()
    new_graph(found / "film.omni")
    og.init(found / "other.omni", "node Thing { name: String @key }")
    things = "match { $t: Thing } return { $t.name }"
    (found / "q.gq").write_text(STORED)
    (found / "two.gq").write_text(f"query only() {{ {things} }}\nquery not() {{ {things} }}\n")
    (found / "policy.yaml").write_text(POLICY)
    (found / "server.yaml").write_text(LISTING)
    (found / "omnigraph.yaml").write_text(FILE)
    monkeypatch.chdir(found)
    return found


def opened(project: Path, only: str | None = None) -> ServedGraphs:
    return ProjectGraphs(str(project / "omnigraph.yaml"), only).open()


def test_every_graph_in_storage_is_served_with_what_is_its_own(project: Path) -> None:
    served = opened(project)
    assert list(served.graphs) == ["film", "other"]
    assert list(served.graphs["film"].queries.by_name) == ["add", "person"]
    assert list(served.graphs["other"].queries.by_name) == ["only"]
    assert (served.graphs["film"].policy is None, served.graphs["other"].policy) == (False, None)
    assert served.has_policies
    assert served.server_policy is not None
    served.server_policy.authorize("ann", "graph_list", None, None)
    with pytest.raises(PolicyDenied):
        served.server_policy.authorize("ben", "graph_list", None, None)
    assert list(opened(project, "other").graphs) == ["other"]


def test_its_maintenance_is_that_of_the_file(project: Path) -> None:
    limits = _keeper(opened(project).graphs["film"]).limits
    assert (limits.keep, limits.max_seconds) == (1000, ROUND_SECONDS)
    assert limits.older_than is not None
    assert limits.older_than.days == 30


def test_what_cannot_be_served_is_told_with_its_place(project: Path) -> None:
    path = project / "omnigraph.yaml"
    path.write_text("graphs:\n  gone: { uri: gone.omni }\n")
    with pytest.raises(NotFound, match=r"omnigraph.yaml:2: there is no graph .*init gone"):
        opened(project)
    path.write_text("version: 1\ngraphs:\n  a_b: { uri: film.omni }\n")
    with pytest.raises(BadRequest, match="cannot be served as 'a_b'"):
        opened(project)
    path.write_text(FILE + "  graphs: [far]\n")
    with pytest.raises(BadRequest, match="is on a server"):
        opened(project)
    path.write_text("graphs: { far: { uri: 'http://x' } }\n")
    with pytest.raises(BadRequest, match="no graph in storage"):
        opened(project)
    path.write_text(FILE)
    (project / "q.gq").write_text("query q() { match { $x: Nothing } return { $x.y } }")
    with pytest.raises(og.errors.TypeCheckError):
        opened(project)


def test_the_older_dialect_serves_one_graph(project: Path) -> None:
    (project / "omnigraph.yaml").write_text(
        "graphs:\n  film: { uri: film.omni }\n  other: { uri: other.omni }\n"
        "server: { graph: film }\npolicy: { file: policy.yaml }\nqueries: q.gq\n"
    )
    served = opened(project)
    assert list(served.graphs) == ["film"]
    assert served.graphs["film"].policy is not None
    assert list(served.graphs["film"].queries.by_name) == ["add", "person"]


def test_a_name_of_the_older_dialect_is_made_fit_for_an_address(project: Path) -> None:
    path = project / "omnigraph.yaml"
    path.write_text("graphs:\n  on_disk: { uri: film.omni }\nserver: { graph: on_disk }\n")
    served = opened(project)
    assert list(served.graphs) == ["on-disk"]
    assert served.graphs["on-disk"].id == "on-disk"
    two = "  on_disk: { uri: film.omni }\n  on-disk: { uri: other.omni }\n"
    path.write_text(f"targets:\n{two}")
    with pytest.raises(BadRequest, match="served as 'on-disk'"):
        opened(project)


# -- the command line on such a server ---------------------------------------------------


@pytest.fixture
def url(project: Path) -> Iterator[str]:
    served = opened(project)
    state = state_of(has_tokens=True, has_policies=True, unauthenticated=False)
    tokens = Tokens.of([(actor, token) for actor, token in TOKENS.items()])
    with running(Application(served, state, tokens)) as found:
        yield found


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def _run(*args: str) -> tuple[int, str, str]:
        code = main(args)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return _run


def test_stored_queries_and_aliases_of_a_served_graph(
    run: Run, url: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", TOKENS["ann"])
    (project / "omnigraph.yaml").write_text(
        f"graphs:\n  live:\n    uri: {url}/graphs/film\n"
        "    bearer_token_env: OMNIGRAPH_BEARER_TOKEN\n"
        "cli: { graph: live, output_format: csv }\n"
        "aliases:\n  who: { command: read, query: person, args: [name], format: jsonl }\n"
        "  person: { query: other.gq }\n"
    )
    assert run("query", "person", "Ann") == (0, "name,age\nAnn,40\n", "")
    assert run("query", "who", "Ann") == (0, '{"name":"Ann","age":40}\n', "")
    assert run("read", "--alias", "who", "Ann")[1] == '{"name":"Ann","age":40}\n'
    code, _, err = run("mutate", "add", "Dan")
    assert (code, err) == (
        0,
        f"omnigraph mutate → live ({url}/graphs/film) from omnigraph.yaml (served)\n",
    )
    assert run("query", "live", "person", "Dan")[1] == "name,age\nDan,\n"
    code, out, err = run("query", "person", "a", "b")
    assert (code, out) == (2, "")
    assert "the query `person` takes name: 2 were given" in err
    with og.project()["live"] as graph:
        assert len(graph.query("query q() { match { $p: Person } return { $p.name } }")) == 3


# -- where tokens go ---------------------------------------------------------------------


class _Seen(BaseHTTPRequestHandler):
    tokens: list[str | None]

    def do_GET(self) -> None:
        self.tokens.append(self.headers.get("Authorization"))
        self.send_response(403)
        self.send_header("Content-Length", "0")
        self.end_headers()

    do_POST = do_GET  # noqa: N815 - the name that the library looks for

    def log_message(self, *_: Any) -> None:
        """Nothing: the tests look at what was seen."""


@pytest.fixture
def stranger() -> Iterator[tuple[str, list[str | None]]]:
    """A server that notes the tokens it is sent."""
    seen: Any = type("Seen", (_Seen,), {"tokens": []})
    server = HTTPServer(("127.0.0.1", 0), seen)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", seen.tokens
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("path", ["", "/graphs/film", "/team/graphs/film"])
def test_a_stored_token_does_not_go_to_an_address_of_the_file(
    run: Run,
    stranger: tuple[str, list[str | None]],
    path: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    url, seen = stranger
    monkeypatch.setenv("OMNIGRAPH_BEARER_TOKEN", "mine")
    monkeypatch.setenv("OMNIGRAPH_TOKEN_PROD", "mine")
    store_token("prod", "mine")
    (tmp_path / "home" / "config.yaml").write_text(
        f"servers: {{ prod: {{ url: '{url}/team2' }}, far: {{ url: 'https://prod.example' }} }}\n"
    )
    Path("omnigraph.yaml").write_text(f"graphs: {{ evil: {{ uri: '{url}{path}' }} }}\n")
    assert run("query", "-e", "query q() { match { $p: Person } return { $p.name } }")[0] == 1
    assert run("branch", "list", "--graph", "evil")[0] == 1
    assert len(seen) >= 2
    assert set(seen) == {None}


@pytest.mark.usefixtures("project")
def test_nor_when_the_file_names_its_variable(
    run: Run,
    stranger: tuple[str, list[str | None]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    url, seen = stranger
    monkeypatch.setenv("OMNIGRAPH_TOKEN_PROD", "mine")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "config.yaml").write_text("servers: { prod: { url: 'https://prod' } }\n")
    Path("omnigraph.yaml").write_text(
        f"graphs: {{ e: {{ uri: '{url}/graphs/g', bearer_token_env: OMNIGRAPH_TOKEN_PROD }} }}\n"
    )
    code, out, err = run("branch", "list")
    assert (code, out, seen) == (1, "", [])
    assert "is your token of the server 'prod', and is sent nowhere else" in err


@pytest.mark.usefixtures("project")
def test_it_goes_where_its_owner_has_configured_it(
    run: Run, stranger: tuple[str, list[str | None]], tmp_path: Path
) -> None:
    url, seen = stranger
    store_token("prod", "mine")
    (tmp_path / "home" / "config.yaml").write_text(f"servers: {{ prod: {{ url: '{url}' }} }}\n")
    Path("omnigraph.yaml").write_text(f"graphs: {{ ours: {{ uri: '{url}/graphs/g' }} }}\n")
    run("branch", "list")
    assert seen == ["Bearer mine"]


# -- Python, and maintenance -------------------------------------------------------------


def test_a_project_in_python(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = og.project()
    assert (list(found), len(found), "film" in found) == (["film", "other", "far"], 3, True)
    assert repr(found) == f"<Project {project}/omnigraph.yaml: film, other, far>"
    assert found["film"] is found["film"]
    assert found.branch("film") == "main"
    with pytest.raises(NotFound, match="there is no nowhere"):
        og.project("nowhere")
    with pytest.raises(BadRequest, match=r"did you mean `film`\?"):
        found["flim"]
    with pytest.raises(BadRequest, match=r"which graph of .* film, other, far, and no default"):
        found.open()
    with pytest.raises(BadRequest, match="is on a server"):
        found.open("far", read_only=True)
    monkeypatch.setenv("OMNIGRAPH_GRAPH", "other")
    assert found.default == "other"
    assert og.project(project / "omnigraph.yaml").path == project / "omnigraph.yaml"
    assert og.project(project / "film.omni").path == project / "omnigraph.yaml"
    (project / "omnigraph.yaml").write_text(FILE + "grphs: {}\n")
    with pytest.warns(UserWarning, match="did you mean `graphs`"):
        og.project()


def test_maintain_keeps_what_the_project_says(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: list[MaintenanceLimits] = []
    once = Maintainer.run_once

    def noted(self: Maintainer, *, dry_run: bool = False) -> object:
        limits.append(self.limits)
        return once(self, dry_run=dry_run)

    monkeypatch.setattr(Maintainer, "run_once", noted)
    assert run("maintain", "film")[0] == 0
    assert run("maintain", "film", "--keep", "7", "--older-than", "1d")[0] == 0
    assert run("maintain", "--store", "film.omni")[0] == 0
    (project / "omnigraph.yaml").write_text(FILE.replace("keep: 30d", "optimize: off"))
    assert run("maintain", "film")[0] == 0
    shown = [(one.keep, one.older_than and one.older_than.days, one.optimizes) for one in limits]
    assert shown == [(1000, 30, True), (7, 1, True), (None, None, True), (1000, None, False)]


def test_tables_are_left_alone_if_the_project_says_so(project: Path) -> None:
    graph = og.open(project / "film.omni")
    rows: list[dict[str, object]] = [
        {"type": "Person", "data": {"name": f"p{number}"}} for number in range(300)
    ]
    graph.load(rows, mode="append")
    for optimizes in (False, True):
        limits = MaintenanceLimits(optimizes=optimizes)
        keeper = Maintainer(graph.location, graph.manifest, limits)
        steps = [step.work for step in keeper.run_once(dry_run=True).steps]
        assert ("optimize" in steps) is optimizes


def test_serve_takes_the_project_or_what_is_given(
    run: Run, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnigraph.server import boot

    begun: list[tuple[Any, str, int, float]] = []

    def serve(found: boot.Boot, bind: str, *, workers: int = 1) -> int:
        begun.append((found.source, bind, workers, found.limits.maintain_seconds))
        return 0

    monkeypatch.setattr(boot, "serve", serve)
    path = project / "omnigraph.yaml"
    path.write_text(FILE + "  bind: 127.0.0.1:7000\n  workers: 3\n")
    for args in (["serve"], ["serve", "--config", str(path)], ["serve", "--bind", ":1"]):
        assert run(*args, "--unauthenticated")[0] == 0
    assert run("serve", "other", "--workers", "1", "--unauthenticated")[0] == 0
    assert run("serve", "--graph", "film", "--unauthenticated")[0] == 0
    assert run("serve", "film.omni", "--unauthenticated", "--queries", "q.gq")[0] == 0
    whole, one = ProjectGraphs(str(path)), ProjectGraphs(str(path), "other")
    assert begun[0] == (whole, "127.0.0.1:7000", 3, 60.0)
    assert begun[1] == begun[0]
    assert begun[2] == (whole, ":1", 3, 60.0)
    assert begun[3] == (one, "127.0.0.1:7000", 1, 60.0)
    assert begun[4][0] == ProjectGraphs(str(path), "film")
    assert begun[5][1:] == ("127.0.0.1:8080", 1, 0.0)
    assert begun[5][0].location == "film.omni"
    code, _, err = run("serve", "--queries", "q.gq", "--unauthenticated")
    assert (code, "leave --queries and --policy out" in err) == (2, True)
    code, _, err = run("serve", "--graph", "flim", "--unauthenticated")
    assert (code, "did you mean `film`?" in err) == (1, True)
    # A file that names no graph may say what one is served with.
    other = project / "served.yaml"
    other.write_text("policy: { file: /etc/omnigraph/policy.yaml }\n")
    assert run("serve", "film.omni", "--config", str(other), "--unauthenticated")[0] == 0
    assert begun[6][0].policy == "/etc/omnigraph/policy.yaml"


def test_stored_queries_and_policies_of_a_graph_of_the_project(run: Run, project: Path) -> None:
    assert run("queries", "list", "--graph", "film")[1] == (
        "add(name: string)  mutation\nperson(name: string)  read\n"
    )
    code, out, _ = run("queries", "validate", "--graph", "film")
    assert (code, out.splitlines()[-1]) == (0, "2 queries, 0 broken")
    assert run("queries", "explain", "person", "--graph", "film")[1].startswith("plan of person on")
    (project / "q.gq").write_text("query q() { match { $x: Nothing } return { $x.y } }")
    code, out, _ = run("queries", "validate", "--graph", "film", "--json")
    assert (code, '"ok": false' in out) == (1, True)
    for args, said in (
        (["queries", "explain", "k", "--graph", "film"], "there is no stored query `k`: known"),
        (["queries", "list", "--graph", "flim"], "did you mean `film`?"),
        (["queries", "list", "--graph", "far"], "is on a server"),
    ):
        code, _, err = run(*args)
        assert (code, said in err) == (1, True), err
    code, _, err = run("queries", "list")
    assert (code, "whose queries? give --cluster DIR|URI, or --graph NAME" in err) == (2, True)
    assert run("policy", "validate", "--graph", "film")[1].startswith("policy valid: ")
    code, out, _ = run(
        *("policy", "explain", "--graph", "film", "--actor", "ann", "--action", "read")
    )
    assert (code, out.splitlines()[0]) == (0, "decision: allow")
    code, _, err = run("policy", "validate", "--graph", "other")
    assert (code, "has no policy" in err) == (2, True)
