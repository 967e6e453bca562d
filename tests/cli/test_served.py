"""The command line on a served graph: the same output as on storage, and which server is meant."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.config.credentials import Credentials, server_of, token_for
from omnigraph.config.operator import OperatorConfig, read_operator_config
from tests.client.running import TOKENS, application, new_graph, running

Run = Callable[..., Any]
PEOPLE = (
    "query people() { match { $p: Person } return { $p.name as name, $p.age as age } "
    "order { $p.name asc } }"
)
ADD = 'query add() { insert Person { name: "Cid" } }'


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    return new_graph(tmp_path_factory.mktemp("cli") / "film.omni")


@pytest.fixture(scope="module")
def url(graph: og.Graph) -> Iterator[str]:
    with running(application(graph, secured=True)) as found:
        yield found


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory for the files of a person, and nothing about servers in the environment."""
    found = tmp_path / "home"
    monkeypatch.setenv("OMNIGRAPH_HOME", str(found))
    for name in ("OMNIGRAPH_PROFILE", "OMNIGRAPH_BEARER_TOKEN", "OMNIGRAPH_TOKEN_PROD"):
        monkeypatch.delenv(name, raising=False)
    return found


def configure(home: Path, text: str) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.yaml").write_text(text)


@pytest.fixture
def known(home: Path, url: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server has a name, and its token is kept."""
    configure(home, f"servers: {{ prod: {{ url: '{url}' }} }}\n")
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{TOKENS['ann']}\n"))
    ran = run("login", "prod")
    assert (ran.code, ran.err) == (0, "")
    assert TOKENS["ann"] not in ran.out


LOOKS: list[list[str]] = [
    ["query", "-e", PEOPLE, "--json"],
    ["query", "-e", PEOPLE, "--format", "csv"],
    ["branch", "list"],
    ["commit", "list", "--json"],
    ["export"],
    ["export", "--type", "Film"],
    ["schema", "show"],
    ["snapshot", "--json"],
    ["changes", "poll", "--start", "beginning", "--kind", "edge"],
    ["query", "-e", "query q( {"],
    ["blob", "get", "node", "Person", "Ben", "photo"],
    ["blob", "get", "node", "Person", "Ann", "photo", "--offset", "1", "--length", "3"],
    ["blob", "stat", "node", "Person", "Ann", "photo", "--json"],
    ["commit", "show", "01ARZ3NDEKTSV4RRFFQ69G5FAV"],
    ["query"],
]


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("args", LOOKS, ids=lambda args: " ".join(args)[:30])
def test_what_is_printed_is_the_same(run: Run, graph: og.Graph, args: list[str]) -> None:
    here = run(*args, "--store", str(graph.location))
    there = run(*args, "--server", "prod", "--graph", "film")
    if args[:2] == ["changes", "poll"]:
        # A cursor is of one reader; that of a server is of the same kind.
        here, there = (ran.out.partition("cursor:")[0] for ran in (here, there))
    assert there == here


@pytest.mark.usefixtures("known")
def test_a_name_that_is_not_there_is_told_with_the_nearest(run: Run) -> None:
    ran = run("snapshot", "--branch", "mian", "--server", "prod", "--graph", "film")
    assert (ran.code, ran.err) == (1, "error: branch 'mian' not found: did you mean `main`?\n")
    ran = run("snapshot", "--server", "prod", "--graph", "flim")
    assert (ran.code, ran.err) == (1, "error: graph 'flim' not found: did you mean `film`?\n")
    for words in (["persn"], ["persn", "Ann"]):
        ran = run("query", *words, "--server", "prod", "--graph", "film")
        told = "error: stored query not found: did you mean `person`?\n"
        assert (ran.code, ran.err) == (1, told)


@pytest.mark.slow
@pytest.mark.usefixtures("known")
def test_writes_name_their_target_and_ask(run: Run, url: str, tmp_path: Path) -> None:
    at = ("--server", "prod", "--graph", "film")
    uri = f"{url}/graphs/film"
    ran = run("branch", "create", "dev", *at)
    assert ran.err == f"omnigraph branch create → {uri} (served)\n"
    assert ran.out == "created branch dev from main\n"
    assert run("mutate", "-e", ADD, "--branch", "dev", *at).err == ""
    data = tmp_path / "more.jsonl"
    data.write_text('{"type": "Film", "data": {"title": "Ran"}}\n')
    ran = run("load", "--data", str(data), "--mode", "append", "--branch", "dev", "--quiet", *at)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(f"loaded {uri} on branch dev with append: 1 entities")
    over = ("load", "--data", str(data), "--mode", "overwrite", "--branch", "dev", *at)
    for gated in (("branch", "delete", "dev", *at), over):
        ran = run(*gated)
        assert (ran.code, ran.out) == (1, "")
        assert "agree to it with --yes" in ran.err
    ran = run("branch", "merge", "dev", "--delete-branch", *at)
    assert ran.out.startswith("merged dev into main: fast_forward")
    ran = run("mutate", "-e", ADD, "--if-commit", "01A", "--json", *at)
    assert ran.code == 4
    assert json.loads(ran.out)["precondition_failure"]["expected"] == "01A"
    ran = run("mutate", "-e", ADD, "--as", "ben", *at)
    assert (ran.code, ran.out) == (2, "")
    assert "the token of the server decides who acts" in ran.err
    for unserved in (["explain", "-e", PEOPLE], ["diff", "main", "main"], ["schema", "log"]):
        ran = run(*unserved, *at)
        assert (ran.code, ran.out) == (1, "")
        assert "a server does not offer" in ran.err


@pytest.mark.usefixtures("known")
def test_a_served_graph_is_looked_after(run: Run, graph: og.Graph) -> None:
    at = ("--server", "prod", "--graph", "film")
    args = ("maintain", "--dry-run")
    here, there = run(*args, "--store", str(graph.location)), run(*args, *at)
    assert (there.code, there.err) == (0, "")
    assert there == here
    assert json.loads(run(*args, "--json", *at).out)["dry_run"]
    ran = run("maintain", "--watch", *at)
    assert (ran.code, ran.out) == (2, "")
    assert "--maintain-every" in ran.err
    ran = run("maintain", "--keep", "1", *at)
    assert ran.code == 1
    assert "agree to it with --yes" in ran.err
    ran = run("embed", "--type", "Person", *at)
    assert (ran.code, ran.out) == (1, "")
    assert "@embed" in ran.err


@pytest.mark.usefixtures("known")
def test_stored_queries_by_name(run: Run) -> None:
    at = ("--server", "prod", "--graph", "film")
    ran = run("query", "person", "--params", '{"name": "Ann"}', "--format", "jsonl", *at)
    assert ran.out == '{"name":"Ann","age":40}\n'
    ran = run("mutate", "grow", "--params", '{"name": "Nobody"}', *at)
    assert ran.out.startswith("changed main via grow: 0 nodes")
    ran = run("query", "grow", *at)
    assert "use omnigraph mutate grow" in ran.err
    assert run("query", "person", "--store", "film.omni").code == 2


@pytest.mark.usefixtures("known")
def test_which_graph_of_a_server(
    run: Run, url: str, graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run("graphs", "list", "--server", "prod").out == f"film\t{graph.location}\n"
    body = {"graphs": [{"graph_id": "film", "uri": str(graph.location)}]}
    assert json.loads(run("graphs", "list", "--server", url, "--json").out) == body
    ran = run("branch", "list", "--server", "prod")
    assert (ran.code, ran.out) == (1, "")
    assert f"{url} has the graphs film: choose one with --graph" in ran.err
    monkeypatch.setenv("OMNIGRAPH_GRAPH", "film")
    assert run("branch", "list", "--server", "prod").out == "main\n"
    assert "there is no server 'prode': did you mean `prod`" in (
        run("branch", "list", "--server", "prode").err
    )


@pytest.mark.slow
@pytest.mark.usefixtures("known")
def test_profiles_and_defaults(
    run: Run, home: Path, url: str, graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure(
        home,
        f"""\
servers: {{ prod: {{ url: {url} }}, extra: {{ url: {url}/x, color: red }} }}
clusters: {{ brain: {{ root: 's3://bucket/brain' }} }}
defaults: {{ server: prod, default_graph: film, outptu: json }}
profiles:
  here: {{ store: {graph.location} }}
  away: {{ server: prod, default_graph: film }}
  many: {{ server: prod, cluster: brain }}
  team: {{ cluster: brain }}
""",
    )
    ran = run("branch", "list")
    assert ran.out == "main\n"
    said = r"config\.yaml:1:\d+: nobody knows `servers\.extra\.color`, it is ignored"
    assert re.search(said, ran.err)
    assert "`defaults.outptu`, it is ignored: did you mean `output`" in ran.err
    assert ran.err.count("servers.extra.color") == 1
    for name in ("here", "away"):
        assert run("branch", "list", "--profile", name).out == "main\n"
    for name, words in (("many", "has to name one of"), ("team", "cluster"), ("x", "no profile")):
        ran = run("branch", "list", "--profile", name)
        assert ran.code != 0
        assert words in ran.err
    assert "cannot use" in run("optimize", "--dry-run").err
    assert "cannot use" in run("optimize", "--dry-run", "--profile", "away").err
    monkeypatch.setenv("OMNIGRAPH_PROFILE", "here")
    assert run("optimize", "--dry-run").code == 0
    found = json.loads(run("profile", "list", "--json").out)["profiles"]
    assert [(one["name"], one["scope_kind"], one["active"]) for one in found] == [
        ("away", "server", False),
        ("here", "store", True),
        ("many", "invalid", False),
        ("team", "cluster", False),
    ]
    shown = json.loads(run("profile", "show", "away", "--json").out)
    assert shown == {
        "name": "away",
        "scope_kind": "server",
        "target": "prod",
        "endpoint": url,
        "default_graph": "film",
        "output_format": "table",
    }
    monkeypatch.delenv("OMNIGRAPH_PROFILE")
    assert run("profile", "show").out.startswith("profile: (defaults)\nscope: server\n")


@pytest.mark.slow
def test_whoever_writes_directly_is_the_operator(run: Run, home: Path, tmp_path: Path) -> None:
    configure(home, "operator: { actor: act-ann }\n")
    graph = new_graph(tmp_path / "own.omni")
    assert "actor_id: act-ann" in run("mutate", "-e", ADD, "--store", str(graph.location)).out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("servers: [", "is not YAML"),
        ("- a", "the file has to be a mapping"),
        ("servers: { prod: {} }", "servers.prod needs `url:`"),
        ("operator: { actor: [x] }", "operator.actor has to be text"),
        ("defaults: { server: a, store: b }", "both `store` and `server`"),
        ("defaults: { output: html }", "is one of table"),
        ("defaults:\n  output: tabel\n", "config.yaml:2:3: defaults.output is one of"),
        ("defaults: { output: tabel }", "not 'tabel': did you mean `table`?"),
        ("servers:\n  a: {}\n", "config.yaml:2:3: servers.a needs `url:`"),
        ("servers: { prod: 'https://x' }", "config.yaml:1:12: servers.prod has to be a mapping"),
        ("operator: {}\noperator: {}\n", "config.yaml:2:1: operator is written twice"),
        (
            "servers:\n  a: { url: 'https://x' }\n  a: { url: 'https://y' }\n",
            "config.yaml:3:3: servers.a is written twice",
        ),
    ],
)
def test_a_file_that_is_wrong(run: Run, home: Path, text: str, words: str) -> None:
    configure(home, text)
    ran = run("branch", "list")
    assert (ran.code, ran.out) == (1, "")
    assert words in ran.err
    assert str(home / "config.yaml") in ran.err


# -- tokens --------------------------------------------------------------------------


def test_credentials_are_for_one_pair_of_eyes(run: Run, home: Path) -> None:
    configure(home, "servers: { prod: { url: 'https://x' }, other: { url: 'https://y' } }\n")
    path = home / "credentials"
    assert run("login", "prod", "--token", "first").code == 0
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text(path.read_text() + "# kept\n[other]\ntoken = 'quoted'  \n")
    assert run("login", "prod", "--token", "second").code == 0
    assert Credentials.read(home).tokens == {"prod": "second", "other": "quoted"}
    assert "second" not in repr(Credentials.read(home))
    assert "# kept" in path.read_text()
    assert run("logout", "prod").out == "forgot the token of prod\n"
    assert run("logout", "prod").out == "there was no token of prod\n"
    assert Credentials.read(home).tokens == {"other": "quoted"}
    assert list(home.glob(".*")) == []
    path.chmod(0o640)
    for args in (["login", "prod", "--token", "third"], ["logout", "prod"]):
        ran = run(*args)
        assert (ran.code, ran.out) == (1, "")
        assert f"chmod 600 {path}" in ran.err
    with pytest.raises(errors.BadRequest, match="can be read by others"):
        token_for("https://x", read_operator_config(home), home, {})
    path.chmod(0o600)
    path.write_text("secret-without-a-section\n")
    ran = run("login", "prod", "--token", "third")
    assert "line 1" in ran.err
    assert "secret" not in ran.err


def test_a_token_that_is_none(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, token in (("prod", "a b"), ("prod", ""), ("[x]", "t"), ("../x", "t")):
        ran = run("login", name, "--token", token)
        assert (ran.code, ran.out) == (1, "")
    ran = run("login", "nowhere", "--token", "kept")
    assert ran.code == 0
    assert "there is no server 'nowhere'" in ran.err
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert run("login", "prod").code == 1


SERVERS = {
    "root": "https://x.example",
    "team": "https://x.example/team",
    "port": "https://x.example:8443",
    "plain": "http://x.example",
}


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://x.example", "root"),
        ("https://X.example:443/", "root"),
        ("https://x.example/teams", "root"),
        ("https://x.example/team", "team"),
        ("https://x.example/team/graphs/a", "team"),
        ("https://x.example:8443/team", "port"),
        ("http://x.example/team", "plain"),
        ("https://x.example.evil.org", None),
        ("https://evil.org/https://x.example", None),
        ("https://x.example:99999", None),
    ],
)
def test_a_token_goes_to_its_own_server_alone(tmp_path: Path, url: str, name: str | None) -> None:
    config = OperatorConfig(tmp_path / "config.yaml", servers=SERVERS)
    assert server_of(url, config) == name
    (tmp_path / "credentials").write_text(
        "".join(f"[{one}]\ntoken = stored-{one}\n" for one in SERVERS)
    )
    (tmp_path / "credentials").chmod(0o600)
    assert token_for(url, config, tmp_path, {}) == (None if name is None else f"stored-{name}")
    everywhere = {"OMNIGRAPH_BEARER_TOKEN": "any"}
    found = token_for(url, config, tmp_path, everywhere)
    assert found == ("any" if name is None else f"stored-{name}")
    variable = {**everywhere, "OMNIGRAPH_TOKEN_TEAM": "of-team"}
    if name == "team":
        assert token_for(url, config, tmp_path, variable) == "of-team"


# -- the shell ---------------------------------------------------------------------


@pytest.mark.usefixtures("known")
def test_a_shell_does_what_a_server_offers(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    at = ("--server", "prod", "--graph", "film")
    rows = run("query", *at, "-e", PEOPLE, "--format", "csv").out
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{PEOPLE}\n.explain {PEOPLE}\n.schema\n"))
    ran = run("shell", *at, "--format", "csv")
    assert ran.code == 1
    assert ran.out == rows + run("schema", "show", *at).out
    assert "a server does not offer explain" in ran.err
