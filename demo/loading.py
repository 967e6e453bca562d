"""Loading in bulk: at once in this process, on Spark where it is much, and what is wrong left out.

Owns the made-up graphs of this part of the demonstration.
"""

from __future__ import annotations

import json
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import omnigraph as og
from demo.telling import check, run, say

POPULAR = (
    "query popular() { match { $p: Person $q: Person $q knows $p } "
    "return { $p.name as name, $p.city as city, count($q) as known_by } "
    "order { known_by desc } limit 3 }"
)
CIRCLE = (
    "query circle($who: String) { match { $p: Person { handle: $who } $p knows{1,2} $q "
    "$q worksAt $c } return { $c.name as company, $c.industry as industry, count($q) as people } "
    "order { people desc, company } limit 3 }"
)


def show_loads(directory: Path) -> None:
    """All of it, in a directory for the graphs."""
    show_load_at_once(directory)
    show_bulk_load(directory)
    show_rejects(directory)


def show_load_at_once(directory: Path) -> None:
    """Load some CSV files without any Spark."""
    say(
        "Files are loaded at once",
        "CSV, Parquet and JSON lines of up to 512 MiB are decoded and checked in this process, by\n"
        "the same stages that run on Spark beyond that.",
    )
    size = ("--people", "20000", "--edges", "60000", "--seed", "7")
    run("generate", "--out", "towns", *size, "--format", "csv", cwd=directory)
    run("init", "--schema", "towns/schema.pg", "towns.omni", cwd=directory)
    begun = time.monotonic()
    run("load", "towns.omni", "--data", "towns/*/*.csv", "--mode", "append", cwd=directory)
    took = time.monotonic() - begun
    rows = _rows(directory / "towns.omni")
    check(rows == 85_200, f"\n    {rows:,} rows of CSV in {took:.1f} s, the start included")


def _rows(place: Path) -> int:
    shown = og.open(place, read_only=True).snapshot()
    return sum(found.pin.row_count for found in shown.tables.values())


def show_bulk_load(directory: Path) -> None:
    """Load a million edges on Spark, and ask about them."""
    say(
        "A made-up graph of any size",
        "100,800 nodes and a million edges, as Parquet files; the same ones on every machine.",
    )
    size = ("--people", "80000", "--edges", "1000000", "--seed", "7")
    run("generate", "--out", "people", *size, "--format", "parquet", "--files", "2", cwd=directory)
    say(
        "Large input is loaded on Spark, and is still one commit",
        "Tasks read, check and write side by side; uniqueness and ends of edges are checked over\n"
        "all rows; then one publish makes everything visible. This would still fit one process:\n"
        "--engine spark asks for Spark, which starts by itself in some seconds. --report writes a\n"
        f"page about the load. {_about_progress()}",
    )
    run("init", "--schema", "people/schema.pg", "people.omni", cwd=directory)
    begun = time.monotonic()
    data = ("--data", "people/*/*.parquet", "--mode", "append")
    run(
        *("load", "people.omni", *data, "--engine", "spark", "--report", "load.html"), cwd=directory
    )
    took = time.monotonic() - begun
    rows = _rows(directory / "people.omni")
    check(
        rows == 1_100_800,
        f"\n    {rows:,} rows in {took:.0f} s, the start of Spark included, as one commit",
    )
    page = (directory / "load.html").read_text(encoding="utf-8")
    check(
        "<svg" in page,
        f"    load.html has {len(page):,} bytes: {', '.join(_headings(page))}, drawn as bars",
    )
    say(
        "A million edges are asked like ten",
        "The best known people; then the companies within two steps of one person.",
    )
    run("query", "--store", "people.omni", "-e", POPULAR, cwd=directory)
    circle = ("-e", CIRCLE, "--params", '{"who": "sofia-jensen-0"}')
    run("query", "--store", "people.omni", *circle, cwd=directory)


def _headings(page: str) -> list[str]:
    """What a page has sections about."""
    found = _Headings()
    found.feed(page)
    return found.texts


class _Headings(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._is_inside = False

    def handle_starttag(self, tag: str, _: object) -> None:
        self._is_inside = tag == "h2"

    def handle_data(self, data: str) -> None:
        if self._is_inside:
            self.texts.append(data.lower())
            self._is_inside = False


def _about_progress() -> str:
    if sys.stderr.isatty():
        return "A bar shows each stage."
    return "(No terminal here, so no bars: the last line has the stages.)"


def show_rejects(directory: Path) -> None:
    """Load a file with broken rows, leave those out, and show them."""
    say(
        "Rows that are wrong can be left out, and none is lost",
        "dirty/ has 54 broken rows among 26,170 good ones. A load would refuse all of them; with\n"
        "--on-error skip it loads the others and lists what it left out.",
    )
    dirt = ("--people", "2000", "--seed", "8", "--dirty", "0.002")
    run("generate", "--out", "dirty", *dirt, cwd=directory)
    run("init", "--schema", "dirty/schema.pg", "dirty.omni", cwd=directory)
    skip = ("--on-error", "skip", "--rejects", "rejects")
    run("load", "dirty.omni", "--data", "dirty/data", "--mode", "append", *skip, cwd=directory)
    (listed,) = (directory / "rejects").glob("rejects-*.jsonl")
    print(f"\n$ head -n 3 rejects/{listed.name}")
    lines = listed.read_text(encoding="utf-8").splitlines()
    print("\n".join(lines[:3]))
    rejects = [json.loads(line) for line in lines]
    planted = json.loads((directory / "dirty" / "dirty.json").read_text(encoding="utf-8"))
    check(
        {(Path(one["file"]).name, one["line"], one["code"]) for one in rejects}
        == {(Path(one["file"]).name, one["line"], one["rule"]) for one in planted["planted"]},
        f"\n    {len(rejects)} rejects: exactly the rows that were planted, each with its file, "
        "line and rule",
    )
