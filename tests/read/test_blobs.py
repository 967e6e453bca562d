"""`graph.blob`: ranges, what an ETag says, and that a value is of one commit for ever."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph import aio, errors
from omnigraph.lang.structural import ID
from omnigraph.read.output.blobs import Blob, BlobSelector
from omnigraph.storage.blobs import cells
from omnigraph.storage.blobs.cells import PIECE, find_blob
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables.table import Table, TablePin

SCHEMA = """\
node Person {
    name: String @key
    age: I32?
    photo: Blob?
}

edge Knows: Person -> Person {
    letter: Blob?
}
"""
LARGE = bytes(range(256)) * (9 << 12)  # 9 MiB, no two neighbours alike
CONTENT: dict[str, bytes | None] = {
    "empty": b"",
    "large": LARGE,
    "middle": b"m" * 100_000,
    "none": None,
    "small": b"\x00small\xff",
}


def people(contents: dict[str, bytes | None]) -> list[dict[str, Any]]:
    return [
        {"type": "Person", "data": {"name": name, "photo": content}}
        for name, content in contents.items()
    ]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """A graph that is only looked at."""
    graph = og.init(tmp_path_factory.mktemp("blobs") / "film.omni", SCHEMA)
    letter = {"id": "e1", "letter": b"Dear Ben"}
    edge = {"edge": "Knows", "from": "small", "to": "none", "data": letter}
    graph.load([*people(CONTENT), edge], mode="append")
    return graph


def photo(graph: og.Graph, name: str, **at: str) -> Blob:
    return graph.blob("node", "Person", name, "photo", **at)


@pytest.mark.parametrize("name", [name for name in CONTENT if name != "none"])
def test_all_of_it_and_every_kind_of_range(filled: og.Graph, name: str) -> None:
    content = CONTENT[name] or b""
    blob = photo(filled, name)
    assert (blob.size, blob.uri, blob.kind) == (len(content), None, "managed")
    assert b"".join(blob) == content
    end = len(content)
    for start, stop in ((0, 0), (end, end), (0, min(end, 7)), (end // 2, end // 2 + end % 3)):
        assert blob.read(start, stop) == content[start:stop]
    assert blob.read(max(0, end - 5)) == content[max(0, end - 5) :]
    assert b"".join(blob.chunks(end // 3)) == content[end // 3 :]


def test_ranges_that_are_not_there(filled: og.Graph) -> None:
    blob = photo(filled, "small")
    for start, end in ((-1, 2), (3, 2), (0, 8), (8, 8), (8, None), (10**30, None)):
        with pytest.raises(errors.BlobRangeNotSatisfiable) as refused:
            blob.read(start, end)
        wanted = {"start": start, "end": 7 if end is None else end, "length": 7}
        assert refused.value.details == wanted
    untyped: Any = blob
    for wrong in ("0", 1.5, True, b""):
        with pytest.raises(errors.BadRequest, match="whole numbers"):
            untyped.read(0, wrong)


def test_a_large_value_is_never_held_as_a_whole(
    filled: og.Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    open_cell = cells.BlobCell._open

    def watched(self: cells.BlobCell) -> Any:
        file = open_cell(self)

        class Watched:
            def read_range(self, start: int, size: int) -> bytes:
                asked.append(size)
                found: bytes = file.read_range(start, size)
                return found

        return Watched()

    monkeypatch.setattr(cells.BlobCell, "_open", watched)
    blob = photo(filled, "large")
    assert [len(piece) for piece in blob] == [PIECE, PIECE, len(LARGE) - 2 * PIECE]
    assert max(asked) <= PIECE
    assert blob.read(1, 1 + PIECE) == LARGE[1 : 1 + PIECE]
    with pytest.raises(errors.ResourceLimit, match=r"\.chunks\(\)") as refused:
        blob.read(0, PIECE + 1)
    assert refused.value.details["limit"] == PIECE
    asked.clear()
    cells._digests.clear()
    tags = {blob.etag, photo(filled, "large").etag}
    assert len(tags) == 1
    assert sum(asked) == len(LARGE)  # read once for both


def test_what_is_not_there(filled: og.Graph) -> None:
    for name in ("none", "nobody", ""):
        with pytest.raises(errors.NotFound, match=f"photo of node Person '{name}'"):
            photo(filled, name)
    wrong: list[tuple[Any, str, str]] = [
        ("node", "Persn", "did you mean `Person`"),
        ("node", "Knows", "there is no type Knows"),
        ("edge", "Person", "there is no type Person"),
        ("vertex", "Person", "entity must be 'node' or 'edge'"),
    ]
    for entity, type_, words in wrong:
        with pytest.raises(errors.BadRequest, match=words):
            filled.blob(entity, type_, "small", "photo")
    for name, words in (("foto", "did you mean `photo`"), ("age", "is I32")):
        with pytest.raises(errors.BadRequest, match=words):
            filled.blob("node", "Person", "small", name)
    with pytest.raises(errors.BranchNotFound):
        photo(filled, "small", branch="dev")


def test_an_edge_has_blobs_too(filled: og.Graph) -> None:
    letter = filled.blob("edge", "Knows", "e1", "letter")
    assert letter.read() == b"Dear Ben"
    assert repr(letter) == "<Blob letter of edge Knows 'e1', 8 bytes>"


@pytest.mark.slow
def test_an_etag_says_what_the_content_is(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "film.omni", SCHEMA)
    graph.load(people({"a": b"one", "b": b"one", "c": b"two"}), mode="append")
    first = graph.commits.list()[0].id
    tags = {name: photo(graph, name).etag for name in "abc"}
    assert tags["a"] == tags["b"] != tags["c"]
    assert all(tag is not None and tag[0] == tag[-1] == '"' for tag in tags.values())
    pinned = photo(graph, "a")

    graph.branches.create("dev")
    change = 'query q($p: Blob) { update Person set { photo: $p } where name = "a" }'
    graph.mutate(change, params={"p": b"three"}, branch="dev")
    graph.mutate('query q() { update Person set { age: 3 } where name = "b" }', branch="dev")
    graph.mutate(change, params={"p": b"four"}, branch="main")
    others = {photo(graph, "a", branch="dev").etag, photo(graph, "a").etag}
    assert len(others | {tags["a"]}) == 3
    assert photo(graph, "b", branch="dev").etag == tags["b"]

    # It outlives a merge, an optimize and another value, and so does a value that is held.
    graph.mutate(change, params={"p": b"three"}, branch="main")
    graph.branches.merge("dev")
    for name in "defgh":
        graph.load(people({name: name.encode()}), mode="append")
    graph.optimize()
    assert photo(graph, "b").etag == tags["b"]
    assert photo(graph, "c").etag == tags["c"]
    assert photo(graph, "a").etag == photo(graph, "a", branch="dev").etag != tags["a"]
    assert (pinned.read(), pinned.etag, pinned.commit_id) == (b"one", tags["a"], first)
    assert photo(graph, "a", snapshot=first).read() == b"one"

    # What is reclaimed says so, however it was come by.
    graph.branches.delete("dev")
    graph.cleanup(1, grace=timedelta(0))
    with pytest.raises(errors.ChangeFeedGap, match="cleanup has reclaimed"):
        photo(graph, "a", snapshot=first)
    cells._digests.clear()
    for look in (pinned.read, lambda: pinned.etag):
        with pytest.raises(errors.ChangeFeedGap, match="cleanup has reclaimed"):
            look()
    assert photo(graph, "a").read() == b"three"


def test_a_reference_is_not_followed(tmp_path: Path) -> None:
    uri = f"file://{tmp_path}/gone.bin"
    Path(tmp_path, "gone.bin").write_bytes(b"outside")
    schema = pa.schema([pa.field(ID, pa.string()), lance.blob_field("photo")])
    outside = [lance.Blob.from_uri(uri), lance.Blob.from_uri(uri, position=2, size=3)]
    dataset = lance.write_dataset(
        pa.table([pa.array(["a", "b"]), lance.blob_array(outside)], schema=schema),
        str(tmp_path / "table"),
        data_storage_version="2.2",
        allow_external_blob_outside_bases=True,
    )
    Path(tmp_path, "gone.bin").unlink()
    table = Table(Location.parse(str(tmp_path / "table")), TablePin(dataset.version, None, 2))
    for id_, offset, size in (("a", 0, None), ("b", 2, 3)):
        cell = find_blob(table, id_, "photo")
        assert cell is not None
        blob = Blob(BlobSelector("node", "Person", id_, "photo"), "C", cell, lambda: None)
        assert (blob.kind, blob.uri, blob.offset, blob.size) == ("external", uri, offset, size)
        assert blob.etag is None
        for read in (blob.read, lambda blob=blob: list(blob)):
            with pytest.raises(errors.BadRequest, match=r"gone\.bin, which is not followed"):
                read()


def test_on_an_event_loop(filled: og.Graph) -> None:
    async def read() -> tuple[bytes, int | None, list[int]]:
        async with aio.open(str(filled.location)) as graph:
            blob = await graph.blob("node", "Person", "large", "photo")
            lengths = [len(piece) async for piece in blob.chunks(1)]
            return await blob.read(3, 9), await blob.size, lengths

    import asyncio

    assert asyncio.run(read()) == (
        LARGE[3:9],
        len(LARGE),
        [PIECE, PIECE, len(LARGE) - 2 * PIECE - 1],
    )
