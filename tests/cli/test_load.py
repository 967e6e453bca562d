"""`omnigraph load`: files and stdin, modes, branches, and what is printed."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests.film_graph import files
from tests.pilot_graph import DATA, SCHEMA

Run = Callable[..., Any]

EVE = '{"type": "Pilot", "data": {"name": "Eve", "hours": 1}}\n'
ANN = '{"type": "Pilot", "data": {"name": "Ann"}}\n'


@pytest.fixture
def uri(tmp_path: Path) -> str:
    path = tmp_path / "pilots.omni"
    og.init(path, SCHEMA).load(DATA, mode="append")
    return str(path)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], str]:
    """Write a file of data; returns its path."""

    def _write(text: str) -> str:
        path = tmp_path / "data.jsonl"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return _write


def lines(run: Run, uri: str, *args: str) -> list[str]:
    found: list[str] = run("export", uri, *args).out.splitlines()
    return found


# -- what is printed ---------------------------------------------------------------


def test_for_people(run: Run, uri: str, write: Callable[[str], str]) -> None:
    ran = run("load", uri, "--data", write(EVE), "--mode", "append")
    assert ran.code == 0
    assert ran.err == f"omnigraph load → {uri} (direct, local)\n"
    assert ran.out == (
        f"loaded {uri} on branch main with append: "
        "1 entities across 1 node types and 0 edge types\n"
    )
    assert run("load", uri, "--data", write(EVE), "--mode", "merge", "--quiet").err == ""


def test_for_programs(run: Run, uri: str, write: Callable[[str], str]) -> None:
    data = write(
        '{"edge": "Trains", "from": "Eve", "to": "Ann"}\n'
        '{"edge": "stationedat", "from": "Eve", "to": "Arda"}\n'
        '{"type": "Base", "data": {"name": "Arda"}}\n' + EVE + ANN
    )
    before = og.open(uri).snapshot().commit_id
    ran = run("load", "--store", uri, "--data", data, "--mode", "merge", "--as", "zoe", "--json")
    assert ran.code == 0
    newest = og.open(uri).commits.list()[0]
    assert json.loads(ran.out) == {
        "uri": uri,
        "branch": "main",
        "mode": "merge",
        "base_branch": None,
        "branch_created": False,
        "nodes": [
            {"name": "Base", "entities_loaded": 1},
            {"name": "Pilot", "entities_loaded": 2},
        ],
        "edges": [
            {"name": "StationedAt", "entities_loaded": 1},
            {"name": "Trains", "entities_loaded": 1},
        ],
        "total_entities": 5,
        "actor_id": "zoe",
        "commit": {
            "graph_commit_id": newest.id,
            "graph_branch": None,
            "graph_manifest_version": newest.manifest_version,
            "parent_commit_id": before,
            "merged_parent_commit_id": None,
            "actor_id": "zoe",
            "created_at": newest.created_at,
        },
        "changes": [
            {"type": key, "inserted": new, "replaced": old, "patched": 0, "emptied": 0}
            for key, new, old in (
                ("edge:StationedAt", 1, 0),
                ("edge:Trains", 1, 0),
                ("node:Base", 0, 1),
                ("node:Pilot", 1, 1),
            )
        ],
    }


def test_an_empty_file_is_a_commit(run: Run, uri: str, write: Callable[[str], str]) -> None:
    before = lines(run, uri)
    ran = run("load", uri, "--data", write(" \n\n"), "--mode", "overwrite", "--json")
    done = json.loads(ran.out)
    assert (done["total_entities"], done["nodes"], done["edges"]) == (0, [], [])
    assert done["commit"]["graph_commit_id"] == og.open(uri).snapshot().commit_id
    assert lines(run, uri) == before


# -- modes -------------------------------------------------------------------------


def test_append_refuses_what_exists(run: Run, uri: str, write: Callable[[str], str]) -> None:
    data, before = write(EVE + ANN), files(Path(uri))
    ran = run("load", uri, "--data", data, "--mode", "append")
    assert (ran.code, ran.out) == (1, "")
    assert "'Ann'" in ran.err
    assert files(Path(uri)) == before


def test_merge_replaces_the_whole_entity(run: Run, uri: str, write: Callable[[str], str]) -> None:
    assert run("load", uri, "--data", write(EVE + ANN), "--mode", "merge").code == 0
    found = [json.loads(line)["data"] for line in lines(run, uri, "--type", "Pilot")]
    assert [pilot["name"] for pilot in found] == ["Ann", "Ben", "Cat", "Dan", "Eve"]
    assert (found[0]["hours"], found[0]["ratings"]) == (None, None)


def test_overwrite_replaces_the_types_of_the_file_only(
    run: Run, uri: str, write: Callable[[str], str]
) -> None:
    data = write('{"edge": "Trains", "from": "Dan", "to": "Cat", "data": {"id": "e9"}}\n')
    assert run("load", uri, "--data", data, "--mode", "overwrite").code == 0
    assert len(lines(run, uri, "--type", "Trains")) == 1
    assert len(lines(run, uri)) == 9
    ran = run("load", uri, "--data", write(EVE), "--mode", "overwrite")
    assert (ran.code, ran.out) == (1, "")
    assert "src 'Ann' not found in Pilot" in ran.err
    assert len(lines(run, uri)) == 9


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--data", "d.jsonl"], "Missing option '--mode'"),
        (["--mode", "merge"], "Missing option '--data'"),
        (["--data", "d.jsonl", "--mode", "upsert"], "'upsert' is not one of"),
        (["--data", "d.jsonl", "--mode", "merge", "--store", "x"], "more than one address"),
    ],
)
def test_usage_errors(run: Run, uri: str, args: list[str], message: str) -> None:
    ran = run("load", uri, *args)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert "Usage: omnigraph load" in ran.err


def test_what_cannot_be_undone_elsewhere_needs_consent(
    run: Run, uri: str, write: Callable[[str], str], s3_bucket: str
) -> None:
    remote = f"{s3_bucket}/pilots.omni"
    og.init(remote, SCHEMA).load(DATA, mode="append")
    base = ("load", remote, "--data", write(DATA), "--mode")
    ran = run(*base, "overwrite")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        f"error: overwriting types of branch main on {remote} cannot be undone: "
        "agree to it with --yes\n"
    )
    assert run(*base, "overwrite", "--json").code == 1
    assert len(og.open(remote).commits.list()) == 2
    ran = run(*base, "overwrite", "--yes")
    assert (ran.code, ran.err) == (0, f"omnigraph load → {remote} (direct, remote)\n")
    assert run(*base, "merge").code == 0
    assert lines(run, remote) == lines(run, uri)


# -- what is wrong with the data ---------------------------------------------------


def test_every_problem_is_told_with_its_place(
    run: Run, uri: str, write: Callable[[str], str]
) -> None:
    data = write(
        EVE
        + '{"type": "Pilot", "data": {"name": "Fay", "hours": "many"}}\n'
        + '{"type": "Pilto", "data": {}}\n'
        + '{"edge": "Trains", "from": "Ann", "to": "Eve", "data": {"sine": 1}}\n'
    )
    before = files(Path(uri))
    ran = run("load", uri, "--data", data, "--mode", "append", "--quiet", "--json")
    assert ran.code == 1
    assert json.loads(ran.out)["error"]
    assert ran.err.splitlines() == [
        f'error: {data}:2:52: Pilot.hours: expected I32, found the string "many"',
        f"{data}:3:10: unknown node type 'Pilto'; did you mean `Pilot`?",
        f"{data}:4:57: unknown property 'sine' for Trains; did you mean `since`?",
        "3 problems; nothing was written",
    ]
    assert files(Path(uri)) == before


def test_rules_of_the_schema_are_told_with_their_place(
    run: Run, uri: str, write: Callable[[str], str]
) -> None:
    data = write(
        EVE
        + EVE
        + '{"edge": "Trains", "from": "Ann", "to": "Zed"}\n'
        + '{"edge": "Trains", "from": "Yan", "to": "Ben"}\n'
    )
    before = files(Path(uri))
    ran = run("load", uri, "--data", data, "--mode", "merge", "--quiet")
    assert (ran.code, ran.out) == (1, "")
    assert f"{data}:3:41: dst 'Zed' not found in Pilot" in ran.err
    assert f"{data}:4:28: src 'Yan' not found in Pilot" in ran.err
    assert "@unique violation on Pilot.name: value 'Eve'" in ran.err
    assert files(Path(uri)) == before


def test_a_vector_without_a_text(run: Run, tmp_path: Path, write: Callable[[str], str]) -> None:
    place = tmp_path / "memos.omni"
    og.init(place, "node Memo { code: String @key  text: String  v: Vector(2) @embed(text) }")
    data = write('{"type": "Memo", "data": {"code": "a", "text": " "}}\n')
    ran = run("load", str(place), "--data", data, "--mode", "append", "--quiet")
    assert ran.code == 1
    assert ran.err == f"error: {data}:1: non-nullable property 'v' has null or invalid values\n"


def test_a_vector_that_is_computed(
    run: Run, tmp_path: Path, write: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "memos.omni"
    og.init(place, "node Memo { code: String @key  text: String  v: Vector(2) @embed(text) }")
    data = write('{"type": "Memo", "data": {"code": "a", "text": "x"}}\n')
    load = ("load", str(place), "--data", data, "--mode", "append", "--quiet", "--json")
    ran = run(*load)
    assert ran.code == 1
    assert "OMNIGRAPH_EMBED_PROVIDER" in ran.err + ran.out
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    commit = json.loads(run(*load).out)["commit"]
    assert commit["embedding"] == {"provider": "mock", "model": ""}
    shown = run("commit", "show", commit["graph_commit_id"], "--uri", str(place), "--json").out
    assert json.loads(shown) == commit


def test_data_that_is_not_there(run: Run, uri: str, tmp_path: Path) -> None:
    path = tmp_path / "none.jsonl"
    ran = run("load", uri, "--data", str(path), "--mode", "merge", "--quiet")
    assert (ran.code, ran.err) == (1, f"error: cannot read {path}: No such file or directory\n")
    ran = run("load", str(tmp_path / "none.omni"), "--data", str(path), "--mode", "merge")
    assert (ran.code, ran.err) == (1, f"error: there is no graph at {tmp_path / 'none.omni'}\n")


# -- where the data comes from -----------------------------------------------------


def test_stdin(run: Run, uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = io.TextIOWrapper(io.BytesIO((EVE + "\r\n{}").encode()))
    monkeypatch.setattr(sys, "stdin", given)
    ran = run("load", uri, "--data", "-", "--mode", "append", "--quiet")
    assert ran.code == 1
    assert ran.err.startswith("error: line 3")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(EVE.encode())))
    assert run("load", uri, "--data", "-", "--mode", "append", "--quiet").code == 0
    assert len(lines(run, uri, "--type", "Pilot")) == 5


def test_a_directory_and_a_pattern(run: Run, uri: str, tmp_path: Path) -> None:
    place = tmp_path / "more"
    place.mkdir()
    (place / "1.jsonl").write_text('{"edge": "Trains", "from": "Eve", "to": "Ann"}\n')
    (place / "2.ndjson").write_text(EVE)
    assert run("load", uri, "--data", str(place), "--mode", "append").code == 0
    assert len(lines(run, uri)) == 14
    assert run("load", uri, "--data", f"{place}/2*", "--mode", "merge").code == 0
    ran = run("load", uri, "--data", f"{place}/3*", "--mode", "merge", "--quiet")
    assert (ran.code, ran.err) == (1, f"error: no file matches {place}/3*\n")


# -- branches ----------------------------------------------------------------------


def test_a_branch_that_is_there(run: Run, uri: str, write: Callable[[str], str]) -> None:
    og.open(uri).branches.create("draft")
    base = ("load", uri, "--data", write(EVE), "--mode", "append", "--branch", "draft")
    done = json.loads(run(*base, "--from", "main", "--json").out)
    assert (done["branch"], done["base_branch"], done["branch_created"]) == ("draft", "main", False)
    assert done["commit"]["graph_branch"] == "draft"
    assert len(lines(run, uri, "--branch", "draft")) == 13
    assert len(lines(run, uri)) == 12


def test_a_branch_that_is_made(run: Run, uri: str, write: Callable[[str], str]) -> None:
    base = ("load", uri, "--data", write(EVE), "--mode", "append", "--branch", "draft")
    ran = run(*base, "--quiet")
    assert (ran.code, ran.out, ran.err) == (1, "", "error: there is no branch draft\n")
    done = json.loads(run(*base, "--from", "main", "--json").out)
    assert (done["base_branch"], done["branch_created"]) == ("main", True)
    assert og.open(uri).branches.list() == ["draft", "main"]
    assert len(lines(run, uri, "--branch", "draft")) == 13
    assert len(lines(run, uri)) == 12


def test_bad_data_makes_no_branch(run: Run, uri: str, write: Callable[[str], str]) -> None:
    data = write('{"edge": "Trains", "from": "Ann", "to": "Zed"}\n')
    ran = run("load", uri, "--data", data, "--mode", "append", "--branch", "b", "--from", "main")
    assert ran.code == 1
    assert og.open(uri).branches.list() == ["main"]


# -- round trip --------------------------------------------------------------------


def test_export_init_load_is_a_round_trip(run: Run, uri: str, tmp_path: Path) -> None:
    insert = 'query q() { insert Trains { from: "Cat", to: "Dan", note: "zoë \\n 😀" } }'
    assert run("mutate", "--store", uri, "-e", insert).code == 0
    exported = run("export", uri).out
    path, schema, copy = tmp_path / "all.jsonl", tmp_path / "s.pg", str(tmp_path / "copy.omni")
    path.write_text(exported, encoding="utf-8")
    schema.write_text(run("schema", "show", uri).out)
    assert run("init", copy, "--schema", str(schema)).code == 0
    assert run("load", copy, "--data", str(path), "--mode", "overwrite").code == 0
    assert run("export", copy).out == exported
    assert len(exported.splitlines()) == 13


def test_columns_that_are_no_properties_may_be_left_out(run: Run, tmp_path: Path) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    uri = str(tmp_path / "g.omni")
    og.init(uri, "node P { name: String @key age: I32? }\nedge K: P -> P { since: I32? }").close()
    people, knows = tmp_path / "p.csv", tmp_path / "k.parquet"
    people.write_text("name,shoes,age\na,44,7\nb,,\n")
    parquet.write_table(pa.table({"note": ["x"], "from": ["a"], "to": ["b"]}), knows)
    data = ["--data", f"P={people}", "--data", f"K={knows}", "--mode", "append", "--quiet"]
    refused = run("load", uri, *data)
    assert refused.code == 1
    assert "unknown property 'shoes' for P" in refused.err
    assert run("load", uri, *data, "--ignore-extra").out.startswith(f"loaded {uri} on branch main")
    with og.open(uri) as graph:
        asked = "match { $p: P  $p knows $q } return { $p.age, $q.name }".replace("knows", "k")
        assert graph.query(asked).rows == [{"p.age": 7, "q.name": "b"}]
        # What is needed is missed all the same.
    people.write_text("nom,age\nc,1\n")
    missing = run("load", uri, *data[:2], "--mode", "append", "--ignore-extra")
    assert missing.code == 1
    assert "name" in missing.err
