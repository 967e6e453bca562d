"""The demonstration behind `make demo`: the main job end to end, explained as it runs.

Owns what a newcomer sees first. Runs the real command line and the public
Python names; exits with 1 when a step does not do what it says.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, cast

import omnigraph as og
from demo.asking import show_questions
from demo.branching import show_branches
from demo.evolving import show_schemas
from demo.loading import show_loads
from demo.plan_text import render_plan
from demo.searching import show_search
from demo.serving import show_server
from demo.telling import HERE, check, run, say
from omnigraph.lang.query.compile import compile_query
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.storage.objects.clock import microseconds_now
from omnigraph.write.recovery.intents import LIFETIME, microseconds
from omnigraph.write.recovery.sweep import MARGIN, sweep


def main() -> None:
    """All chapters."""
    run("version")
    say(
        "A schema is checked as a whole",
        "library.pg declares a lending library: nodes, edges, keys, ranges, a vector.",
    )
    run("lint", "--schema", "library.pg")
    say(
        "Queries are checked against the schema before anything runs",
        "library.gq holds reads and mutations; names, types and directions all fit.",
    )
    run("lint", "--schema", "library.pg", "--query", "library.gq")
    say(
        "Mistakes are found all at once, with the place and a suggestion",
        "mistakes.gq has five of them. lint exits with 1.",
    )
    run("lint", "--schema", "library.pg", "--query", "mistakes.gq", expect=1)
    say(
        "A query becomes a small typed plan",
        "Edge directions are inferred, filters sit where they cut most.",
    )
    show_plan("friends_are_reading")
    show_plan("find_books")
    say("One canonical layout", "fmt --check is quiet when there is nothing to change.")
    run("fmt", "--check", "library.pg", "library-next.pg", "library-rooms.pg", "library.gq")
    with TemporaryDirectory(prefix="omnigraph-demo-") as directory:
        uri = str(Path(directory) / "library.omni")
        show_graph(uri)
        show_project(Path(directory))
        show_queries(uri)
        show_writes(uri)
        show_race(uri)
        show_crash(uri)
        show_history(uri)
        show_branches(uri)
        show_loads(Path(directory))
        show_search(uri)
        show_questions(Path(directory))
        show_schemas(uri)
        show_server(uri)
        show_health(uri)
    print(
        "\nThat is what works today: both languages, and graphs on disk or S3 that many can write, "
        "query, search,\nbranch and merge, loaded from a few lines or from millions of rows, under "
        "schemas that change with them, and served over HTTP."
    )


def show_plan(name: str) -> None:
    """Compile one query of the library and print its plan."""
    catalog = compile_schema((HERE / "library.pg").read_text(encoding="utf-8")).catalog
    queries = (HERE / "library.gq").read_text(encoding="utf-8")
    compiled = compile_query(queries, catalog, name)
    print(f"query {name}")
    print("".join(f"    {line}\n" for line in render_plan(compiled.plan).splitlines()))


def show_graph(uri: str) -> None:
    """Make a graph and fill it."""
    say(
        "A graph is a directory (or an S3 prefix) of open tables",
        "init makes one table per type, and the manifest that names them, in one step.",
    )
    run("init", "--schema", "library.pg", uri)
    say("Loading is one commit", "library.jsonl has nodes and edges, one per line.")
    run("load", uri, "--data", "library.jsonl", "--mode", "append", "--as", "mira")
    run("snapshot", uri)


def show_project(directory: Path) -> None:
    """Make a project, and ask its graph by the names of queries."""
    say(
        "A project says once which graphs there are, and what they are asked",
        "init --template writes omnigraph.yaml, a schema, queries and data. In its directory no\n"
        "address is needed: queries are called by name, words are their parameters.",
    )
    run("init", "--template", "film", "films", cwd=directory)
    films = directory / "films"
    run("init", cwd=films)
    run("load", "--data", "data/seed.jsonl", "--mode", "merge", cwd=films)
    run("query", "co_actors", "Keanu Reeves", cwd=films)
    with og.project(films)["film"] as graph:
        names = graph.query("query q() { match { $f: Film } return { $f.title } }")
        check(len(names) == 3, "    and og.project()['film'] is the same graph in Python")


def show_queries(uri: str) -> None:
    """Ask the graph, and how it found the answer."""
    say(
        "A query sees one commit, and says how it was run",
        "friends_are_reading walks two hops, leaves out what one has borrowed, and counts.",
    )
    query = ("friends_are_reading", "--store", uri, "--query", "library.gq")
    params = ("--params", '{"card": "R1"}')
    run("query", *query, *params)
    run("query", *query, *params, "--format", "jsonl")
    run("explain", *query, *params, "--analyze")


def show_writes(uri: str) -> None:
    """Change the graph, fail to, and lose a condition."""
    say("A mutation is a typed query", "lend of library.gq inserts one edge.")
    lend = ("mutate", "lend", "--store", uri, "--query", "library.gq", "--params")
    run(*lend, '{"card": "R1", "isbn": "111-1", "today": "2024-06-01"}')
    say(
        "What breaks a rule changes nothing",
        "There is no card R9, and mistakes.jsonl has three mistakes, all told at once.",
    )
    before = og.open(uri, read_only=True).snapshot().commit_id
    run(*lend, '{"card": "R9", "isbn": "111-1", "today": "2024-06-01"}', expect=1)
    run("load", uri, "--data", "mistakes.jsonl", "--mode", "append", expect=1)
    after = og.open(uri, read_only=True).snapshot().commit_id
    check(before == after, f"    the head is still {after}")
    say(
        "A write can insist on what its author has seen",
        "A book is given back. A write that has seen the state before is refused: exit code 4.",
    )
    og.open(uri, actor="tom").mutate(
        (HERE / "library.gq").read_text(encoding="utf-8"),
        "give_back",
        {"card": "R2", "isbn": "111-3", "today": "2024-06-02"},
    )
    query = 'query q() { delete Borrowed where from = "R2" }'
    run("mutate", "--store", uri, "-e", query, "--if-commit", before, expect=4)


def show_race(uri: str) -> None:
    """Two processes write at once."""
    say(
        "Many programs write at once, without a server",
        "Two processes add twenty readers each. Whoever loses a race moves to the new head.",
    )
    waiting, starting = os.pipe()
    rivals = [
        subprocess.Popen(
            [sys.executable, str(HERE / "rival.py"), uri, name, "20"],
            stdin=waiting,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("north", "south")
    ]
    for rival in rivals:
        cast("IO[str]", rival.stdout).readline()
    os.close(starting)
    print("".join(rival.communicate()[0] for rival in rivals), end="")
    os.close(waiting)
    graph = og.open(uri, read_only=True)
    line = all(new.parent_id == old.id for new, old in pairwise(graph.commits.list()))
    readers = graph.table("Reader").count_rows()
    check(readers == 42 and line, f"    {readers} readers; every commit stands on the one before")


def show_crash(uri: str) -> None:
    """Kill a writer half-way, and go on."""
    say(
        "A writer is killed half-way",
        "A process loads 50,000 books. It has announced its load when SIGKILL hits it.",
    )
    before = og.open(uri, read_only=True).snapshot()
    doomed = subprocess.Popen([sys.executable, str(HERE / "doomed.py"), uri])
    intents = Path(uri) / "__recovery"
    while doomed.poll() is None and not any(intents.glob("*.json")):
        time.sleep(0.001)
    doomed.kill()
    check(
        doomed.wait() == -9,
        f"    killed; left behind: {sorted(found.name for found in intents.glob('*'))}",
    )
    graph = og.open(uri)
    check(
        graph.snapshot().commit_id == before.commit_id,
        f"    books: {graph.table('Book').count_rows()}, as before; the next write works at once:",
    )
    insert = 'query q() { insert Knows { from: "R2", to: "R1" } }'
    run("mutate", "--store", uri, "-e", insert)
    print(
        "\nWhen its intent has expired, the next open discards its files. Let us say it is then:\n"
    )
    sweep(
        graph.location, graph.manifest, now=microseconds_now() + 2 * microseconds(LIFETIME + MARGIN)
    )
    run("recovery", "list", uri)


def show_history(uri: str) -> None:
    """Get data out, branch, and look back."""
    say("Everything comes out again", "An export is what a load reads.")
    run("export", uri, "--type", "Book", "--type", "Borrowed")
    say(
        "A branch copies nothing, and the past stays",
        "From Python: load into a new branch; main does not see it. Queries see any commit.",
    )
    graph = og.open(uri)
    graph.load(HERE / "library.jsonl", mode="overwrite", branch="reset", from_branch="main")
    for branch in graph.branches.list():
        print(f"    {branch}: {graph.table('Reader', branch=branch).count_rows()} readers")
    loaded = next(commit for commit in graph.commits.list() if commit.actor == "mira")
    query = "query q() { match { $r: Reader $r borrowed $b } return { $r.name, $b.title } }"
    then, now = graph.query(query, snapshot=loaded.id), graph.query(query)
    check(
        len(then) == 1, f"    {len(graph.commits.list())} commits; after the first load, and now:"
    )
    print(f"{then}\n{now}")


def show_health(uri: str) -> None:
    """Maintain the graph, and show how it is."""
    say(
        "A graph tells how it is, and looks after itself",
        "maintain does what is worth doing, on every branch, beside whoever writes; --watch goes\n"
        "on with it. status says at a glance whether anything is left to do.",
    )
    run("maintain", uri)
    run("status", uri)
    say(
        "And nothing is lost without a word",
        "verify reads every file against the checksum that it was written with, holds every row\n"
        "against the schema, and asks the indexes what a scan finds.",
    )
    run("verify", uri, "--deep")


if __name__ == "__main__":
    main()
