"""Inputs: which files a path, a directory, a pattern or a mapping stands for."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.errors import BadRequest, StorageError
from omnigraph.pipeline.input.load_files import InputFile, find_inputs

TYPES = ("Person", "Film", "ActedIn")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A directory with something of everything."""
    for name in (
        "b.jsonl",
        "a/x.ndjson.gz",
        "a/y.jsonl.zst",
        "nodes/Person/part-0001.snappy.parquet",
        "nodes/Person/part-0000.snappy.parquet",
        "nodes/Person/_SUCCESS",
        "nodes/Person/.part-0000.crc",
        "nodes/_temporary/0/part-7.parquet",
        "Film.csv",
        "actedin.2024.csv.gz",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"content")
    return tmp_path


def names(files: list[InputFile], root: Path | str) -> list[str]:
    return [file.uri.removeprefix(f"{root}/") for file in files]


def refused(data: Any, told: str, types: tuple[str, ...] = TYPES) -> None:
    with pytest.raises(BadRequest, match=told):
        find_inputs(data, types)


def test_a_directory_is_read_with_all_below_it(lake: Path) -> None:
    files = find_inputs(lake, TYPES)
    assert [
        (file.uri.removeprefix(f"{lake}/"), file.format, file.compression, file.type_name)
        for file in files
    ] == [
        ("Film.csv", "csv", None, "Film"),
        ("a/x.ndjson.gz", "jsonl", "gzip", None),
        ("a/y.jsonl.zst", "jsonl", "zstd", None),
        ("actedin.2024.csv.gz", "csv", "gzip", "ActedIn"),
        ("b.jsonl", "jsonl", None, None),
        ("nodes/Person/part-0000.snappy.parquet", "parquet", None, "Person"),
        ("nodes/Person/part-0001.snappy.parquet", "parquet", None, "Person"),
    ]
    assert {file.size for file in files} == {7}
    assert pickle.loads(pickle.dumps(files)) == files  # noqa: S301 - our own


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.jsonl", ["b.jsonl"]),
        ("a", ["a/x.ndjson.gz", "a/y.jsonl.zst"]),
        ("a/", ["a/x.ndjson.gz", "a/y.jsonl.zst"]),
        ("a/?.*", ["a/x.ndjson.gz", "a/y.jsonl.zst"]),
        ("[ab]", ["a/x.ndjson.gz", "a/y.jsonl.zst"]),
        ("**/*.jsonl*", ["a/y.jsonl.zst", "b.jsonl"]),
        (
            "*/Person",
            [
                "nodes/Person/part-0000.snappy.parquet",
                "nodes/Person/part-0001.snappy.parquet",
            ],
        ),
        ("**/Person/*1*", ["nodes/Person/part-0001.snappy.parquet"]),
        ("nodes/*/part-0000*", ["nodes/Person/part-0000.snappy.parquet"]),
        ("a/../b.jsonl", ["b.jsonl"]),
    ],
)
def test_patterns(lake: Path, pattern: str, found: list[str]) -> None:
    assert names(find_inputs(f"{lake}/{pattern}", TYPES), lake) == found
    assert names(find_inputs(f"file://{lake}/{pattern.replace('?', '%3F')}", TYPES), lake) == found


def test_paths_are_relative_to_where_one_is(lake: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lake)
    monkeypatch.setenv("HOME", str(lake))
    assert names(find_inputs(["b.jsonl", Path("a"), "~/Film.csv"], TYPES), lake) == [
        "b.jsonl",
        "a/x.ndjson.gz",
        "a/y.jsonl.zst",
        "Film.csv",
    ]


def test_a_name_with_the_signs_of_a_pattern_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a[1].jsonl").write_bytes(b"")
    (tmp_path / "_b.jsonl").write_bytes(b"")
    assert names(find_inputs(tmp_path / "a[1].jsonl", ()), tmp_path) == ["a[1].jsonl"]
    # Hidden only from those who did not ask for it.
    assert names(find_inputs(tmp_path / "_b.jsonl", ()), tmp_path) == ["_b.jsonl"]
    assert names(find_inputs(tmp_path / "_*.jsonl", ()), tmp_path) == ["_b.jsonl"]
    assert names(find_inputs(tmp_path / "*.jsonl", ()), tmp_path) == ["a[1].jsonl"]


def test_files_by_type(lake: Path) -> None:
    given = {
        "person": [lake / "nodes" / "Person" / "part-0001.snappy.parquet"],
        "Film": lake / "actedin.2024.csv.gz",
    }
    assert [(file.type_name, file.format) for file in find_inputs(given, TYPES)] == [
        ("Person", "parquet"),
        ("Film", "csv"),
    ]
    refused({"Persn": lake}, "no type 'Persn' for these files; did you mean `Person`?")
    (rows,) = find_inputs({"Person": lake / "b.jsonl"}, TYPES)
    assert (rows.type_name, rows.format) == ("Person", "jsonl")
    refused({"Person": 7}, "cannot load int from files")
    refused({"Person": pa.table({"id": ["a"]})}, "cannot load Table from files")
    refused({7: lake}, "named by their type, found the name 7")


@pytest.mark.parametrize(
    ("path", "type_name"),
    [
        ("Person/part-0.parquet", "Person"),
        ("Person/2024/part-0.parquet", "Person"),
        ("Film/Person/part-0.csv", "Person"),
        ("x/Person.csv", "Person"),
        ("PERSON.csv", "Person"),
        ("acted_in/ACTEDIN/p.csv", "ActedIn"),
        ("Person/Film.csv", "Person"),
    ],
)
def test_the_type_of_a_table(tmp_path: Path, path: str, type_name: str) -> None:
    place = tmp_path / "in" / path
    place.parent.mkdir(parents=True)
    place.write_bytes(b"")
    (file,) = find_inputs(tmp_path / "in", TYPES)
    assert file.type_name == type_name


def test_exact_names_come_first(tmp_path: Path) -> None:
    (tmp_path / "likes.csv").write_bytes(b"")
    assert find_inputs(tmp_path, ("Likes", "likes", "LIKES"))[0].type_name == "likes"
    refused(tmp_path, "cannot tell the type", ("Likes", "LIKES"))


def test_a_table_of_no_known_type(tmp_path: Path) -> None:
    (tmp_path / "Persons.csv").write_bytes(b"")
    refused(
        tmp_path,
        r"type of the rows of .*Persons\.csv: .*Person/part-0\.csv.*did you mean `Person`",
    )


def test_columns_in_directories_are_refused(tmp_path: Path) -> None:
    place = tmp_path / "Person" / "country=DE"
    place.mkdir(parents=True)
    (place / "part-0.parquet").write_bytes(b"")
    for given in (tmp_path, {"Person": tmp_path / "Person"}):
        refused(given, "'country=DE' is a column kept in the name of a directory")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("notes.txt", r"notes\.txt: the name of an input file ends in .*\.parquet$"),
        ("rows.json", r"rows\.json: .*; name it \.jsonl if each line is one JSON object"),
        ("rows.parquet.gz", r"rows\.parquet\.gz: the name"),
        ("rows.jsonl.bz2", r"rows\.jsonl\.bz2: the name"),
        ("jsonl", "jsonl: the name"),
        ("gz.gz", "gz: the name"),
    ],
)
def test_foreign_files_are_refused(tmp_path: Path, name: str, told: str) -> None:
    (tmp_path / "good.jsonl").write_bytes(b"")
    (tmp_path / name).write_bytes(b"")
    refused(tmp_path, told)
    refused(tmp_path / name, told)
    refused(f"{tmp_path}/*", told)


def test_nothing_to_load(tmp_path: Path) -> None:
    (tmp_path / "empty" / "deep").mkdir(parents=True)
    (tmp_path / "empty" / "_SUCCESS").write_bytes(b"")
    refused(tmp_path / "empty", r"no file to load in the directory .*empty: the name")
    refused(tmp_path / "gone.jsonl", r"gone\.jsonl: there is no such file or directory")
    refused(f"{tmp_path}/*.jsonl", r"no file matches .*\*\.jsonl")
    refused(f"{tmp_path}/nowhere/*/x.jsonl", "no file matches")
    refused([], "nothing to load")
    refused({}, "nothing to load")


def test_what_is_no_path(tmp_path: Path) -> None:
    refused('{"type": "Person"}\n', "this is data and not a path")
    refused(b"x.jsonl", "cannot load bytes")
    refused([tmp_path, 3], "a list of paths, then int")
    refused("", "it is empty")
    refused("http://host/x.jsonl", "http:// is not supported")
    refused("s3:///x.jsonl", "the bucket is missing")


def test_a_file_given_twice_is_refused(lake: Path) -> None:
    refused([lake / "b.jsonl", f"{lake}/*.jsonl"], r"b\.jsonl is given twice")


def test_links(tmp_path: Path) -> None:
    inside = tmp_path / "in"
    (inside / "deep").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "x.jsonl").write_bytes(b"")
    (inside / "linked").symlink_to(tmp_path / "elsewhere")
    (inside / "deep" / "up").symlink_to(inside)
    assert names(find_inputs(inside, ()), inside) == ["linked/x.jsonl"]
    (inside / "dangling.jsonl").symlink_to(tmp_path / "nowhere")
    refused(inside, r"dangling\.jsonl: it is a link to something that does not exist")


def test_what_is_no_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    refused(tmp_path / "pipe.jsonl", "it is no regular file; write the data to one")


@pytest.mark.slow
def test_files_of_an_object_store(s3_bucket: str) -> None:
    import obstore

    from omnigraph.pipeline.input.input_files import _store

    bucket, prefix = s3_bucket.removeprefix("s3://").split("/")
    store = _store(bucket)
    for name in (
        "in/b.jsonl",
        "in/nodes/Person/part-0.parquet",
        "in/nodes/Person/_SUCCESS",
        "in/nodes/_temporary/part-1.parquet",
        "in/a b+ü%20#.jsonl.gz",
        "in-between/c.jsonl",
    ):
        obstore.put(store, f"{prefix}/{name}", b"content")
    obstore.put(store, f"{prefix}/in/nodes_$folder$", b"")

    found = find_inputs(f"{s3_bucket}/in", TYPES)
    root = f"{s3_bucket}/in"
    assert names(found, root) == [
        "a b+ü%20#.jsonl.gz",
        "b.jsonl",
        "nodes/Person/part-0.parquet",
    ]
    assert all(file.version for file in found)
    assert found[2].type_name == "Person"
    assert names(find_inputs(f"{root}/*.jsonl", TYPES), root) == ["b.jsonl"]
    assert names(find_inputs(f"{root}/?.jsonl", TYPES), root) == ["b.jsonl"]
    assert names(find_inputs(f"{root}/*/Person/*", TYPES), root) == ["nodes/Person/part-0.parquet"]
    assert names(find_inputs(f"{root}/**/*.parquet", TYPES), root) == [
        "nodes/Person/part-0.parquet"
    ]
    assert names(find_inputs(f"{root}//b.jsonl", TYPES), root) == ["b.jsonl"]
    refused(f"{s3_bucket}/nothing", "there is no such file or directory")
    refused(f"{s3_bucket}/*.csv", "no file matches")
    with pytest.raises(StorageError, match="no-such-bucket") as told:
        find_inputs("s3://no-such-bucket/in", TYPES)
    assert told.value.kind == "configuration"
