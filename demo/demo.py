"""The demonstration behind `make demo`: the main job end to end, explained as it runs.

Owns what a newcomer sees first. Runs the real command line and the public
Python names; exits with 1 when a step does not do what it says.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import omnigraph as og
from omnigraph import lang

HERE = Path(__file__).parent
OMNIGRAPH = Path(sys.executable).with_name("omnigraph")


def say(title: str, text: str) -> None:
    """Open a chapter."""
    print(f"\n\n{title}\n{'─' * len(title)}\n{text}\n")


def run(*arguments: str, expect: int = 0) -> None:
    """Show a command and what it prints; any other exit code than expected ends the demo."""
    print(f"$ omnigraph {' '.join(arguments)}", flush=True)
    code = subprocess.run([OMNIGRAPH, *arguments], cwd=HERE, check=False).returncode
    if code != expect:
        sys.exit(f"the command above exited with {code}, the demo expected {expect}")


def main() -> None:
    """All chapters."""
    run("version")
    say(
        "1. A schema is checked as a whole",
        "library.pg declares a lending library: nodes, edges, keys, ranges, a vector.",
    )
    run("lint", "--schema", "library.pg")
    say(
        "2. Queries are checked against the schema before anything runs",
        "library.gq holds reads and mutations; names, types and directions all fit.",
    )
    run("lint", "--schema", "library.pg", "--query", "library.gq")
    say(
        "3. Mistakes are found all at once, with the place and a suggestion",
        "mistakes.gq has five of them. lint exits with 1.",
    )
    run("lint", "--schema", "library.pg", "--query", "mistakes.gq", expect=1)
    say(
        "4. A query becomes a small typed plan",
        "Edge directions are inferred, filters sit where they cut most.",
    )
    show_plan("friends_are_reading")
    show_plan("find_books")
    say("5. One canonical layout", "fmt --check is quiet when there is nothing to change.")
    run("fmt", "--check", "library.pg", "library-next.pg", "library.gq")
    say(
        "6. Schemas evolve by plan",
        "library-next.pg renames a property, widens its enum and adds a required one "
        "with a default.",
    )
    show_migration()
    with TemporaryDirectory(prefix="omnigraph-demo-") as directory:
        show_graph(str(Path(directory) / "library.omni"))
    print("\nThat is what works today: both languages, and graphs on disk or S3 with branches.")


def show_plan(name: str) -> None:
    """Compile one query of the library and print its plan."""
    catalog = lang.compile_schema((HERE / "library.pg").read_text(encoding="utf-8")).catalog
    queries = (HERE / "library.gq").read_text(encoding="utf-8")
    compiled = lang.compile_query(queries, catalog, name)
    print(f"query {name}")
    print("".join(f"    {line}\n" for line in lang.render_plan(compiled.plan).splitlines()))


def show_migration() -> None:
    """Plan the way from one schema to the next and print its steps."""
    accepted = lang.compile_schema((HERE / "library.pg").read_text(encoding="utf-8")).ir
    desired = lang.compile_schema(
        (HERE / "library-next.pg").read_text(encoding="utf-8"), accepted=accepted
    ).ir
    plan = lang.plan_migration(accepted, desired)
    print(f"supported: {plan.supported}")
    for step in plan.to_json()["steps"]:
        kind = step.pop("kind")
        print(f"    {kind}: {', '.join(f'{key} {value}' for key, value in step.items())}")


def show_graph(uri: str) -> None:
    """Make a graph, look at it, branch it, and open an old state."""
    say(
        "7. A graph is a directory (or an S3 prefix) of open tables",
        "init makes one table per type, and the manifest that names them, in one step.",
    )
    run("init", "--schema", "library.pg", uri)
    run("snapshot", uri)
    say("8. Every change is a commit over the whole graph", "The first one made the graph.")
    run("commit", "list", uri)
    say("9. A branch copies nothing", "It is one reference; both names show the same commit.")
    run("branch", "create", "draft", "--uri", uri)
    run("branch", "list", "--uri", uri)
    run("branch", "create", "draft", "--uri", uri, expect=1)
    say("10. The same from Python", "Tables open at their pinned version, now or at any commit.")
    graph = og.open(uri, read_only=True)
    first = graph.commits.list()[-1]
    for branch in graph.branches.list():
        print(f"    {branch} shows commit {graph.snapshot(branch).commit_id}")
    columns = graph.table("Book", snapshot=first.id).schema.names
    print(f"    Book at {first.id}: {', '.join(columns)}")


if __name__ == "__main__":
    main()
