"""What a query prints as CSV, loaded as a file, is the same rows again: of every type."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.cli.main import main
from omnigraph.cli.render.formats import render
from omnigraph.wire.results import ReadOutput
from tests.pipeline.engines import run_tasks_here
from tests.profile import costly, dear

WORDS = [
    *("", " ", "  a ", "\t", "null", "NULL", "Null", "NA", "N/A", "nan", "NaN", "None", "#N/A"),
    *('"', '""', '"a"', ",", "a,b", "\n", "\r", "a\r\nb", "\n\n", '",\n"', "'", "\\", "\\N"),
    *("true", "1", "-0", "[]", "[1]", "{}", "=1+1", "\ufeff", "\u2028", "é", "e\u0301", "🐢"),
    *("\x00", "\x1b[31mred\x1b[0m", "base64:", "2020-01-01", "0x10", "#comment"),
]
FIRST, LAST = datetime(1, 1, 1), datetime(9999, 12, 31, 23, 59, 59, 999000)  # noqa: DTZ001 - drawn without


def dates() -> st.SearchStrategy[str]:
    return st.dates(date(1, 1, 1), date(9999, 12, 31)).map(date.isoformat)


def moments() -> st.SearchStrategy[str]:
    return st.datetimes(FIRST, LAST, timezones=st.just(UTC)).map(
        lambda at: (
            at.replace(microsecond=at.microsecond // 1000 * 1000)
            .isoformat(timespec="milliseconds")
            .replace("+00:00", "Z")
        )
    )


def integers(low: int, high: int) -> st.SearchStrategy[int]:
    return st.integers(low, high) | st.sampled_from([low, high, 0])


def floats(width: int) -> st.SearchStrategy[float]:
    return st.floats(width=width, allow_nan=False, allow_infinity=False)  # type: ignore[arg-type]


TEXTS = st.sampled_from(WORDS) | st.text(st.characters(codec="utf-8"), max_size=8)
VALUES: dict[str, tuple[str, st.SearchStrategy[Any]]] = {
    "text": ("String?", TEXTS),
    "kind": ("enum(left, right)?", st.sampled_from(["left", "right"])),
    "yes": ("Bool?", st.booleans()),
    "i32": ("I32?", integers(-(2**31), 2**31 - 1)),
    "i64": ("I64?", integers(-(2**63), 2**63 - 1)),
    "u32": ("U32?", integers(0, 2**32 - 1)),
    "u64": ("U64?", integers(0, 2**64 - 1)),
    "f32": ("F32?", floats(32)),
    "f64": ("F64?", floats(64)),
    "day": ("Date?", dates()),
    "moment": ("DateTime?", moments()),
    "vector": ("Vector(2)?", st.lists(floats(32), min_size=2, max_size=2)),
}
VALUES |= {
    f"{name}_list": (f"[{kind.removesuffix('?')}]?", st.lists(values, max_size=3))
    for name, (kind, values) in VALUES.items()
    if name not in ("kind", "vector")
}
PROPERTIES = "\n".join(f"    {name}: {kind}" for name, (kind, _) in VALUES.items())
SINGLES = "\n".join(f"node One_{name} {{ {name}: {kind} }}" for name, (kind, _) in VALUES.items())
SCHEMA = f"node All {{\n    key: String @key\n{PROPERTIES}\n}}\n{SINGLES}\n"


@pytest.fixture(scope="module")
def graphs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[og.Graph, og.Graph, Path]]:
    """A graph to print from, one to load into, and a directory for the file between them."""
    place = tmp_path_factory.mktemp("csv")
    with pytest.MonkeyPatch.context() as patch:
        run_tasks_here(patch)
        yield og.init(place / "from", SCHEMA), og.init(place / "to", SCHEMA), place


def printed(graph: og.Graph, type_name: str, names: list[str]) -> tuple[str, list[dict[str, Any]]]:
    columns = ", ".join(f"$x.{name} as {name}" for name in names)
    result = graph.query(f"query q() {{ match {{ $x: {type_name} }} return {{ {columns} }} }}")
    return "".join(piece + "\n" for piece in render(ReadOutput.of(result), "csv")), result.rows


def same_again(
    graphs: tuple[og.Graph, og.Graph, Path], type_name: str, rows: list[Mapping[str, Any]]
) -> None:
    source, copy, place = graphs
    names = list(rows[0])
    records = [{"type": type_name, "data": row} for row in rows]
    source.load(records, mode="overwrite", engine="inline")
    text, before = printed(source, type_name, names)
    path = place / f"{type_name}.csv"
    path.write_text(text, newline="")
    copy.load(path, mode="overwrite")
    _, after = printed(copy, type_name, names)

    def spelled(row: Mapping[str, Any]) -> str:
        return json.dumps(row, sort_keys=True)

    assert sorted(map(spelled, after)) == sorted(map(spelled, before))
    assert len(before) == len(rows)


ROWS = st.lists(
    st.fixed_dictionaries(
        {"key": TEXTS, **{name: st.none() | values for name, (_, values) in VALUES.items()}}
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda row: row["key"],
)


@pytest.mark.slow
@dear
@given(rows=ROWS)
def test_rows_with_all_types(
    graphs: tuple[og.Graph, og.Graph, Path], rows: list[Mapping[str, Any]]
) -> None:
    same_again(graphs, "All", rows)


@pytest.mark.slow
@costly
@given(name=st.sampled_from(list(VALUES)), data=st.data())
def test_one_column(
    graphs: tuple[og.Graph, og.Graph, Path], name: str, data: st.DataObject
) -> None:
    drawn = data.draw(st.lists(st.none() | VALUES[name][1], min_size=1, max_size=12))
    same_again(graphs, f"One_{name}", [{name: value} for value in drawn])


def test_every_word_by_itself(graphs: tuple[og.Graph, og.Graph, Path]) -> None:
    same_again(graphs, "All", [{"key": word, "text": word} for word in WORDS])
    same_again(graphs, "One_text", [{"text": word} for word in (*WORDS, None)])
    same_again(graphs, "One_text", [{"text": "\ufeffa"}, {"text": None}, {"text": None}])


def test_the_command_prints_every_character(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    graph = og.init(tmp_path / "graph", "node One_text { text: String? }")
    graph.load(
        [{"type": "One_text", "data": {"text": word}} for word in (*WORDS, None)], mode="append"
    )
    text, _ = printed(graph, "One_text", ["text"])
    query = "query q() { match { $x: One_text } return { $x.text as text } }"
    store = ["--store", str(tmp_path / "graph")]
    assert main(["query", *store, "-e", query, "--format", "csv"]) == 0
    assert capfdbinary.readouterr().out.decode() == text
