"""The change feed: every commit of a branch, from where a reader stands, at least once."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.history import feed as feed_module
from omnigraph.wire.changes import BlockBody, FeedBody
from tests.history.changing import (
    SCHEMA,
    State,
    apply,
    change_schema,
    follow,
    knows,
    lines_of,
    lives,
    make_people,
    mutate,
    person,
    place,
    state_of,
    told,
)
from tests.maintain.cleaning import clean
from tests.wire.plain import plain
from tests.write.writing import compact_all

pytestmark = pytest.mark.slow


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return make_people(tmp_path / "people.omni")


def head(graph: og.Graph, branch: str = "main") -> str:
    return graph.snapshot(branch).commit_id


def commits(blocks: Any) -> list[str]:
    return [block.cause.graph_commit_id for block in blocks]


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


# -- where a poll begins -----------------------------------------------------------


def test_a_feed_starts_now(graph: og.Graph) -> None:
    for start in (None, "now"):
        page = graph.changes.poll(start=start)
        assert (page.blocks, page.caught_up, page.next_page_token) == ((), True, None)
    graph.load([person("Cid")], mode="append")
    found = graph.changes.poll(cursor=page.cursor)
    assert commits(found.blocks) == [head(graph)]
    assert told(found.blocks[0].changes) == [("insert", "node", "Person", "Cid")]
    assert found.caught_up
    again = graph.changes.poll(cursor=page.cursor)
    assert again == found, "a cursor may be used again"
    assert graph.changes.poll(cursor=found.cursor).blocks == ()


def test_from_the_beginning_the_first_commit_has_no_block(graph: og.Graph) -> None:
    graph.load([person("Cid")], mode="append")
    page = graph.changes.poll(start="beginning")
    newest, second, _ = graph.commits.list()
    assert commits(page.blocks) == [second.id, newest.id]
    assert page.blocks[0].changes == graph.commits.changes(second.id).changes
    assert plain(FeedBody.of(page)) == {
        "blocks": [plain(BlockBody.of(block)) for block in page.blocks],
        "cursor": page.cursor,
        "caught_up": True,
    }


def test_a_graph_without_commits_has_no_blocks(tmp_path: Path) -> None:
    empty = og.init(tmp_path / "empty.omni", SCHEMA)
    page = empty.changes.poll(start="beginning")
    assert (page.blocks, page.caught_up) == ((), True)


def test_after_a_commit(graph: og.Graph) -> None:
    graph.load([person("Cid")], mode="append")
    graph.load([person("Dan")], mode="append")
    newest, middle, oldest, genesis = [commit.id for commit in graph.commits.list()]
    assert commits(graph.changes.poll(start=f"after:{oldest}").blocks) == [middle, newest]
    assert commits(graph.changes.poll(start=f"after:{genesis}").blocks) == [oldest, middle, newest]
    assert graph.changes.poll(start=f"after:{newest}").blocks == ()


def test_a_branch_has_the_history_it_came_from_and_its_own(graph: og.Graph) -> None:
    graph.branches.create("draft")
    graph.load([person("Cid")], mode="append", branch="draft")
    graph.load([person("Dan")], mode="append")
    chain = [commit.id for commit in graph.commits.list("draft")]
    page = graph.changes.poll(branch="draft", start="beginning")
    assert commits(page.blocks) == chain[-2::-1]
    assert [block.cause.authored_branch for block in page.blocks] == ["main", "draft"]
    with pytest.raises(errors.BadRequest, match="not in the history of branch draft"):
        graph.changes.poll(branch="draft", start=f"after:{head(graph)}")


@pytest.mark.parametrize("start", ["", "later", "after", "after:", "after:x", "NOW"])
def test_other_starts_are_refused(graph: og.Graph, start: str) -> None:
    with pytest.raises(errors.BadRequest):
        graph.changes.poll(start=start)


def test_one_way_to_begin_at_a_time(graph: og.Graph) -> None:
    cursor = graph.changes.poll().cursor
    several: list[dict[str, Any]] = [
        {"start": "now", "cursor": cursor},
        {"cursor": cursor, "page_token": "x"},
    ]
    for given in several:
        with pytest.raises(errors.BadRequest, match="one of start, cursor and page_token"):
            graph.changes.poll(**given)


def test_an_unknown_branch(graph: og.Graph) -> None:
    with pytest.raises(errors.BranchNotFound):
        graph.changes.poll(branch="draft")


# -- pages -------------------------------------------------------------------------


def write_some(graph: og.Graph) -> None:
    graph.load([place(f"p{number}") for number in range(5)], mode="append")
    compact_all(graph)
    graph.load([person("Cid"), knows("k2", "Cid", "Ann")], mode="append")
    mutate(graph, 'delete Person where name = "Ann"')


@pytest.mark.parametrize("limit", [*range(1, 9), None])
def test_pages_of_any_size_say_the_same(graph: og.Graph, limit: int | None) -> None:
    write_some(graph)
    whole = graph.changes.poll(start="beginning")
    blocks, pages = follow(graph, limit=limit)
    assert tuple(blocks) == whole.blocks
    assert [len(block.changes) for block in blocks] == [5, 5, 0, 2, 4]
    for page in pages:
        assert sum(len(block.changes) for block in page.blocks) <= (limit or 1000)


def test_a_page_begins_no_commit_that_it_cannot_finish(graph: og.Graph) -> None:
    write_some(graph)
    _, pages = follow(graph, limit=7)
    sizes = [[len(block.changes) for block in page.blocks] for page in pages]
    assert sizes == [[5], [5, 0, 2], [4]]
    assert all(page.cursor is not None for page in pages)
    _, pages = follow(graph, limit=4)
    sizes = [[len(block.changes) for block in page.blocks] for page in pages]
    assert sizes == [[4], [1], [4], [1, 0, 2], [4]]
    assert [page.next_page_token is not None for page in pages] == [True, False, True, False, False]


def test_pages_of_fresh_handles_are_the_same(graph: og.Graph) -> None:
    write_some(graph)
    blocks, _ = follow(graph, limit=2)
    token: dict[str, Any] = {"start": "beginning"}
    found: list[str] = []
    while token:
        page = og.open(str(graph.location), read_only=True).changes.poll(limit=2, **token)
        found += [change.id for block in page.blocks for change in block.changes]
        rest = {"page_token": page.next_page_token, "cursor": page.cursor}
        token = {} if page.caught_up else {name: text for name, text in rest.items() if text}
    assert found == [change.id for block in blocks for change in block.changes]


def test_a_poll_sees_what_was_committed_while_it_paged(graph: og.Graph) -> None:
    page = graph.changes.poll(start="beginning", limit=4)
    graph.load([person("Cid")], mode="append")
    last = graph.changes.poll(page_token=page.next_page_token, limit=4)
    assert [len(block.changes) for block in last.blocks] == [1, 1]
    assert last.caught_up


def test_a_poll_goes_through_so_many_commits(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert feed_module.MAX_COMMITS == 128
    monkeypatch.setattr(feed_module, "MAX_COMMITS", 2)
    for number in range(3):
        graph.load([place(f"p{number}")], mode="append")
    page = graph.changes.poll(start="beginning")
    assert (len(page.blocks), page.caught_up) == (2, False)
    page = graph.changes.poll(cursor=page.cursor)
    assert (len(page.blocks), page.caught_up) == (2, True)


@pytest.mark.parametrize(("limit", "error"), [(0, errors.BadRequest), (8193, errors.ResourceLimit)])
def test_limits(graph: og.Graph, limit: int, error: type[Exception]) -> None:
    with pytest.raises(error):
        graph.changes.poll(limit=limit)


def test_filters(graph: og.Graph) -> None:
    write_some(graph)
    blocks, _ = follow(graph, types=["Person"], ops=["insert"])
    assert [[change.id for change in block.changes] for block in blocks] == [
        ["Ann", "Ben"], [], [], ["Cid"], []
    ]  # fmt: skip
    wrong: list[tuple[dict[str, Any], type[Exception]]] = [
        ({"types": "Persn"}, errors.NotFound),
        ({"kinds": "vertex"}, errors.BadRequest),
        ({"ops": "insrt"}, errors.BadRequest),
    ]
    for filters, error in wrong:
        with pytest.raises(error):
            graph.changes.poll(**filters)


def test_old_commits_are_found_in_the_log(graph: og.Graph) -> None:
    cursor = graph.changes.poll().cursor
    for number in range(40):
        graph.load([place(f"p{number}")], mode="append")
    view = og.open(str(graph.location)).manifest.view()
    assert graph.commits.list()[-1] not in view.state.commits, "nothing is sealed yet"
    found = og.open(str(graph.location)).changes.poll(cursor=cursor)
    assert len(found.blocks) == 40
    assert found.caught_up


# -- what a token belongs to -------------------------------------------------------


def rejected(graph: og.Graph, **options: Any) -> str:
    with pytest.raises(errors.ChangeCursorRejected, match=r"^change cursor rejected: ") as error:
        graph.changes.poll(**options)
    return str(error.value)


def test_a_cursor_belongs_to_one_feed(graph: og.Graph, tmp_path: Path) -> None:
    graph.branches.create("draft")
    cursor = graph.changes.poll(branch="draft").cursor
    assert "another branch" in rejected(graph, cursor=cursor)
    assert "other kinds" in rejected(graph, branch="draft", cursor=cursor, kinds=["node"])
    assert "feed-page" in rejected(graph, branch="draft", page_token=cursor)
    other = make_people(tmp_path / "other.omni")
    other.branches.create("draft")
    assert "another graph" in rejected(other, branch="draft", cursor=cursor)
    token = graph.changes.poll(branch="draft", start="beginning", limit=1).next_page_token
    assert "feed-cursor" in rejected(graph, branch="draft", cursor=token)


def test_a_branch_that_was_created_anew_is_another(graph: og.Graph) -> None:
    graph.branches.create("draft")
    cursor = graph.changes.poll(branch="draft").cursor
    graph.branches.delete("draft")
    graph.branches.create("draft")
    assert "created anew" in rejected(graph, branch="draft", cursor=cursor)


def test_all_kinds_and_operations_are_no_filter(graph: og.Graph) -> None:
    cursor = graph.changes.poll(kinds=["edge", "node"]).cursor
    assert graph.changes.poll(cursor=cursor, ops=["delete", "update", "insert"]).caught_up
    one = graph.changes.poll(types=["Person", "Place"]).cursor
    assert graph.changes.poll(cursor=one, types=["Place", "Person", "Place"]).caught_up


def test_a_renamed_type_goes_on(graph: og.Graph) -> None:
    cursor = graph.changes.poll(types="Place").cursor
    renamed = SCHEMA.replace("node Place {", 'node Town @rename_from("Place") {').replace(
        "-> Place", "-> Town"
    )
    change_schema(graph, renamed)
    graph.load([{"type": "Town", "data": {"name": "Oslo"}}], mode="append")
    page = graph.changes.poll(types="Town", cursor=cursor)
    assert [told(block.changes) for block in page.blocks] == [
        [],
        [("insert", "node", "Town", "Oslo")],
    ]


# -- what cannot be delivered ------------------------------------------------------


def test_a_boundary_ends_a_page_and_then_is_refused(graph: og.Graph) -> None:
    less = SCHEMA.replace("\nedge Lives: Person -> Place\n", "")
    commit = change_schema(graph, less)
    graph.load([person("Cid")], mode="append")
    page = graph.changes.poll(start="beginning")
    assert (len(page.blocks), page.caught_up) == (1, False)
    with pytest.raises(errors.ChangeDiffRefused) as error:
        graph.changes.poll(cursor=page.cursor)
    assert error.value.details["graph_commit_id"] == commit
    assert len(graph.changes.poll(start=f"after:{commit}").blocks) == 1


def test_a_gap_says_where_it_is(graph: og.Graph) -> None:
    cursor = graph.changes.poll().cursor
    lost, genesis = graph.commits.list()
    for age in range(3):
        graph.load([person("Ann", age=age)], mode="merge")
    clean(graph, 2)
    graph = og.open(str(graph.location))
    with pytest.raises(errors.ChangeFeedGap, match=f"{lost.id}; take a new baseline") as error:
        graph.changes.poll(cursor=cursor)
    details = {"cursor": cursor, "first_unreadable_commit_id": lost.id}
    assert error.value.details == details
    with pytest.raises(errors.ChangeFeedGap) as error:
        graph.changes.poll(start="beginning")
    assert error.value.details == {"first_unreadable_commit_id": genesis.id}
    kept = graph.commits.list()[1].id
    assert len(graph.changes.poll(start=f"after:{kept}").blocks) == 1
    assert graph.changes.poll().caught_up


# -- baselines ---------------------------------------------------------------------


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "base.jsonl"


def test_a_baseline_and_the_feed_behind_it_are_the_branch(graph: og.Graph, path: Path) -> None:
    baseline = graph.changes.baseline(path)
    assert baseline.snapshot_commit_id == head(graph)
    assert path.read_text().splitlines() == list(graph.export())
    assert names_in(path.parent) == [path.name]
    assert baseline.report.total == 5
    write_some(graph)
    state = state_of(path.read_text().splitlines())
    page = graph.changes.poll(cursor=baseline.resume_cursor)
    for block in page.blocks:
        apply(state, block.changes)
    assert state == state_of(graph.export())


def test_a_baseline_is_filtered_by_kind_and_type_and_bound_to_all(
    graph: og.Graph, path: Path
) -> None:
    filters: dict[str, Any] = {"kinds": ["node"], "types": ["Person", "Lives"], "ops": ["delete"]}
    baseline = graph.changes.baseline(path, **filters)
    assert sorted(state_of(path.read_text().splitlines())) == [
        ("node", "Person", "Ann"),
        ("node", "Person", "Ben"),
    ]
    assert graph.changes.poll(cursor=baseline.resume_cursor, **filters).caught_up
    assert "other kinds" in rejected(graph, cursor=baseline.resume_cursor)


def test_the_last_line_of_a_stream_is_the_handshake(graph: og.Graph) -> None:
    graph.branches.create("draft")
    graph.load([person("Cid")], mode="append", branch="draft")
    stream = graph.changes.baseline(branch="draft")
    *lines, last = stream
    assert lines == list(graph.export(branch="draft"))
    assert json.loads(last) == {
        "baseline": {
            "snapshot_commit_id": head(graph, "draft"),
            "resume_cursor": stream.resume_cursor,
        }
    }
    chunks = b"".join(graph.changes.baseline(branch="draft").chunks())
    assert chunks.decode().split("\n") == [*lines, last, ""]
    assert graph.changes.poll(branch="draft", cursor=stream.resume_cursor).caught_up


def test_one_baseline_at_a_time_is_written_to_a_path(graph: og.Graph, path: Path) -> None:
    path.write_text("old")
    lock = path.with_name(f"{path.name}.lock")
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(errors.Conflict, match="another program"):
            graph.changes.baseline(path)
        assert path.read_text() == "old"
        assert lock.exists()
    graph.changes.baseline(path)
    assert names_in(path.parent) == [path.name], "a lock that nobody holds is in nobody's way"


def test_a_baseline_that_fails_leaves_the_old_file(
    graph: og.Graph, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_text("old")

    def broken(self: object) -> Iterator[object]:  # noqa: ARG001 - a method's signature
        raise errors.StorageError("the disk is gone", kind="permanent")
        yield

    monkeypatch.setattr("omnigraph.read.output.export.Export.chunks", broken)
    with pytest.raises(errors.StorageError):
        graph.changes.baseline(path)
    assert path.read_text() == "old"
    assert names_in(path.parent) == [path.name]


def test_places_that_cannot_be_written(graph: og.Graph, tmp_path: Path) -> None:
    for path in ("s3://bucket/base.jsonl", tmp_path / "nowhere" / "base.jsonl", tmp_path):
        with pytest.raises(errors.BadRequest, match="cannot"):
            graph.changes.baseline(path)


# -- replaying ---------------------------------------------------------------------


def test_the_feed_rebuilds_a_branch(graph: og.Graph, tmp_path: Path) -> None:
    write_some(graph)
    graph.branches.create("draft")
    graph.load(
        [person("Eva", face=[1.0, 2.0]), lives("l2", "Eva", "Rome")], mode="append", branch="draft"
    )
    mutate(graph, 'update Person set { age: 7 } where name = "Eva"', branch="draft")
    graph.load([person("Fay")], mode="append")
    graph.branches.merge("draft")
    for number, branch in enumerate(("main", "draft")):
        state: State = {}
        for block in follow(graph, branch=branch, limit=3)[0]:
            apply(state, block.changes)
        copy = og.init(tmp_path / f"copy{number}.omni", SCHEMA)
        copy.load("\n".join(lines_of(state)), mode="append")
        assert list(copy.export()) == list(graph.export(branch=branch))
