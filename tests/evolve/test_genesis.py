"""Making a graph: all of it or none, and what a second init says."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import lance
import pytest

import omnigraph as og
from omnigraph import errors
from omnigraph.evolve import genesis
from omnigraph.evolve.genesis import CLAIM_NAME
from omnigraph.lang.structural import DST, ID, SRC
from omnigraph.manifest.root_copies import COPY_NAMES
from omnigraph.manifest.snapshot import SOURCE_NAME
from omnigraph.storage.objects import meter
from tests import faults
from tests.film_graph import SCHEMA, check_complete, files


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "film.omni"


@pytest.fixture
def graph(root: Path) -> og.Graph:
    return og.init(root, SCHEMA)


def test_a_new_graph_is_empty_and_whole(root: Path, graph: og.Graph) -> None:
    assert graph.schema == SCHEMA
    assert set(graph.catalog.nodes) == {"Person", "Film"}
    assert set(graph.catalog.edges) == {"ActedIn"}
    assert graph.branches.list() == ["main"]
    assert graph.notices == []
    snapshot = graph.snapshot()
    assert (snapshot.branch, snapshot.manifest_version) == ("main", 1)
    assert list(snapshot.tables) == ["edge:ActedIn", "node:Film", "node:Person"]
    (commit,) = graph.commits.list()
    assert (commit.id, commit.parent_id, commit.branch) == (snapshot.commit_id, None, None)
    check_complete(root)
    assert {path.name for path in root.iterdir()} == {
        *(*COPY_NAMES, "__manifest", "__reserve", "nodes", "edges")
    }


def test_tables_have_what_the_contract_says(graph: og.Graph) -> None:
    dataset = graph.table("ActedIn")
    assert dataset.schema.names == [ID, SRC, DST, "role"]
    assert graph.table("Film").schema.names == [ID, "title", "year"]
    for table in (dataset, lance.dataset(f"{graph.location}/__manifest/main")):
        key = table.schema.field(0)
        assert key.metadata[b"lance-schema:unenforced-primary-key"] == b"true"
        assert not key.nullable
        assert table.has_stable_row_ids
        assert table.data_storage_version == "2.2"


def test_a_table_is_found_by_name_or_by_key(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g", "node A {\n    x: I32\n}\n")
    assert graph.table("A").uri == graph.table("node:A").uri
    with pytest.raises(errors.NotFound, match="no type B"):
        graph.table("B")


def test_the_schema_is_a_path_or_a_text(tmp_path: Path) -> None:
    path = tmp_path / "film.pg"
    path.write_text(SCHEMA, encoding="utf-8")
    assert og.init(tmp_path / "a", path).schema == SCHEMA
    assert og.init(tmp_path / "b", str(path)).schema == SCHEMA
    assert og.init(f"file://{tmp_path}/c", SCHEMA).schema == SCHEMA


@pytest.mark.parametrize(
    ("content", "message"), [(None, "cannot read"), (b"\xff\xfe", "is not UTF-8 text")]
)
def test_a_schema_that_cannot_be_read(
    root: Path, tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "film.pg"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(errors.BadRequest, match=message):
        og.init(root, path)
    assert not root.exists()


def test_a_schema_with_mistakes_leaves_nothing(root: Path) -> None:
    with pytest.raises(errors.LanguageError):
        og.init(root, "node A { x: Strng }")
    assert not root.exists()


def test_the_actor_of_the_first_commit(root: Path) -> None:
    graph = og.init(root, SCHEMA, actor="ann")
    assert [commit.actor for commit in graph.commits.list()] == ["ann"]
    assert graph.commits.list(actor="bob") == []


@pytest.mark.parametrize("force", [False, True])
def test_a_second_init_never_touches_a_graph(root: Path, graph: og.Graph, force: bool) -> None:
    before = files(root)
    with pytest.raises(errors.AlreadyInitialized, match="holds a graph already"):
        og.init(root, SCHEMA, force=force)
    assert files(root) == before
    assert graph.schema == SCHEMA


def test_a_second_init_says_which_remains_it_found(root: Path) -> None:
    begun = root / "nodes" / "0000000000000001-0000000000000009" / "_transactions"
    begun.mkdir(parents=True)
    (root / SOURCE_NAME).write_text("old")
    transaction = begun / "0-95e94380-5d47-478a-86aa-1b67d214ae03.txn"
    transaction.write_text("old")
    with pytest.raises(errors.AlreadyInitialized, match="--force") as caught:
        og.init(root, SCHEMA)
    assert caught.value.details["found"] == [SOURCE_NAME, "nodes"]
    og.init(root, SCHEMA, force=True)
    check_complete(root)
    assert not transaction.exists()


@pytest.mark.parametrize(
    ("claim", "described"),
    [
        (b'{"claim_id": "x", "created_at": "2026-01-01T00:00:00+00:00"}', "since 2026-01-01"),
        (b"nonsense", "an unreadable claim"),
    ],
)
def test_a_claim_keeps_others_out_until_forced(root: Path, claim: bytes, described: str) -> None:
    root.mkdir()
    (root / CLAIM_NAME).write_bytes(claim)
    with pytest.raises(errors.Conflict, match=described):
        og.init(root, SCHEMA)
    assert files(root) == {CLAIM_NAME: claim}
    og.init(root, SCHEMA, force=True)
    check_complete(root)


def test_of_many_inits_one_wins(root: Path) -> None:
    outcomes: list[str] = []

    def run() -> None:
        try:
            og.init(root, SCHEMA)
        except errors.OmniGraphError as error:
            outcomes.append(error.code)
        else:
            outcomes.append("made")

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("made") == 1
    assert set(outcomes) <= {"made", "already_initialized", "conflict"}
    check_complete(root)


@pytest.mark.parametrize("point", faults.STORAGE_POINTS)
def test_a_crash_at_any_step_leaves_all_or_nothing(tmp_path: Path, point: faults.Point) -> None:
    for step in range(100):
        root = tmp_path / f"{step}.omni"
        with faults.armed(point, skip=step) as fault:
            try:
                og.init(root, SCHEMA)
            except errors.StorageError:
                assert fault.fired
        if not fault.fired:
            break
        try:
            og.open(root, read_only=True)
        except errors.NotFound:
            with pytest.raises(errors.OmniGraphError):
                og.open(root)
            og.init(root, SCHEMA, force=True)
        check_complete(root)
    assert 0 < step < 100


@pytest.mark.parametrize("committed", [False, True])
def test_a_crash_at_the_manifest(
    root: Path, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    create = lance.LanceDataset.commit

    def commit(uri: Any, *args: Any, **kwargs: Any) -> Any:
        if not str(uri).endswith("__manifest/main"):
            return create(uri, *args, **kwargs)
        if committed:
            create(uri, *args, **kwargs)
        raise OSError("connection reset")

    with monkeypatch.context() as patch:
        patch.setattr(lance.LanceDataset, "commit", staticmethod(commit))
        if committed:
            og.init(root, SCHEMA)
        else:
            with pytest.raises(errors.StorageError, match="connection reset"):
                og.init(root, SCHEMA)
            assert (root / "__manifest").is_dir()
    if not committed:
        with pytest.raises(errors.NotFound):
            og.open(root)
        with pytest.raises(errors.Conflict, match="claimed"):
            og.init(root, SCHEMA)
        (root / CLAIM_NAME).unlink()
        with pytest.raises(errors.AlreadyInitialized, match="__manifest"):
            og.init(root, SCHEMA)
        og.init(root, SCHEMA, force=True)
    check_complete(root)


def test_an_init_that_was_overtaken_by_force_makes_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create_tables = genesis.create_tables

    def overtaken(*args: Any) -> Any:
        (root / CLAIM_NAME).write_text("{}")
        return create_tables(*args)

    with monkeypatch.context() as patch:
        patch.setattr(genesis, "create_tables", overtaken)
        with pytest.raises(errors.Conflict, match="has taken over"):
            og.init(root, SCHEMA)
    assert not (root / "__manifest").exists()


@pytest.mark.slow
def test_many_types(tmp_path: Path) -> None:
    nodes = [f"node N{n} {{\n    name: String @key\n}}\n" for n in range(109)]
    edges = [f"edge E{n}: N{n} -> N{n + 1}\n" for n in range(108)]
    root = tmp_path / "g"
    og.init(root, "\n".join([*nodes, *edges]))
    with meter.measure() as counted:
        graph = og.open(root, read_only=True)
        assert len(graph.snapshot().tables) == 217
    assert counted.total < 20
    check_complete(root, 217)


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(?=a)", "look-ahead"),
        ("^(a+)+(?!b)$", "look-ahead"),
        ("(", "never closed"),
        # What only the engine itself can tell.
        ("\\\\p{Klingon}", "Klingon"),
        ("(a{100}){100}", "repetition size"),
    ],
)
def test_a_check_that_its_engine_does_not_take_makes_no_graph(
    root: Path, pattern: str, said: str
) -> None:
    with pytest.raises(errors.SchemaError, match=said) as refused:
        og.init(root, f'node A {{ n: String @key\n    @check(n, "{pattern}") }}')
    (found,) = refused.value.details["diagnostics"]
    assert found["line"] == 2
    assert not root.exists()


def test_a_check_takes_no_longer_than_its_text(root: Path) -> None:
    made = og.init(root, 'node A { n: String @key @check(n, "^(a+)+$") }')
    with pytest.raises(errors.ValidationError, match="does not match"):
        made.load([{"type": "A", "data": {"n": "a" * 5000 + "!"}}], mode="append")
