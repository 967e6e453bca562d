"""Verify names every planted damage, and finds nothing in what is sound."""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import LanceOperation
from lance.fragment import RowIdSequence, write_fragments

import omnigraph as og
from omnigraph.errors import BadRequest, BranchNotFound, NotFound, StorageError
from omnigraph.maintain.verify.report import Finding, VerifyReport
from omnigraph.storage.objects.control_objects import ControlObjects
from tests.maintain.damage import SCHEMA, Patient, cut, flip, make_graph, people


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("sound") / "graph.omni"
    make_graph(place)
    return place


@pytest.fixture
def patient(sound: Path, tmp_path: Path) -> Patient:
    return Patient.of(sound, tmp_path / "graph.omni")


def kinds(report: VerifyReport) -> set[str]:
    return {one.kind for one in report.damage}


def only(report: VerifyReport, kind: str) -> Finding:
    assert kinds(report) == {kind}, report.findings
    return report.damage[0]


@pytest.mark.slow
@pytest.mark.parametrize("deep", [False, True])
def test_nothing_is_found_in_a_sound_graph(sound: Path, deep: bool) -> None:
    before = {path: path.stat().st_mtime_ns for path in sound.rglob("*")}
    report = og.verify(sound, deep=deep)
    assert report.findings == ()
    assert report.is_sound
    assert report.whole_branches == ("main", "dev")
    assert report.looked.branches == 2
    assert report.looked.rows > 40
    assert {path: path.stat().st_mtime_ns for path in sound.rglob("*")} == before


def remove(*paths: Path) -> None:
    for path in paths:
        path.unlink()


Plant = Callable[[Patient], Any]
FILES: dict[str, tuple[Plant, str, bool]] = {
    "a data file is missing": (lambda p: remove(p.data_file()), "file_missing", False),
    "a data file is cut": (lambda p: cut(p.data_file()), "file_size", False),
    "a data file is empty": (lambda p: cut(p.data_file(), 0), "file_size", False),
    "an end of a data file is flipped": (
        lambda p: flip(p.data_file(), 0.999),
        "file_unreadable",
        False,
    ),
    "a deletion file is missing": (lambda p: remove(p.deletion_file()), "file_missing", False),
    "a deletion file is cut": (lambda p: cut(p.deletion_file()), "file_unreadable", False),
    "a version is missing": (lambda p: remove(p.version_file()), "version_missing", False),
    "a version is cut": (lambda p: cut(p.version_file()), "version_unreadable", False),
    "a version is empty": (lambda p: cut(p.version_file(), 0), "version_unreadable", False),
    "an index is missing": (
        lambda p: remove(*p.index_files()),
        "index_file_missing",
        False,
    ),
    "a file of an index is missing": (lambda p: remove(p.index_files()[0]), "index_size", False),
    "a file of an index is cut": (lambda p: cut(p.index_files()[0]), "index_size", False),
    "an index of words is missing": (
        lambda p: remove(*p.index_files(kind="Inverted")),
        "index_file_missing",
        False,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", FILES)
def test_a_damaged_file_is_named(patient: Patient, what: str) -> None:
    plant, kind, deep = FILES[what]
    plant(patient)
    report = og.verify(patient.root, deep=deep)
    found = only(report, kind)
    assert found.type_key == "node:Person"
    assert found.path is not None
    assert found.path.startswith(patient.table().relative_to(patient.root).as_posix())
    assert "main" in found.branches
    assert found.commit_count >= 1
    assert set(found.commits) <= {one.id for one in patient.graph.commits.list()} | {
        one.id for one in patient.graph.commits.list("dev")
    }
    assert not next(one for one in report.branches if one.branch == "main").is_whole
    if found.kind.startswith(("file", "version")):
        assert found.entity_count > 0


# -- checksums ---------------------------------------------------------------------------

ALTERED: dict[str, Callable[[Patient], Path]] = {
    "a bit of a data file": lambda p: p.data_file(),
    "a bit of a deletion file": lambda p: p.deletion_file(),
    "a data file of a branch": lambda p: p.data_file(branch="dev", at=-1),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", ALTERED)
def test_a_flipped_bit_is_found_by_its_checksum(patient: Patient, what: str) -> None:
    path = ALTERED[what](patient)
    flip(path, 0.02)
    report = og.verify(patient.root, deep=True)
    found = next(one for one in report.damage if one.kind == "checksum")
    assert found.path == path.relative_to(patient.root).as_posix()
    assert "dev" in found.branches
    assert report.looked.checksums > 8


def flip_text(path: Path, text: bytes) -> None:
    """Turn over a bit of the last place where a text stands."""
    data = bytearray(path.read_bytes())
    data[data.rindex(text)] ^= 0x01
    path.write_bytes(data)


def flip_path(patient: Patient) -> None:
    """A version names a data file that is not there."""
    flip_text(patient.version_file(), patient.data_file().name.encode())


def flip_place(patient: Patient) -> None:
    """A version says in its last bytes where to begin reading it."""
    data = bytearray(patient.version_file().read_bytes())
    data[-16] ^= 0x01
    patient.version_file().write_bytes(data)


def flip_index(patient: Patient) -> None:
    for path in patient.index_files():
        flip(path, 0.3)


BITS: dict[str, tuple[Plant, str, str]] = {
    "the name of a column in a version": (
        lambda p: flip_text(p.version_file(), b"mood"),
        "version_altered",
        "node:Person",
    ),
    "the name of a file in a version": (flip_path, "version_altered", "node:Person"),
    "where the contents of a version are": (flip_place, "version_unreadable", "node:Person"),
    "an index": (flip_index, "index_unreadable", "node:Person"),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", BITS)
def test_a_flipped_bit_of_what_is_no_row_is_found(patient: Patient, what: str) -> None:
    plant, kind, key = BITS[what]
    plant(patient)
    report = og.verify(patient.root, deep=True)
    found = [one for one in report.damage if one.kind == kind]
    assert {one.type_key for one in found} == {key}
    assert "main" in {branch for one in found for branch in one.branches}
    assert all(one.commits for one in found)


@pytest.mark.slow
def test_a_swapped_file_is_found(patient: Patient) -> None:
    one, other = patient.data_file("edge:Knows"), patient.data_file("edge:LivesIn")
    one_bytes, other_bytes = one.read_bytes(), other.read_bytes()
    one.write_bytes(other_bytes)
    other.write_bytes(one_bytes)
    report = og.verify(patient.root, deep=True)
    found = {one.path for one in report.damage if one.kind in {"checksum", "file_size"}}
    assert found == {path.relative_to(patient.root).as_posix() for path in (one, other)}


# -- the manifest ------------------------------------------------------------------------


def cut_refs(patient: Patient) -> None:
    cut(max((patient.root / "__refs").iterdir()))


def flip_refs(patient: Patient) -> None:
    """One digit of the id of a branch."""
    flip_text(max((patient.root / "__refs").iterdir()), patient.branch_id("dev")[-5:].encode())


def spoil_refs(patient: Patient) -> None:
    """What is no text any more."""
    newest = max((patient.root / "__refs").iterdir())
    newest.write_bytes(newest.read_bytes().replace(b"dev", b"d\xffv"))


def spoil_log(patient: Patient) -> None:
    """The version of a manifest names a type of values that there is not."""
    newest = min((patient.manifest("dev") / "_versions").glob("*.manifest"))
    flip_text(newest, b"string")


def misname(patient: Patient) -> None:
    """Let the name of a branch lead to main's manifest."""
    newest = max((patient.root / "__refs").iterdir())
    stored = json.loads(newest.read_bytes())
    stored["names"]["dev"][0] = "main"
    del stored["checksum"]
    newest.write_bytes(json.dumps(stored).encode())


def cut_ancestry(patient: Patient) -> None:
    lost = patient.graph.commits.list()[2].id
    patient.rewrite_head(lambda row: None if row["object_id"] == lost else row)


def lose_oldest(patient: Patient) -> None:
    def changed(row: dict[str, Any]) -> dict[str, Any]:
        if row["object_type"] != "graph_head":
            return row
        known = json.loads(row["metadata"]) | {"oldest_retained_commit_id": "01" + "A" * 24}
        return row | {"metadata": json.dumps(known)}

    patient.rewrite_head(changed)


def spoil_schema(patient: Patient) -> None:
    def changed(row: dict[str, Any]) -> dict[str, Any]:
        if row["object_type"] != "schema":
            return row
        known = json.loads(row["metadata"]) | {"schema_ir_hash": "0" * 64}
        return row | {"metadata": json.dumps(known)}

    patient.rewrite_head(changed)


def lose_commit(patient: Patient) -> None:
    stored = patient.graph.commits.list()[1].stored
    name = f"{2**64 - 1 - stored.version:020}.manifest"
    (patient.root / "__manifest" / stored.branch_id / "_versions" / name).unlink()


def miscount(patient: Patient) -> None:
    """Publish another number of rows than there are."""

    def changed(row: dict[str, Any]) -> dict[str, Any]:
        is_it = row["object_type"] == "table_version" and row["row_count"] == 39
        return row | {"row_count": 41} if is_it else row

    patient.rewrite_head(changed)


MANIFEST: dict[str, tuple[Plant, str, tuple[str, ...]]] = {
    "a manifest is missing": (
        lambda p: remove(p.manifest_data("dev")),
        "branch_unreadable",
        ("main",),
    ),
    "a manifest is cut": (lambda p: cut(p.manifest_data("dev")), "branch_unreadable", ("main",)),
    "the manifest of main is cut": (
        lambda p: cut(p.manifest_data()),
        "branch_unreadable",
        ("dev",),
    ),
    "the versions of a manifest are gone": (
        lambda p: remove(*(p.manifest("dev") / "_versions").iterdir()),
        "branch_unreadable",
        ("main",),
    ),
    "a version of a manifest is flipped": (spoil_log, "branch_unreadable", ("main",)),
    "a bit of the manifest is flipped": (
        lambda p: flip(p.manifest_data("dev"), 0.3),
        "checksum",
        ("main",),
    ),
    "a bit of the names is flipped": (flip_refs, "names_unreadable", ("main", "dev")),
    "the names are no text": (spoil_refs, "names_unreadable", ("main", "dev")),
    "the names are cut": (cut_refs, "names_unreadable", ("main", "dev")),
    "a name leads elsewhere": (misname, "branch_misnamed", ()),
    "the ancestry is cut": (cut_ancestry, "ancestry_cut", ("dev",)),
    "the oldest commit is unknown": (lose_oldest, "ancestry_cut", ("dev",)),
    "the schema does not fit": (spoil_schema, "schema_unreadable", ("dev",)),
    "a kept commit is gone": (lose_commit, "commit_lost", ()),
    "a wrong number of rows": (miscount, "row_count", ("dev",)),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", MANIFEST)
def test_damage_of_a_manifest_hides_no_other_branch(patient: Patient, what: str) -> None:
    plant, kind, whole = MANIFEST[what]
    plant(patient)
    report = og.verify(patient.root)
    assert kind in kinds(report), report.findings
    assert set(report.whole_branches) >= set(whole), report.findings
    assert not report.is_sound


# -- rows --------------------------------------------------------------------------------


def person(name: str, **values: Any) -> pa.Table:
    columns = {"@id": pa.array([values.pop("id", name)]), "name": pa.array([name])}
    columns["age"] = pa.array([values.pop("age", 5)], pa.int32())
    return pa.table(columns | {key: pa.array([value]) for key, value in values.items()})


def edge(id_: str, source: str, target: str) -> pa.Table:
    return pa.table({"@id": [id_], "@src": [source], "@dst": [target]})


ROWS: dict[str, tuple[str, pa.Table, str, str | None, str]] = {
    "a key that is there twice": ("node:Person", person("p01"), "duplicate_id", "unique", "p01"),
    "an id that no key gives": (
        "node:Person",
        person("anna", id="otto"),
        "id_not_derived",
        None,
        "otto",
    ),
    "a number out of range": ("node:Person", person("old", age=200), "rule_broken", "range", "old"),
    "a missing value": ("node:Person", person("none", age=None), "rule_broken", "required", "none"),
    "no word of an enum": (
        "node:Person",
        person("odd", mood="blue"),
        "rule_broken",
        "enum",
        "odd",
    ),
    "a value held twice": (
        "node:Person",
        person("twin", mail="p02@example.com"),
        "rule_broken",
        "unique",
        "p02",
    ),
    "an edge from nowhere": (
        "edge:Knows",
        edge("x", "gone", "p01"),
        "end_missing",
        "endpoint",
        "x",
    ),
    "an edge to nowhere": ("edge:Knows", edge("y", "p01", "gone"), "end_missing", "endpoint", "y"),
    "too many edges": (
        "edge:LivesIn",
        edge("z", "p01", "Bergen"),
        "rule_broken",
        "cardinality",
        "p01",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("what", ROWS)
def test_a_row_that_nobody_checked_is_named(patient: Patient, what: str) -> None:
    key, rows, kind, rule, entity = ROWS[what]
    patient.publish_rows(key, rows)
    report = og.verify(patient.root)
    found = only(report, kind)
    assert (found.type_key, found.rule) == (key, rule)
    assert entity in found.entities
    assert found.branches == ("main",)
    assert found.commits == (patient.graph.commits.list()[0].id,)
    assert report.whole_branches == ("dev",)


@pytest.mark.slow
def test_two_rows_with_one_row_id_are_named(patient: Patient) -> None:
    dataset = patient.dataset("node:City")
    row = pa.table({"@id": ["Paris"], "title": ["Paris"]}, schema=dataset.schema)
    (staged,) = write_fragments(row, dataset, mode="append", data_storage_version="2.2")
    taken = dataset.to_table(with_row_id=True).column("_rowid")[0].as_py()
    meta = RowIdSequence([taken]).to_inline_metadata()
    patient.publish(
        "node:City", LanceOperation.Append([dataclasses.replace(staged, row_id_meta=meta)]), 4
    )
    found = only(og.verify(patient.root), "duplicate_row_id")
    assert "Paris" in found.entities


@pytest.mark.slow
def test_an_index_that_finds_other_rows_is_named(patient: Patient) -> None:
    dataset = patient.dataset("node:City")
    index = next(one for one in dataset.describe_indices() if one.field_names == ["title"])
    other = patient.dataset("node:Person").describe_indices()
    names = next(one for one in other if one.field_names == ["name"] and one.index_type == "BTree")
    here = patient.table("node:City") / "_indices" / str(index.segments[0].uuid)
    there = patient.table() / "_indices" / str(names.segments[0].uuid)
    for path in there.glob("*.*"):
        shutil.copy(path, here / path.name)
    report = og.verify(patient.root)
    assert kinds(report) <= {"index_size", "index_disagrees", "index_unreadable"}
    assert {one.type_key for one in report.damage} == {"node:City"}


# -- what is no damage -------------------------------------------------------------------


@pytest.mark.slow
def test_notes_are_no_damage(patient: Patient) -> None:
    (patient.root / "_schema.pg").write_text("node A { name: String @key }")
    recovery = patient.root / "__recovery"
    recovery.mkdir(exist_ok=True)
    (recovery / "notes.json").write_text("mine")
    lance.write_dataset(patient.dataset().to_table(), str(patient.table()), mode="append")
    report = og.verify(patient.root)
    assert report.is_sound
    assert {one.kind for one in report.findings} == {
        "copy_lags",
        "intent_unreadable",
        "foreign_drift",
    }
    assert report.whole_branches == ("main", "dev")


def test_one_branch_alone(patient: Patient) -> None:
    remove(patient.data_file(branch="main", key="node:City", at=-1))
    assert [one.branch for one in og.verify(patient.root, branch="dev").branches] == ["dev"]
    assert og.verify(patient.root, branch="dev").is_sound
    with pytest.raises(BranchNotFound):
        og.verify(patient.root, branch="nowhere")


def test_no_graph(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        og.verify(tmp_path)


# -- repair ------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_damaged_index_is_built_anew(patient: Patient) -> None:
    remove(patient.index_files()[0])
    preview = og.repair(patient.root)
    assert not og.verify(patient.root).is_sound
    assert {one.type_key for one in preview.datasets if one.action == "rebuild_indexes"} == {
        "node:Person"
    }
    done = og.repair(patient.root, confirm=True)
    assert done.is_whole
    heads = [one.head_commit_id for one in og.verify(patient.root).branches]
    assert not [one for one in og.verify(patient.root).damage if {*heads} & {*one.commits}], (
        "the newest commits have indexes that work"
    )
    graph = og.open(patient.root)
    assert graph.query(
        'query q() { match { $p: Person { name: "p07" } } return { $p.age as age } }'
    ).rows == [{"age": 7}]


@pytest.mark.slow
def test_the_newest_whole_commit_is_kept_as_a_branch(patient: Patient) -> None:
    before = patient.graph.commits.list()[1].id
    remove(patient.data_file("node:City", at=-1))
    preview = og.repair(patient.root)
    (lost,) = preview.rescues
    assert (lost.branch, lost.commit_id, lost.kept_as) == ("main", before, None)
    files = {path for path in patient.root.rglob("*") if path.is_file()}
    done = og.repair(patient.root, confirm=True, keep_as="saved")
    assert done.rescues[0].kept_as == "saved"
    assert files <= {path for path in patient.root.rglob("*") if path.is_file()}
    report = og.verify(patient.root)
    assert set(report.whole_branches) == {"dev", "saved"}
    graph = og.open(patient.root)
    assert graph.commits.list("saved")[0].id == before
    graph.mutate('query a() { insert City { title: "Bodø" } }', branch="saved")


@pytest.mark.slow
@pytest.mark.parametrize(
    "plant",
    [
        lambda p: cut(min((p.manifest() / "_versions").glob("*.manifest")), 0),
        lambda p: cut(min((p.manifest() / "_versions").glob("*.manifest"))),
        lambda p: remove(p.manifest_data()),
    ],
    ids=["an empty version", "a cut version", "no rows"],
)
def test_what_is_left_of_main_is_kept_as_a_branch(
    patient: Patient, plant: Callable[[Patient], None]
) -> None:
    before = patient.graph.commits.list()[1].id
    plant(patient)
    report = og.verify(patient.root)
    assert kinds(report) == {"branch_unreadable"}
    (verdict,) = (one for one in report.branches if one.branch == "main")
    assert (verdict.head_commit_id, verdict.newest_whole_commit_id) == (None, before)
    done = og.repair(patient.root, confirm=True, keep_as="saved")
    assert [(one.branch, one.commit_id, one.kept_as) for one in done.rescues] == [
        ("main", before, "saved")
    ]
    assert set(og.verify(patient.root).whole_branches) == {"dev", "saved"}
    graph = og.open(patient.root)
    assert "main" in graph.notices[0]
    assert graph.commits.list("saved")[0].id == before
    graph.mutate('query a() { insert City { title: "Bodø" } }', branch="saved")
    count = "query q() { match { $c: City } return { count($c) as n } }"
    assert graph.query(count, branch="saved").rows == [{"n": 3}]
    assert graph.query(count, branch="dev").rows == [{"n": 2}]
    with pytest.raises(StorageError):
        graph.query(count)


@pytest.mark.slow
def test_what_is_left_of_another_branch_is_kept_too(patient: Patient) -> None:
    patient.graph = og.open(patient.root)
    patient.graph.mutate('query a() { insert City { title: "Bodø" } }', branch="dev")
    before = patient.graph.commits.list("dev")[1].id
    remove(patient.manifest_data("dev"))
    og.repair(patient.root, confirm=True, keep_as="saved")
    graph = og.open(patient.root)
    assert graph.notices == []
    assert graph.commits.list("saved")[0].id == before


def test_a_graph_that_has_lost_its_only_branch_says_so(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph.omni", "node Ship { name: String @key }")
    graph.mutate('query a() { insert Ship { name: "Fram" } }')
    newest = max(
        (tmp_path / "graph.omni/__manifest/main/data").iterdir(), key=lambda p: p.stat().st_mtime_ns
    )
    newest.unlink()
    with pytest.raises(StorageError, match="omnigraph repair"):
        og.open(tmp_path / "graph.omni")
    og.repair(tmp_path / "graph.omni", confirm=True, keep_as="saved")
    graph = og.open(tmp_path / "graph.omni")
    graph.mutate('query a() { insert Ship { name: "Fram" } }', branch="saved")


def test_what_an_init_that_died_has_left_is_no_graph(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "graph.omni", "node Ship { name: String @key }")
    shutil.rmtree(tmp_path / "graph.omni/__manifest/main/_versions")
    with pytest.raises(NotFound, match="no graph"):
        og.open(str(graph.location))
    with pytest.raises(NotFound, match="no graph"):
        og.open(tmp_path / "elsewhere")


def test_copies_are_rewritten(patient: Patient) -> None:
    (patient.root / "_schema.pg").write_text("mine")
    assert og.repair(patient.root).repaired == ("rewrite _schema.pg from the manifest",)
    assert (patient.root / "_schema.pg").read_text() == "mine"
    og.repair(patient.root, confirm=True)
    assert (patient.root / "_schema.pg").read_text() == patient.graph.schema
    with pytest.raises(BadRequest):
        og.repair(patient.root, keep_as="saved")


@pytest.mark.slow
def test_a_graph_on_s3(s3_bucket: str) -> None:
    graph = og.init(f"{s3_bucket}/harbour", SCHEMA)
    graph.load(list(people()), mode="append")
    graph.mutate('query a() { delete Person where name = "p39" }')
    graph.branches.create("dev")
    graph.mutate('query a() { insert City { title: "Tromsø" } }')
    assert graph.optimize().commit_id is not None
    report = og.verify(str(graph.location), deep=True)
    assert report.findings == ()
    assert report.looked.checksums > 4
    before = graph.commits.list()[1].id
    (fragment,) = graph.table("City").get_fragments()
    place = graph.location.join(graph.snapshot().tables["node:City"].table.path)
    ControlObjects(place).delete(f"data/{fragment.metadata.files[0].path}")
    found = only(og.verify(str(graph.location)), "file_missing")
    assert (found.type_key, found.branches) == ("node:City", ("main",))
    done = og.repair(str(graph.location), confirm=True, keep_as="saved")
    assert [(one.commit_id, one.kept_as) for one in done.rescues] == [(before, "saved")]
    assert set(og.verify(str(graph.location), deep=True).whole_branches) == {"dev", "saved"}
