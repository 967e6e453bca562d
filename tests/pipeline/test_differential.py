"""The load on Spark gives the verdicts of the load in this process, whatever the input.

Most of it runs the tasks of Spark one by one in this process, so that there can be much of it:
what they are told and what they answer is the same.
"""

from __future__ import annotations

import shutil
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.pipeline.input.load_files import InputFile
from omnigraph.pipeline.input.splits import Split, pack
from omnigraph.pipeline.load.check import cuts, key_source, round_rows
from omnigraph.pipeline.load.stage import stage_input
from omnigraph.pipeline.load.stage.stage_input import RunTasks, cut_inputs
from omnigraph.pipeline.spark import tasks as spark_tasks
from omnigraph.rows.hashing import Hashes, hash_texts
from tests import profile
from tests.pipeline.batches import SCHEMA, Batch, batch, several, sound, tables, written
from tests.pipeline.engines import Outcome, Twins, content, files_of, run_tasks_here
from tests.pipeline.wrong_lines import edge, node

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow
MODES = ("append", "merge", "overwrite")
CODES = {"format", "type", "required", "range", "check", "enum", "unique", "endpoint"}


@pytest.fixture(autouse=True)
def in_parts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Small input in several splits, tasks, fragments and directories, as if it were large.

    Of every load on Spark, how many splits and tasks it had.
    """
    monkeypatch.setattr(key_source, "GROUP_ROWS", 300)
    cut_into(monkeypatch, 3)
    seen: list[tuple[int, int]] = []

    def cut(files: Sequence[InputFile], run: RunTasks, _: int) -> list[Split]:
        return cut_inputs(files, run, 9_000)

    def packed(splits: Sequence[Split], _: int) -> list[tuple[Split, ...]]:
        tasks = pack(splits, 25_000)
        seen.append((len(splits), len(tasks)))
        return tasks

    monkeypatch.setattr(stage_input, "cut_inputs", cut)
    monkeypatch.setattr(stage_input, "pack", packed)
    return seen


def cut_into(
    monkeypatch: pytest.MonkeyPatch,
    ranges: int,
    hashes: str = "own",
    stored: str = "by size",
) -> None:
    """So many ranges, with few hashes or as many as there are, and one way for stored keys."""
    monkeypatch.setattr(round_rows, "ranges_for", lambda _: ranges)
    if hashes == "few":
        monkeypatch.setattr(cuts, "hash_keys", few_hashes)
    if stored != "by size":
        monkeypatch.setattr(round_rows, "MANY_STORED", {"asked about": 0, "all": 1 << 40}[stored])


def few_hashes(keys: pa.Array) -> Hashes:
    """The same for keys that have nothing in common."""
    return (hash_texts(keys, whole=True) % np.uint64(3)) << np.uint64(62)


@pytest.fixture
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    run_tasks_here(monkeypatch)


def generated(seed: int, mode: str, stories: int) -> Batch:
    # Replacing all teams and leaving some of them without their edges would be refused.
    return batch(seed, stories, era=f"-{seed}" if mode == "overwrite" else "")


# -- on Spark ----------------------------------------------------------------------------


def test_tasks_of_spark(
    tmp_path: Path,
    spark: SparkSession,
    in_parts: list[tuple[int, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On an empty graph, into a new branch of a filled one, and in place of what is there.

    Every mode meets every kind of branch below: here it matters that tasks are those of Spark,
    each of which takes Spark its time.
    """
    ranges = {2: 17, 3: 40, 4: 1} if profile.CHOSEN.every_case else {2: 3, 3: 5, 4: 1}
    twins = Twins.make(tmp_path, SCHEMA, spark)
    told: Counter[str] = Counter()
    loads = (("append", "main"), ("merge", "side"), ("overwrite", "side"))
    for seed, (mode, branch) in enumerate(loads, start=2):
        # The second sends all items as rows.
        monkeypatch.setattr(spark_tasks, "_CARRIED_BYTES", 0 if seed == 3 else 1 << 20)
        cut_into(monkeypatch, ranges[seed])
        found = twins.load(
            generated(seed, mode, 8), mode=mode, branch=branch, from_branch="main", on_error="skip"
        )
        assert found.is_published
        told.update(found.codes)
    assert told.keys() > CODES
    assert [(splits > 4, tasks > 1) for splits, tasks in in_parts] == [(True, True)] * 3


# -- whatever is in the input --------------------------------------------------------------


@pytest.mark.usefixtures("without_spark")
@pytest.mark.pairwise
@pytest.mark.parametrize("branch", ["main", "side"])
@pytest.mark.parametrize("stored", ["asked about", "all"])
@pytest.mark.parametrize("hashes", ["own", "few"])
@pytest.mark.parametrize("ranges", [1, 3, 17, 40])
@pytest.mark.parametrize("way", ["spark", "bulk"])
@pytest.mark.parametrize("mode", MODES)
def test_ranges(
    tmp_path: Path,
    mode: str,
    way: str,
    ranges: int,
    branch: str,
    *,
    hashes: str,
    stored: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On an empty branch and on a filled one, however keys are cut."""
    cut_into(monkeypatch, ranges, hashes, stored)
    twins = Twins.make(tmp_path, SCHEMA, way=way)
    told: Counter[str] = Counter()
    for seed in (20, 21):
        found = twins.load(
            generated(seed, mode, 5), mode=mode, branch=branch, from_branch="main", on_error="skip"
        )
        assert found.is_published
        told.update(found.codes)
    assert told.keys() >= CODES - {"cardinality"}


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("mode", [*MODES, "patch"])
def test_generated_batches(tmp_path: Path, mode: str, in_parts: list[tuple[int, int]]) -> None:
    twins = Twins.make(tmp_path, SCHEMA)
    told: Counter[str] = Counter()
    # An empty branch, main while it is empty, main, and the branch.
    for at, branch in enumerate(("side", "main", "main", "side")):
        found = twins.load(
            generated(10 + at, mode, 12),
            mode=mode,
            branch=branch,
            from_branch="main",
            on_error="skip",
        )
        assert found.is_published
        told.update(found.codes)
    expected = CODES | {"cardinality"} | ({"key_conflict"} if mode != "merge" else set())
    assert told.keys() == expected
    assert content(twins.on_spark, "main") != content(twins.on_spark, "side")
    assert [(splits > 6, tasks > 1) for splits, tasks in in_parts] == [(True, True)] * 4


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("mode", MODES)
def test_generated_tables(tmp_path: Path, mode: str) -> None:
    twins = Twins.make(tmp_path, SCHEMA)
    told: Counter[str] = Counter()
    for seed in (50, 51, 52):
        found = twins.load_tables(tables(seed, 150), mode=mode, on_error="skip")
        assert found.is_published
        told.update(found.codes)
    assert told.keys() >= {"type", "required", "range", "check", "enum", "unique", "endpoint"}
    wrong = pa.table({"name": ["x", None], "age": [-1, 2]})
    empty = {"Note": pa.table({"code": pa.array([], pa.int64())}), "Person": wrong}
    twins.load_tables(empty, mode=mode, on_error="skip")


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("mode", MODES)
def test_what_skipping_leaves_is_right(tmp_path: Path, mode: str) -> None:
    """A dry run tells the rejects and leaves nothing; without them, nothing is wrong."""
    twins = Twins.make(tmp_path, SCHEMA)
    twins.load(generated(30, mode, 15), mode=mode, on_error="skip")
    dirty = generated(31, mode, 12)
    before = [files_of(graph) for graph in twins.both()]
    told = twins.load(dirty, mode=mode, on_error="skip", dry_run=True)
    assert not told.is_published
    assert [files_of(graph) for graph in twins.both()] == before
    refused = twins.load(dirty, mode=mode)
    assert refused.refusal is not None
    assert [files_of(graph) for graph in twins.both()] == before
    taken = twins.load(without(dirty, told), mode=mode)
    assert taken.is_published
    assert (taken.nodes, taken.edges) == (told.nodes, told.edges)


def without(given: Batch, told: Outcome) -> Batch:
    """The same lines but for those that were rejected, which are blank."""
    gone = {(reject["file"], reject["line"]) for reject in told.rejects}
    files = []
    for name, text in given.files:
        stem = Path(name).stem
        lines = enumerate(text.split(b"\n"), start=1)
        kept = (b"" if (stem, number) in gone else line for number, line in lines)
        files.append((name, b"\n".join(kept)))
    return Batch(tuple(files))


@pytest.mark.usefixtures("without_spark")
def test_a_mark_is_one_only_where_a_file_begins(
    tmp_path: Path, in_parts: list[tuple[int, int]]
) -> None:
    """Wherever a split begins, the line there is one like the others."""
    twins = Twins.make(tmp_path, SCHEMA)
    marked = "\ufeff".encode() + node("Note", text="x")
    told = twins.load(written(*[marked] * 400), mode="append", on_error="skip")
    assert (told.nodes, told.codes) == ({"Note": 1}, {"format": 399})
    assert in_parts[0][0] > 1


@pytest.mark.usefixtures("without_spark")
def test_blobs_with_files_of_their_own(tmp_path: Path) -> None:
    twins = Twins.make(tmp_path, SCHEMA)
    body = f"base64:{b64encode(bytes(range(256)) * 400).decode()}"
    notes = [node("Note", id=name, body=body, code=code) for name, code in (("a", 1), ("b", 1))]
    before = [files_of(graph) for graph in twins.both()]
    assert twins.load(written(*notes), mode="append").refusal is not None
    twins.load(written(*notes), mode="append", on_error="skip", dry_run=True)
    assert [files_of(graph) for graph in twins.both()] == before
    # The row that is left is written again, with its blob.
    assert twins.load(written(*notes), mode="append", on_error="skip").nodes == {"Note": 1}
    assert body in content(twins.on_spark)[0]


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("mode", MODES)
def test_more_rejects_than_may_be(tmp_path: Path, mode: str) -> None:
    twins = Twins.make(tmp_path, SCHEMA)
    given = generated(40, mode, 10)
    before = [files_of(graph) for graph in twins.both()]
    found = twins.load(given, mode=mode, on_error="skip", max_rejects=5)
    assert found.refusal is not None
    assert len(found.rejects) > 5
    assert [files_of(graph) for graph in twins.both()] == before
    taken = twins.load(given, mode=mode, on_error="skip", max_rejects=len(found.rejects))
    assert taken.is_published
    assert sum(taken.codes.values()) == len(found.rejects)


# -- stories that are easily told wrong -----------------------------------------------------

STORED = (
    node("Person", name="ann", email="ann@x"),
    node("Person", name="ben", email="ben@x"),
    node("Person", name="cat"),
    node("Slot", room="r", day=1, label="r", size=1),
    node("Slot", room="r", day=2, label="r", size=2),
    node("Note", id="n1", code=1),
    node("Note", id="n2", code=2),
    node("Team", name="red"),
    node("Team", name="blue"),
    edge("Knows", "ann", "ben", id="k1"),
    edge("Boss", "ann", "ben", id="b1", badge="A"),
    edge("Holds", "red", '["1","r"]', id="h1"),
    edge("Wrote", "ann", "n1", id="w1", ref="r"),
    edge("Meets", "ann", "ben", on="1970-01-02", ref="r"),
)
EVERYBODY = STORED[:9]

STORIES: dict[str, Sequence[bytes]] = {
    "nothing at all": (),
    "nothing but blank lines": (b"", b" \t", b"\r"),
    "nothing that is right": (b"{", node("Person", name=1), edge("Knows", "x", "y")),
    "a superseded row holds a stored tuple": (
        node("Note", id="n3", code=1),
        node("Note", id="n3", code=3),
    ),
    "a superseded row repeats a tuple": (
        node("Note", id="n3", code=5),
        node("Note", id="n4", code=5),
        node("Note", id="n3", code=6),
    ),
    "a superseded row leads nowhere": (
        edge("Knows", "ann", "nobody", id="k9"),
        edge("Knows", "ann", "cat", id="k9"),
    ),
    "the last row of an id leads nowhere": (
        edge("Knows", "ann", "cat", id="k9"),
        edge("Knows", "ben", "nobody", id="k9"),
    ),
    "two of three rows of an id lead nowhere": (
        edge("Knows", "ann", "nobody", id="k9"),
        edge("Knows", "ann", "cat", id="k9"),
        edge("Knows", "nobody", "cat", id="k9"),
    ),
    "the last row of a stored id leads nowhere": (
        edge("Knows", "ann", "cat", id="k1"),
        edge("Knows", "nobody", "cat", id="k1"),
    ),
    "a superseded edge of a source with too many": (
        edge("Boss", "cat", "ann", id="b8"),
        edge("Boss", "ben", "cat", id="b8"),
        edge("Boss", "cat", "ben"),
        edge("Boss", "cat", "cat"),
    ),
    "a source with too many, of which one would do": (
        edge("Boss", "cat", "ann", id="b8"),
        edge("Boss", "cat", "ben", id="b8"),
        edge("Boss", "cat", "cat"),
    ),
    "too many with the stored ones": (
        edge("Boss", "ann", "cat"),
        edge("Holds", "red", '["1","r"]'),
        edge("Holds", "red", '["2","r"]'),
    ),
    "a stored edge replaced": (edge("Boss", "ann", "cat", id="b1"),),
    "a stored edge moved to a source that has one": (
        edge("Boss", "cat", "ann", id="b2"),
        edge("Boss", "cat", "ben", id="b1"),
    ),
    "a source left without its edge": (edge("Holds", "blue", '["2","r"]', id="h1"),),
    "a source that had one gets another": (
        edge("Holds", "blue", '["2","r"]', id="h1"),
        edge("Holds", "red", '["2","r"]'),
    ),
    "two stored rows exchange their values": (
        node("Note", id="n1", code=2),
        node("Note", id="n2", code=1),
    ),
    "a stored value is free only until its row is rejected": (
        node("Note", id="n3", code=7),
        node("Note", id="n2", code=7),
        node("Note", id="n1", code=2),
        edge("Wrote", "cat", "n3"),
        edge("About", "n1", "ann"),
        edge("About", "n3", "ben"),
    ),
    "rejects that pull others along": (
        node("Person", name="dan", age=200),
        node("Person", name="eve", email="ann@x"),
        node("Note", id="n5", code=1),
        edge("Boss", "dan", "ann"),
        edge("Boss", "cat", "eve"),
        edge("Boss", "cat", "ann"),
        edge("Wrote", "eve", "n5"),
        edge("About", "n5", "cat"),
    ),
    "the first of two equal tuples is rejected for something else": (
        edge("Knows", "cat", "nobody"),
        edge("Knows", "cat", "nobody"),
        edge("Boss", "nobody", "ann", badge="B"),
        edge("Boss", "cat", "ann", badge="B"),
    ),
    "nodes that stored edges need are gone": (node("Person", name="cat"),),
    "all but the edges": EVERYBODY,
    "everybody, and edges that are all wrong": (
        *EVERYBODY,
        edge("Knows", "nobody", "ann"),
        edge("Boss", "ann", "nobody"),
    ),
    "few nodes, and edges that are all wrong": (
        node("Person", name="cat"),
        *sound("other")[3:],
        edge("Knows", "nobody", "cat"),
        edge("Boss", "cat", "nobody"),
        edge("Wrote", "nobody", "nobody"),
    ),
    "other teams, and stays of edges": (node("Team", name="blue"), edge("Holds", "blue", "x")),
    "the same teams without their edges": (
        node("Team", name="red"),
        node("Team", name="blue"),
        edge("Holds", "blue", '["1","r"]'),
    ),
    "an edge whose key is stored": (edge("Meets", "ann", "ben", on=1, weight=2),),
    "an edge whose key is stored, under its id": (
        edge("Meets", "ann", "ben", on=1, id='["ann","ben","1"]'),
    ),
    "one key of edges in two spellings": (
        edge("Meets", "cat", "ann", on=1),
        edge("Meets", "cat", "ben", on=1),
        edge("Meets", "cat", "ann", on="1970-01-02", weight=3),
    ),
    "edges with ids that are not their keys'": (
        edge("Meets", "cat", "ann", on=1, id="m1"),
        edge("Meets", "cat", "ann", on=1, id='["ann","cat","1"]'),
        edge("Meets", "cat", "ann", on=1, id='["cat","ann","1"]'),
    ),
    "the first edge of a key is rejected for something else": (
        edge("Meets", "cat", "nobody", on=1),
        edge("Meets", "cat", "nobody", on=1),
        edge("Meets", "cat", "ben", on=2, ref="r"),
        edge("Meets", "cat", "ben", on=2, ref="s"),
    ),
    "an edge of a stored key gives its value to another": (
        edge("Meets", "ann", "ben", on=1, ref="s"),
        edge("Meets", "cat", "ben", on=1, ref="r"),
    ),
    "names of types as they come": (
        edge("KNOWS", "cat", "ann"),
        edge("knows", "cat", "ann"),
        edge("Knows", "cat", "ben"),
    ),
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Twins]:
    """Twins with the same few rows, copied from two that were loaded once."""
    made = tmp_path_factory.mktemp("stored")
    for name in ("inline", "spark"):
        og.init(made / name, SCHEMA).load(written(*STORED).write(made / "input"), mode="append")

    def copied(directory: Path) -> Twins:
        for name in ("inline", "spark"):
            shutil.copytree(made / name, directory / name)
        return Twins(directory, og.open(directory / "inline"), og.open(directory / "spark"))

    return copied


@pytest.mark.usefixtures("without_spark")
@pytest.mark.parametrize("story", STORIES)
def test_stories(tmp_path: Path, stored: Callable[[Path], Twins], story: str) -> None:
    lines = STORIES[story]
    for mode in MODES:
        twins = stored(tmp_path / mode)
        refused = twins.load(written(*lines), mode=mode)
        if refused.refusal is not None:
            # Every line in a file of its own.
            twins.load(several(*([one] for one in lines)), mode=mode, on_error="skip")
