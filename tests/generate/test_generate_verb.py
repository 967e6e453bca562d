"""`omnigraph generate`: its options, and what it prints."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omnigraph.cli.main import main


def test_for_people(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "people"
    assert main(["generate", "--out", str(out), "--people", "40", "--files", "2"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    first, columns, _, *rows = printed.out.splitlines()
    size = sum(path.stat().st_size for path in out.glob("data/*"))
    assert first == f"generated {out} with seed 0: 514 rows, {size} bytes"
    assert columns.split(" | ") == ["type    ", "rows", "files", "bytes"]
    assert [row.split()[:5:2] for row in rows[:2]] == [["Person", "40", "2"], ["Company", "1", "1"]]
    assert len(rows) == 7


def test_twice_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for name in ("a", "b"):
        out = str(tmp_path / name)
        main(["generate", "--out", out, "--people", "30", "--seed", "9", "--dirty", "0.1"])
        printed.append(capsys.readouterr().out.replace(out, "OUT"))
    assert printed[0] == printed[1]
    assert "broken rows planted: " in printed[0]
    for path in sorted((tmp_path / "a").rglob("*")):
        if path.is_file():
            other = tmp_path / "b" / path.relative_to(tmp_path / "a")
            assert path.read_bytes() == other.read_bytes()


def test_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "people"
    options = ["--people", "40", "--edges", "300", "--format", "csv", "--zstd", "--dirty", "0.05"]
    assert main(["generate", "--out", str(out), *options, "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert {**body, "types": None, "total_bytes": None, "planted": None} == {
        "out": str(out),
        "schema": str(out / "schema.pg"),
        "seed": 0,
        "types": None,
        "total_rows": 351,
        "total_bytes": None,
        "planted": None,
    }
    assert [type_["name"] for type_ in body["types"]] == [
        *("Person", "Company", "Document", "Knows", "WorksAt", "Wrote", "Mentions")
    ]
    person = body["types"][0]
    path = out / "Person" / "part-0000.csv.zst"
    assert person == {
        "name": "Person",
        "rows": 40,
        "planted": 2,
        "files": [str(path)],
        "bytes": path.stat().st_size,
    }
    assert sum(body["planted"].values()) == sum(type_["planted"] for type_ in body["types"])


def test_embeddings(tmp_path: Path) -> None:
    assert main(["generate", "--out", str(tmp_path), "--people", "4", "--embeddings"]) == 0
    text = (tmp_path / "schema.pg").read_text(encoding="utf-8")
    assert '    embedding: Vector(64) @embed("title")\n' in text


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--gzip", "--zstd"], 2, "choose one"),
        (["--gzip", "--format", "parquet"], 1, "compressed already"),
        (["--people", "10", "--edges", "1"], 1, "at least so many"),
        (["--dirty", "2"], 2, "--dirty"),
        (["--files", "0"], 2, "--files"),
    ],
)
def test_mistakes(
    options: list[str],
    code: int,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["generate", "--out", str(tmp_path / "out"), *options]) == code
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
