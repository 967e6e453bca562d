"""An export in a file: whole or not there, and what the report says of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import BadRequest, StorageError
from omnigraph.read.output.export import write_export
from tests.read.graphs import add_rows, export_of, make_graph


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = make_graph(tmp_path / "graph")
    add_rows(graph, "node:Person", [{"id": name, "name": name} for name in ("Ann", "Ben")])
    add_rows(graph, "edge:Knows", [{"id": "1", "src": "Ann", "dst": "Ben"}])
    return graph


def test_the_file_and_the_report(graph: og.Graph, tmp_path: Path) -> None:
    path = tmp_path / "out" / "people.jsonl"
    path.parent.mkdir()
    path.write_text("old")
    report = write_export(export_of(graph), path)
    assert path.read_text(encoding="utf-8").splitlines() == list(export_of(graph))
    assert (report.path, report.bytes) == (str(path), path.stat().st_size)
    assert report.nodes == {"Person": 2, "Sample": 0}
    assert report.edges == {"Knows": 1}
    assert report.total == 3
    assert list(path.parent.iterdir()) == [path]


def test_a_selection_reports_only_itself(graph: og.Graph, tmp_path: Path) -> None:
    report = write_export(export_of(graph, ["Person"]), str(tmp_path / "people.jsonl"))
    assert (report.nodes, report.edges) == ({"Person": 2}, {})


def test_a_link_stays_a_link(graph: og.Graph, tmp_path: Path) -> None:
    real, link = tmp_path / "real.jsonl", tmp_path / "link.jsonl"
    real.write_text("old")
    link.symlink_to(real)
    write_export(export_of(graph), link)
    assert link.is_symlink()
    assert len(real.read_text(encoding="utf-8").splitlines()) == 3


def test_an_error_leaves_what_was_there(graph: og.Graph, tmp_path: Path) -> None:
    place = tmp_path / "out"
    place.mkdir()
    path = place / "people.jsonl"
    path.write_text("old")
    export = export_of(graph)
    for file in (tmp_path / "graph" / "nodes").rglob("*.lance"):
        file.unlink()
    with pytest.raises(StorageError):
        write_export(export, path)
    assert path.read_text() == "old"
    assert list(place.iterdir()) == [path]


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("s3://bucket/people.jsonl", "give the path of a local file"),
        ("missing/people.jsonl", "No such file or directory"),
        (".", "not a file"),
        ("/dev/null", "not a file"),
    ],
)
def test_places_that_are_refused(
    graph: og.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadRequest, match=message):
        write_export(export_of(graph), path)
