"""The demonstration behind `make demo`: the main job end to end, explained as it runs.

Owns what a newcomer sees first. Runs the real command line and the public
Python names; exits with 1 when a step does not do what it says.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
    print("\nThat is what works today: both languages, from text to plan.")


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


if __name__ == "__main__":
    main()
