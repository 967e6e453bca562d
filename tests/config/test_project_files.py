"""Project files: what is read, what is remarked, and where every mistake is said to be."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from omnigraph.config.discovery import discover, find_project_file
from omnigraph.config.json_schema import project_schema
from omnigraph.config.keys import PROJECT
from omnigraph.config.migrate import migrate
from omnigraph.config.project import BlobBase, ProjectFile, QueryFile
from omnigraph.config.project_reader import parse_project
from omnigraph.errors import BadRequest

HERE = Path("/projects/films/omnigraph.yaml")
WHOLE = """\
version: 1
project: { name: Films }
graphs:
  film:
    uri: film.omni
    branch: main
    schema: film.pg
    queries: queries/
    policy: { file: policies/film.yaml }
    embedding_provider: local
    external_blobs: { allow: [ { base: s3://media/, scope: server_safe } ] }
  prod:
    uri: https://graph.example.com/graphs/film
    bearer_token_env: OMNIGRAPH_PROD_TOKEN
default: { graph: film, branch: main }
output: { format: table, table_max_column_width: 80, table_cell_layout: truncate }
query: { roots: [queries, .] }
aliases:
  co-actors: { query: films.gq, name: co_actors, args: [name], params: { limit: 10 }, graph: film,
               branch: main, format: kv }
providers: { embedding: { openai: { kind: openai, model: small, api_key: "${OPENAI_API_KEY}" } } }
maintenance: { keep: 30d, commits: 1000, optimize: auto }
server:
  bind: 127.0.0.1:8080
  graphs: [film]
  policy: { file: policies/server.yaml }
  workers: 2
"""
OLDER = """\
# A project of before
project:
  name: Old   # its name

# the graphs
targets:
  local:        # on this disk
    storage: ./repo.omni
    # bearer_token_env: OMNIGRAPH_BEARER_TOKEN

server:
  target: local
  bind: 127.0.0.1:8080

cli:
  target: local   # the one
  branch: main
  actor: me
  output_format: kv
  table_max_column_width: 60
  table_cell_layout: wrap

query:
  roots:
    - queries
    - .

aliases:
  # owner:
  owner:
    command: read
    query: context.gq
    name: decision_owner
    args: [slug]
    target: local # where
    format: kv
  attach: { command: change, query: context.gq, name: attach, args: [a, b] }
auth:
  env_file: ./.env.omni
policy: {file: policy.yaml} # who may
queries: stored   # here
"""


def read(text: str) -> ProjectFile:
    return parse_project(text, HERE)


def test_a_whole_file() -> None:
    project = read(WHOLE)
    film, prod = project.graphs["film"], project.graphs["prod"]
    assert (project.name, project.default, project.is_older) == ("Films", "film", False)
    assert (film.uri, film.schema) == ("/projects/films/film.omni", HERE.parent / "film.pg")
    assert film.queries == (QueryFile(HERE.parent / "queries"),)
    assert film.external_blobs == (BlobBase("s3://media/", "server_safe"),)
    assert (prod.is_served, prod.bearer_token_env) == (True, "OMNIGRAPH_PROD_TOKEN")
    alias = project.aliases["co-actors"]
    assert (alias.query_name, alias.args, alias.params) == ("co_actors", ("name",), {"limit": 10})
    assert project.embedding["openai"].key_variable == "OPENAI_API_KEY"
    assert project.maintenance is not None
    assert project.maintenance.keep == timedelta(days=30)
    assert project.maintenance.commits == 1000
    assert project.server.workers == 2
    assert [graph.name for graph in project.served()] == ["film"]
    assert (project.warnings, project.place("server.bind")) == ((), "omnigraph.yaml:24")


def test_every_older_spelling() -> None:
    project = read(OLDER)
    assert project.is_older
    assert project.graphs["local"].uri == "/projects/films/repo.omni"
    assert (project.default, project.default_branch, project.actor) == ("local", "main", "me")
    assert (project.output.format, project.output.table_max_column_width) == ("kv", 60)
    assert project.output.table_cell_layout == "wrap"
    assert project.server.graphs == ("local",)
    assert project.aliases["owner"].command == "query"
    assert project.aliases["attach"].command == "mutate"
    assert project.aliases["owner"].graph == "local"
    assert project.policy == HERE.parent / "policy.yaml"
    assert project.queries == (QueryFile(HERE.parent / "stored"),)
    assert project.env_file == HERE.parent / ".env.omni"
    assert [warning.partition("yaml:")[2] for warning in project.warnings] == [
        "18:3: `cli.actor` says who you are, which is yours to say: `operator.actor`"
    ]


@pytest.mark.parametrize("text", ["", "# nothing\n", "graphs:\naliases:\npolicy: {}\ncli:\n"])
def test_a_file_that_says_nothing(text: str) -> None:
    project = read(text)
    assert (project.graphs, project.aliases, project.default) == ({}, {}, None)


MISTAKES = [
    ("graphs: [1]", "1:9: graphs: this must be a mapping (name: value), and is a list"),
    ("graphs: {f: {}}", "1:13: graphs.f: a graph needs `uri:`"),
    ("graphs: {f: {uri: x, uri: y}}", "1:22: graphs.f.uri: this is written twice"),
    ("graphs: {f: {uri: [x]}}", "1:19: graphs.f.uri: this must be a text, and is a list"),
    (
        "graphs: {film: {uri: x}}\ndefault: {graph: fim}",
        "2:18: default.graph: there is no graph `fim`; did you mean `film`?",
    ),
    (
        "graphs: {film: {uri: x}}\nserver: {graphs: [flim]}",
        "2:18: server.graphs: there is no graph `flim`; did you mean `film`?",
    ),
    (
        "graphs: {film: {uri: x}}\naliases: {a: {query: q.gq, graph: fil}}",
        "2:14: aliases.a: there is no graph `fil`; did you mean `film`?",
    ),
    (
        "graphs: {f: {uri: x, embedding_provider: opnai}}\nproviders: {embedding: {openai: }}",
        "1:13: graphs.f: there is no embedding provider `opnai`; did you mean `openai`?",
    ),
    ("output: {format: tabel}", "1:18: output.format: `tabel` is not known here; did you mean"),
    (
        "output: {table_max_column_width: 7}",
        "1:34: output.table_max_column_width: this must be a whole number from 8 on, and is `7`",
    ),
    ("maintenance: {keep: soon}", "1:21: maintenance.keep: this must be a whole number and one"),
    ("maintenance: {commits: -1}", "1:24: maintenance.commits: this must be a whole number"),
    ("server: {workers: 0}", "1:19: server.workers: this must be a whole number from 1 on"),
    ("aliases: {a: {name: q}}", "1:14: aliases.a: an alias needs `query:`"),
    ("aliases: {a: {query: q.gq, command: run}}", "1:37: aliases.a.command: `run` is not known"),
    ("version: 2", "1:10: version: this program reads version 1, and files without a version"),
    ("a: [", "1:5: this is not YAML"),
    (
        "graphs: {f: {uri: x, external_blobs: {allow: [{base: media}]}}}",
        "1:54: graphs.f.external_blobs.allow[0].base: this must be a URI, such as s3://media/",
    ),
]


@pytest.mark.parametrize(("text", "said"), MISTAKES, ids=lambda value: value[:40])
def test_a_mistake_is_told_with_its_place(text: str, said: str) -> None:
    with pytest.raises(BadRequest) as raised:
        read(text)
    assert f"{HERE}:{said}" in str(raised.value)


def test_all_mistakes_are_told_at_once() -> None:
    with pytest.raises(BadRequest) as raised:
        read("output: {format: x}\nserver: {workers: y}\ngraphs: {f: {}}")
    lines = str(raised.value).splitlines()
    assert [line.split(":")[1] for line in lines[:3]] == ["1", "2", "3"]
    assert lines[3] == "3 problems"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("grphs: {}", "1:1: `grphs` is a key that nobody knows, it is ignored: did you mean `grap"),
        (
            "graphs: {f: {uri: x, shema: y}}",
            "1:22: `graphs.f.shema` is a key that nobody knows, it is ignored: did you mean `sche",
        ),
        (
            "aliases: {a: {query: q.gq, parms: {}}}",
            "1:28: `aliases.a.parms` is a key that nobody knows, it is ignored: did you mean",
        ),
    ],
)
def test_an_unknown_key_is_remarked_with_the_nearest_one(text: str, said: str) -> None:
    (warning,) = read(text).warnings
    assert warning.startswith(f"{HERE}:{said}")


def test_stored_queries_in_each_of_their_forms() -> None:
    def queries(text: str) -> tuple[QueryFile, ...]:
        return read(f"graphs: {{f: {{uri: x, queries: {text}}}}}").graphs["f"].queries

    base = HERE.parent
    assert queries("q.gq") == (QueryFile(base / "q.gq"),)
    assert queries("[a.gq, b]") == (QueryFile(base / "a.gq"), QueryFile(base / "b"))
    assert queries("{one: {file: a.gq}}") == (QueryFile(base / "a.gq", "one"),)


def test_parameters_are_what_json_would_have() -> None:
    text = "{a: 1, b: '1', c: true, d: , e: [1.5, x], f: {g: null}, h: 2024-01-01, i: 007}"
    assert read(f"aliases: {{a: {{query: q, params: {text}}}}}").aliases["a"].params == {
        "a": 1,
        "b": "1",
        "c": True,
        "d": None,
        "e": [1.5, "x"],
        "f": {"g": None},
        "h": "2024-01-01",
        "i": "007",
    }


# -- where it is -------------------------------------------------------------------------


def test_it_is_looked_for_upwards_to_the_repository(tmp_path: Path) -> None:
    outer = tmp_path / "omnigraph.yaml"
    outer.write_text("version: 1\n")
    inner = tmp_path / "repository" / "deep" / "deeper"
    inner.mkdir(parents=True)
    assert find_project_file(inner) == outer
    (tmp_path / "repository" / ".git").mkdir()
    assert find_project_file(inner) is None
    own = tmp_path / "repository" / "omnigraph.yaml"
    own.write_text("version: 1\n")
    assert find_project_file(inner) == own


def test_a_file_that_is_named(tmp_path: Path) -> None:
    (tmp_path / "omnigraph.yaml").write_text("project: {name: found}\n")
    other = tmp_path / "other.yaml"
    other.write_text("project: {name: named}\n")

    def name(given: str | None, **environment: str) -> str | None:
        project = discover(given, tmp_path, environment)
        return None if project is None else project.name

    assert name(None) == "found"
    assert name(None, OMNIGRAPH_CONFIG=str(other)) == "named"
    assert name(str(tmp_path), OMNIGRAPH_CONFIG=str(other)) == "found"
    with pytest.raises(BadRequest, match="which --config names"):
        name("nowhere.yaml")
    with pytest.raises(BadRequest, match="which OMNIGRAPH_CONFIG names"):
        name(None, OMNIGRAPH_CONFIG="nowhere.yaml")


# -- the other ways to see it ------------------------------------------------------------


@pytest.mark.parametrize("text", [WHOLE, OLDER])
def test_what_is_read_is_good_by_the_json_schema(text: str) -> None:
    schema = jsonschema_rs.validator_for(project_schema())
    schema.validate(yaml.safe_load(text))


@pytest.mark.parametrize("text", [text for text, said in MISTAKES if "no graph" not in said])
def test_the_json_schema_finds_wrong_types_too(text: str) -> None:
    schema = jsonschema_rs.validator_for(project_schema())
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError:
        return
    told = ("this must be a", "is not known", "version")
    said = next(said for given, said in MISTAKES if given == text)
    if any(word in said for word in told) and "URI" not in said:
        assert not schema.is_valid(found)


def test_the_json_schema_has_every_key() -> None:
    shown = repr(project_schema())
    for key in PROJECT:
        assert f"'{key.parts[-1].strip('*')}'" in shown


def test_an_older_file_becomes_version_1_with_its_comments() -> None:
    found = migrate(OLDER, HERE)
    assert found.text.count("#") == OLDER.count("#")
    again = read(found.text)
    assert (again.is_older, again.default, again.warnings) == (False, "local", ())
    assert again.graphs["local"].policy == HERE.parent / "policy.yaml"
    assert again.graphs["local"].queries == (QueryFile(HERE.parent / "stored"),)
    assert "# on this disk" in found.text
    assert "cli" not in yaml.safe_load(found.text)
    assert migrate(found.text, HERE).changes == ()
    assert migrate(WHOLE, HERE).text == WHOLE
