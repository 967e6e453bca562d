"""A bulk load happens as a whole or not at all, whoever dies while it is at work."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import omnigraph as og
from tests import profile
from tests.pipeline import kill_points
from tests.pipeline.engines import content
from tests.pipeline.killing import (
    RUN,
    Story,
    check_swept,
    check_whole,
    data_files,
    driver,
    intents_of,
    make_story,
    staging_files,
)
from tests.pipeline.load_worker import Order
from tests.write.crash.crash_child import Passing
from tests.write.processes import context

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Story:
    return make_story(tmp_path_factory.mktemp("story"), people=100)


def order(story: Story, place: Path, number: int = 0, **given: Any) -> Order:
    options = {"mode": "append", "run_id": RUN}
    files = [str(path) for path in story.files]
    return Order(
        str(place / "graph"), files, str(place / f"signs-{number}"), **{"options": options, **given}
    )


@pytest.mark.parametrize(
    ("held", "is_published"),
    [
        ("stage", False),
        ("decide", False),
        (("table_staged", 3), False),
        (("publish_ready", 1), False),
        (("published", 1), True),
    ],
    ids=str,
)
def test_a_driver_is_killed(
    held: str | tuple[str, int],
    is_published: bool,
    story: Story,
    tmp_path: Path,
    spark: SparkSession,
) -> None:
    root = story.copy(tmp_path)
    if isinstance(held, str):
        given = order(story, tmp_path, trouble={held: {"*": "wait"}})
    else:
        given = order(story, tmp_path, held_at=held)
    before = data_files(root)
    with driver(tmp_path, given) as loading:
        # Both cores have written something, and wait.
        signs = ("held", 1) if isinstance(held, tuple) else (f"{held}-*", 2)
        loading.await_signs(*signs)
        assert data_files(root) > before
        loading.kill()
    check_whole(root, story.after if is_published else story.before)
    intents = intents_of(root)
    assert len(intents) == 1
    graph = og.open(root, actor="next")
    done = graph.load(list(story.files), mode="append", engine="spark", spark=spark, run_id=RUN)
    assert done.repeats_run == is_published
    check_whole(root, story.after)
    check_swept(root, intents, is_published=is_published)
    check_whole(root, story.after)


def test_tasks_that_fail_are_tried_again(story: Story, tmp_path: Path) -> None:
    root = story.copy(tmp_path)
    failing = order(story, tmp_path, trouble={"stage": {"2": "raise always"}})
    shaky = order(
        story,
        tmp_path,
        1,
        trouble={
            "stage": {"0": "raise", "1": "exit"},
            "cut": {"0": "exit"},
            "decide": {"1": "raise"},
        },
    )
    with driver(tmp_path, failing, shaky) as loading:
        loading.await_results(1)
        check_whole(root, story.before)
        failed, loaded = loading.results()
    assert "this task never succeeds" in failed["message"]
    assert sum(loaded["nodes"].values()) + sum(loaded["edges"].values()) == len(story.after) - len(
        story.before
    )
    again = {path.name for path in (tmp_path / "signs-1").glob("*-1")}
    assert again >= {"stage-0-1", "stage-1-1", "cut-0-1", "decide-1-1"}
    check_whole(root, story.after)


# -- everywhere ----------------------------------------------------------------------------

SCHEMA = """
node Person {
    name: String @key
    mail: String? @unique
}
edge Knows: Person -> Person @card(0..2)
"""


def person(name: str, **values: str) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **values}}


def knows(source: str, target: str) -> dict[str, Any]:
    return {"edge": "Knows", "from": source, "to": target}


def write_lines(path: Path, *envelopes: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in envelopes), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("way", "mode"), [("spark", "merge"), ("spark", "overwrite"), ("inline", "merge")]
)
def test_a_load_is_killed_wherever_it_can_be(way: str, mode: str, tmp_path: Path) -> None:
    stored = [person("Ann", mail="a"), person("Bob"), knows("Ann", "Bob")]
    fresh = [person("Cid", mail="a"), person("Dan"), knows("Dan", "Ann"), knows("Cid", "Nobody")]
    # Ann gives her address to Cid, Bob gets one; only the edge to nobody is rejected.
    again = [person("Ann"), person("Bob", mail="b")]
    seed = tmp_path / "seed"
    og.init(seed, SCHEMA).load([write_lines(tmp_path / "stored.jsonl", *stored)], mode="append")
    files = [str(write_lines(tmp_path / "fresh.jsonl", *fresh, *again))]
    options = {"mode": mode, "on_error": "skip", "run_id": RUN}
    passings = rehearsed(seed, tmp_path / "rehearsal", files, options, way)
    before = content(og.open(seed, read_only=True))
    after = content(og.open(tmp_path / "rehearsal", read_only=True))
    assert {point for point, *_ in passings} >= {"task", "table_staged", "publish_ready"}
    assert {"stage", "cut", "decide", "search", "rewrite"} <= {
        passing.target for passing in passings
    }
    published = passings.index(Passing("after_commit", "manifest", 1))
    for number, fatal in enumerate(passings):
        # Of what happens many times, the first and the last will do, or the last.
        first = 1 if way == "spark" or profile.CHOSEN.every_passing else 0
        if first < fatal.nth < len([one for one in passings if one[:2] == fatal[:2]]):
            continue
        root = tmp_path / str(number)
        shutil.copytree(seed, root)
        told = (str(root), files, options, way, fatal)
        process = context.Process(target=kill_points.crash, args=told)
        process.start()
        process.join()
        assert process.exitcode == -signal.SIGKILL, f"survived {fatal}"
        try:
            is_published = number >= published
            check_whole(root, after if is_published else before)
            intents = intents_of(root)
            kill_points.load(str(root), files, options, lambda _: None, way)
            check_whole(root, after)
            check_swept(root, intents, is_published=is_published)
            check_whole(root, after)
        except Exception as error:
            error.add_note(f"the load was killed at {fatal}")
            raise
        shutil.rmtree(root)


def rehearsed(
    seed: Path, root: Path, files: list[str], options: dict[str, str], way: str
) -> list[Passing]:
    """Every passing of a load that nobody kills."""
    shutil.copytree(seed, root)
    receiver, sender = context.Pipe(duplex=False)
    told = (str(root), files, options, way, sender)
    process = context.Process(target=kill_points.rehearse, args=told)
    process.start()
    sender.close()
    passings: list[Passing] = receiver.recv()
    process.join()
    assert process.exitcode == 0
    assert not intents_of(root)
    assert not staging_files(root)
    return passings
