"""`omnigraph cleanup`: what it shows, what it removes, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from tests.film_graph import SCHEMA, files, insert_row
from tests.maintain.cleaning import people

Run = Callable[..., Any]


def grown(uri: str) -> str:
    graph = og.init(uri, SCHEMA)
    for number in range(3):
        insert_row(graph, "node:Person", f"p{number}")
    return uri


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return grown(str(tmp_path / "film.omni"))


def test_without_confirmation_it_only_shows(run: Run, uri: str) -> None:
    before = files(Path(uri))
    ran = run("cleanup", uri, "--keep", "1", "--grace", "0")
    assert ran.code == 0
    head, _, *rows, total = ran.out.splitlines()
    assert [cell.strip() for cell in head.split("|")] == ["table", "versions", "files", "bytes"]
    cells = {row.split("|")[0].strip(): row.split("|")[1].strip() for row in rows}
    assert cells == {"edge:ActedIn": "0", "node:Film": "0", "node:Person": "2", "__manifest": "3"}
    assert total.startswith("would reclaim 3 commits: ")
    assert ran.err == (
        "to be kept: the newest commit of every branch, and what branches share\n"
        "nothing was removed: add --confirm to do it\n"
    )
    assert files(Path(uri)) == before


def test_with_it_everything_goes(run: Run, uri: str) -> None:
    ran = run("cleanup", uri, "--keep", "1", "--grace", "0s", "--confirm")
    assert ran.code == 0
    assert ran.err == f"omnigraph cleanup → {uri} (direct, local)\n"
    assert "reclaimed 3 commits: " in ran.out
    assert people(og.open(uri)) == ["p0", "p1", "p2"]
    oldest = json.loads(run("commit", "list", uri, "--json").out)["commits"][-1]
    query = "query q() { match { $p: Person } return { $p.name } }"
    ran = run("query", "--store", uri, "-e", query, "--snapshot", oldest["graph_commit_id"])
    assert ran.code == 1
    assert "cleanup has reclaimed what it showed" in ran.err
    again = run("cleanup", "--store", uri, "--keep", "1", "--grace", "0", "--confirm", "--quiet")
    assert again.out.splitlines()[-1] == "reclaimed 0 commits: 0 files, 0 bytes"
    assert again.err == ""


def test_for_programs(run: Run, uri: str) -> None:
    args = ("--keep", "2", "--older-than", "0", "--grace", "0", "--json")
    planned = json.loads(run("cleanup", uri, *args).out)
    ran = run("cleanup", uri, *args, "--confirm", "--quiet")
    assert (ran.code, ran.err) == (0, "")
    body = json.loads(ran.out)
    assert planned == {**body, "dry_run": True}
    datasets = body.pop("datasets")
    assert body == {
        "uri": uri,
        "keep_versions": 2,
        "older_than_secs": 0,
        "dry_run": False,
        "commits_reclaimed": 2,
    }
    assert [dataset["type_key"] for dataset in datasets] == [
        *("edge:ActedIn", "node:Film", "node:Person", "__manifest")
    ]
    manifest = datasets[-1]
    assert manifest["path"] == "__manifest"
    assert (manifest["files_removed"], manifest["old_versions_removed"]) == (6, 2)
    assert manifest["bytes_removed"] > 0
    assert manifest["error"] is None


def test_by_default_young_files_stay(run: Run, uri: str) -> None:
    assert "reclaimed 0 commits" in run("cleanup", uri, "--keep", "1", "--confirm").out


def test_an_error_with_a_table_is_told(run: Run, uri: str) -> None:
    person = og.open(uri).snapshot().tables["node:Person"]
    broken = Path(uri, person.table.path, "_versions", f"d{person.pin.version}.manifest")
    broken.write_bytes(b"broken")
    ran = run("cleanup", uri, "--keep", "1", "--grace", "0", "--confirm", "--json", "--quiet")
    assert ran.code == 1
    assert ran.err.startswith(f"error: {person.table.path}: ")
    errors = [found["error"] is None for found in json.loads(ran.out)["datasets"]]
    assert errors == [True, True, False, True]


@pytest.mark.parametrize(
    ("given", "seconds", "said"),
    [
        ("90", 90, "90 seconds"),
        ("90s", 90, "90 seconds"),
        ("2m", 120, "2 minutes"),
        ("1h", 3_600, "1 hour"),
        ("30d", 2_592_000, "30 days"),
        ("2w", 1_209_600, "2 weeks"),
        ("0", 0, "0 seconds"),
    ],
)
def test_durations(run: Run, uri: str, given: str, seconds: int, said: str) -> None:
    ran = run("cleanup", uri, "--older-than", given, "--json")
    assert json.loads(ran.out)["older_than_secs"] == seconds
    assert f"commits younger than {said} of every branch" in ran.err


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ((), "give --keep N, --older-than D or both"),
        (("--keep", "-1"), "--keep"),
        (("--older-than", "5y"), "such as 7d"),
        (("--older-than", "-5"), "such as 7d"),
        (("--older-than", "1.5h"), "such as 7d"),
        (("--older-than", "9" * 30), "too long"),
        (("--keep", "1", "--as", "ann"), "--as"),
        (("--keep", "1", "--server", "x"), "--server"),
    ],
)
def test_what_is_refused(run: Run, uri: str, args: tuple[str, ...], told: str) -> None:
    ran = run("cleanup", uri, *args)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.err


def test_on_s3_it_asks(run: Run, s3_bucket: str) -> None:
    uri = grown(f"{s3_bucket}/film.omni")
    args = ("cleanup", uri, "--keep", "1", "--grace", "0")
    assert "would reclaim 3 commits" in run(*args).out
    ran = run(*args, "--confirm")
    assert (ran.code, ran.out) == (1, "")
    assert "agree to it with --yes" in ran.err
    ran = run(*args, "--confirm", "--yes")
    assert ran.code == 0
    assert "reclaimed 3 commits" in ran.out
    assert people(og.open(uri)) == ["p0", "p1", "p2"]
