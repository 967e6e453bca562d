"""What a load says it does: counts of what is inserted, replaced, patched and emptied; the page."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.cli.main import main
from omnigraph.errors import BadRequest, ValidationError
from omnigraph.write.change.results import TypeChanges

SCHEMA = "node Person { name: String @key\n age: I32? }\nedge Knows: Person -> Person"
LINES = (
    '{"type":"Person","data":{"name":"ann","age":3}}\n{"type":"Person","data":{"name":"ben"}}\n'
    '{"edge":"Knows","from":"ann","to":"ben"}\n'
)
BAD = '<script>alert("x")</script>'


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = og.init(tmp_path / "people", SCHEMA)
    made.load(LINES, mode="append")
    return made


@pytest.mark.parametrize("bulk", [False, True])
@pytest.mark.parametrize(
    ("mode", "people"),
    [
        ("merge", TypeChanges(inserted=1, replaced=1)),
        ("patch", TypeChanges(inserted=1, patched=1)),
        ("overwrite", TypeChanges(inserted=2, emptied=2)),
    ],
)
def test_a_dry_run_counts(
    graph: og.Graph, tmp_path: Path, mode: str, people: TypeChanges, bulk: bool
) -> None:
    given: object = (
        '{"type":"Person","data":{"name":"ann"}}\n{"type":"Person","data":{"name":"c"}}\n'
    )
    if bulk:
        (tmp_path / "Person.csv").write_text("name\nann\nc\n")
        given = tmp_path / "Person.csv"
    if mode == "overwrite":
        graph.mutate('query q() { delete Knows where from = "ann" }')
    before = graph.snapshot().commit_id
    done = graph.load(given, mode=mode, dry_run=True)
    assert (done.published, graph.snapshot().commit_id) == (None, before)
    assert done.changes == {"node:Person": people}
    assert graph.load(given, mode=mode).changes == done.changes


def test_the_command_tells_what_would_happen(
    graph: og.Graph, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Person.csv").write_text("name,age\nann,4\nc,\n")
    argv = ["load", str(graph.location.path), "--data", str(tmp_path / "Person.csv")]
    assert main([*argv, "--mode", "patch", "--dry-run"]) == 0
    assert "node:Person: 1 inserted, 1 patched" in capsys.readouterr().err
    assert main([*argv, "--mode", "merge", "--dry-run", "--json"]) == 0
    (changes,) = json.loads(capsys.readouterr().out)["changes"]
    assert changes == {
        "type": "node:Person", "inserted": 1, "replaced": 1, "patched": 0, "emptied": 0,
    }  # fmt: skip


class _Page(HTMLParser):
    """The tags of a page, and every place that a browser would fetch something from."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.fetched: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.fetched += [
            str(value) for name, value in attrs if name in ("src", "href", "xlink:href")
        ]


def test_the_page_of_a_load(graph: og.Graph, tmp_path: Path) -> None:
    name = BAD.replace('"', '""')
    rows = ["name,age", "cat,1", *(f'"{name}",{at}x' for at in range(20))]
    (tmp_path / "Person.csv").write_text("\n".join(rows) + "\n")
    file = tmp_path / "report.html"
    done = graph.load(tmp_path / "Person.csv", mode="patch", on_error="skip", report=file)
    page = file.read_text()
    found = _Page(page)
    assert done.rejected == 20
    assert len(done.samples) == 5
    assert done.work is not None
    assert done.work.tasks["stage"]
    assert "script" not in found.tags
    assert not found.fetched
    assert "url(" not in page
    assert found.tags.count("svg") >= 3
    assert "&lt;script&gt;" in page
    for said in ("type: 20", "Person.csv:3", "node:Person", "stage", done.commit.id):
        assert said in page
    small = graph.load(LINES, mode="merge", report=tmp_path / "small.html", dry_run=True)
    assert small.is_dry_run
    assert "Dry run" in (tmp_path / "small.html").read_text()


@pytest.mark.parametrize("bulk", [False, True])
def test_the_page_of_a_refusal(graph: og.Graph, tmp_path: Path, bulk: bool) -> None:
    (tmp_path / "Person.csv").write_text(f"name,age\ncat,{'<b>'}\n")
    given = tmp_path / "Person.csv" if bulk else LINES.replace('"ben"', "7")
    with pytest.raises(ValidationError):
        graph.load(given, mode="append", report=tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "Refused" in page
    assert re.search("(type|format): 1", page)
    assert "<b>" not in page


def test_a_report_that_cannot_be_written_is_told_first(graph: og.Graph, tmp_path: Path) -> None:
    before = graph.snapshot().commit_id
    with pytest.raises(BadRequest, match="name a file in a directory"):
        graph.load(LINES, mode="merge", report=tmp_path / "none" / "r.html")
    assert graph.snapshot().commit_id == before


@pytest.mark.slow
def test_a_small_csv_is_loaded_at_once(graph: og.Graph, tmp_path: Path) -> None:
    """A file of 76 rows, by the command as installed, without Spark ever being imported."""
    (tmp_path / "Person.csv").write_text(
        "name,age\n" + "".join(f"p{at},{at}\n" for at in range(76))
    )
    script = (
        "import sys\nfrom omnigraph.cli.main import main\n"
        f"code = main(['load', {str(graph.location.path)!r}, '--data',"
        f" {str(tmp_path / 'Person.csv')!r}, '--mode', 'append', '--json'])\n"
        "assert 'pyspark' not in sys.modules and 'py4j' not in sys.modules\n"
        "raise SystemExit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["engine"], told["total_entities"]) == ("inline", 76)
