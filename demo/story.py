"""The demonstration behind `make demo`: one story, from a CSV file to a million rows, in a minute.

Owns what a newcomer sees first. Runs the real command line in an empty directory; exits with 1
when a step does not do what it says. The long tour is `make demo-all`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from demo.telling import OMNIGRAPH

FILMS = """title,year
Point Break,1991
Speed,1994
John Wick,2014
"""
CASTS = """from,to,role
Keanu Reeves,Point Break,Johnny Utah
Keanu Reeves,Speed,Jack Traven
Keanu Reeves,John Wick,
"""
BY_DECADE = (
    "match { $f: Film } return { div($f.year, 10) * 10 as decade, count($f) as films } "
    "order { decade }"
)
NEXT_SCHEMA = ("year: I32?", "year: I32?\n    country: String?")
WRONG = "match { $p: Person  $p actedin $f } return { $p.nam }"
EDGES = 200_000
LONGEST = 120


class Story:
    """The commands in a directory, and how many lines they have printed."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.lines = 0

    def say(self, text: str) -> None:
        """Begin a paragraph."""
        self._print(f"\n{text}")

    def end(self, seconds: float) -> None:
        """How long it took, and what to type next."""
        self.say(f"That took {seconds:.0f} seconds. Three things to type next:\n")
        for line in _next_steps():
            self._print(f"  {line}")

    def run(self, *arguments: str, expect: int = 0, shows: str = "", brief: bool = False) -> None:
        """Show a command and what it prints, stdout and stderr as they come; or the first line."""
        self._print(f"$ omnigraph {' '.join(map(_quoted, arguments))}")
        ran = subprocess.run(
            [OMNIGRAPH, *arguments],
            cwd=self.place,
            check=False,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        shown = ran.stdout.rstrip()
        self._print(f"{shown.splitlines()[0]} …" if brief and "\n" in shown else shown)
        if ran.returncode != expect or shows not in ran.stdout:
            sys.exit(f"this did not do what it says: code {ran.returncode}, expected {expect}")

    def run_on_terminal(self, *arguments: str) -> None:
        """The same, with the bars that a terminal has; where there is none, as any other."""
        if not sys.stdout.isatty():
            self.run(*arguments)
            return
        self._print(f"$ omnigraph {' '.join(map(_quoted, arguments))}")
        code = subprocess.run([OMNIGRAPH, *arguments], cwd=self.place, check=False).returncode
        if code:
            sys.exit(f"this did not do what it says: code {code}")

    def _print(self, text: str) -> None:
        self.lines += text.count("\n") + 1
        print(text, flush=True)


def main() -> None:
    """The whole story."""
    begun = time.monotonic()
    os.environ.setdefault("OMNIGRAPH_HOME", str(Path.cwd() / ".no-home"))
    with TemporaryDirectory(prefix="omnigraph-demo-") as name:
        story = Story(Path(name))
        story.run("init", "--template", "film", ".", shows="omnigraph.yaml", brief=True)
        story.run("init", shows="initialized")
        load_and_ask(story)
        branch_and_merge(story)
        look_back(story)
        load_much(story)
    story.end(time.monotonic() - begun)
    if story.lines > LONGEST:
        sys.exit(f"the story has {story.lines} lines, more than {LONGEST}")


def load_and_ask(story: Story) -> None:
    """From files to a first answer, and a mistake."""
    story.say("Load CSV: one file a type, one atomic commit, every mistake told before it.")
    (story.place / "films.csv").write_text(FILMS)
    (story.place / "casts.csv").write_text(CASTS)
    story.run("load", "--data", "data/seed.jsonl", "--mode", "merge", "--quiet")
    files = ("--data", "Film=films.csv", "--data", "ActedIn=casts.csv")
    story.run("load", *files, "--mode", "merge", "-m", "The early years", "--quiet")
    story.say("Ask: by a stored query's name, or just so.")
    story.run("query", "filmography", "Keanu Reeves", shows="Point Break")
    story.run("query", BY_DECADE, shows="1990")
    story.say("A mistake shows its place, and the nearest right word.")
    story.run("query", WRONG, expect=1, shows="did you mean `name`")


def branch_and_merge(story: Story) -> None:
    """A branch, with another schema, merged into a main that has moved on."""
    story.say("Branch: nothing is copied. Change the schema and rows there, review, merge.")
    story.run("branch", "create", "countries", "--quiet")
    schema = (story.place / "film.pg").read_text()
    (story.place / "film.pg").write_text(schema.replace(*NEXT_SCHEMA))
    story.run("schema", "apply", "--schema", "film.pg", "--branch", "countries", "--quiet")
    update = 'update Film set { country: "US" } where year >= 1990'
    story.run("mutate", update, "--branch", "countries", "--as", "ann", "--quiet")
    story.run("mutate", "add_film", "Siberia", "2018", "--as", "ben", "--quiet")
    story.run("diff", "main", "countries", "--stat")
    story.run(
        "branch", "merge", "countries", "-m", "Countries", "--quiet", shows="merged", brief=True
    )


def look_back(story: Story) -> None:
    """The history: who, when, and back."""
    story.say("Look back: every state stays readable, under the schema it had.")
    story.run("log", "--graph")
    story.run("blame", "Film", "Speed")
    count = "match { $f: Film } return { count($f) as films }"
    story.run("query", count, "--snapshot", "main~2")
    story.run("revert", "main", "--quiet", shows="reverted", brief=True)


def load_much(story: Story) -> None:
    """The same load, on Spark."""
    story.say(
        f"Much: {EDGES:,} edges on Spark, which starts by itself; the same checks, one commit."
    )
    size = ("--people", "20000", "--edges", str(EDGES), "--seed", "7")
    story.run("generate", "--out", "people", *size, "--format", "parquet", brief=True)
    schema = ("--no-config", "--schema", "people/schema.pg", "people.omni")
    story.run("init", *schema, shows="initialized")
    data = ("--data", "people/*/*.parquet", "--mode", "append", "--engine", "spark")
    story.run_on_terminal("load", "people.omni", *data, "--quiet")
    known = (
        "match { $p: Person $q: Person $q knows $p } "
        "return { $p.name as name, count($q) as known_by } order { known_by desc } limit 3"
    )
    story.run("query", "people.omni", known)
    story.run("verify", "people.omni", shows="sound")


def _next_steps() -> Sequence[str]:
    program = OMNIGRAPH if OMNIGRAPH.exists() else Path("omnigraph")
    here = os.path.relpath(program)
    return (
        f"{here} init --template film films      # a project of your own to play with",
        f"{here} --help                          # all verbs; each has --help",
        "make demo-all                           # the long tour: search, races, servers",
    )


def _quoted(argument: str) -> str:
    """As a person would type it."""
    if all(letter.isalnum() or letter in "-_./=~*" for letter in argument):
        return argument
    return f"'{argument}'"


if __name__ == "__main__":
    main()
