"""Segments on versions they were not built on: whatever happened in between, answers are right."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lance.query import MatchQuery

from omnigraph.lang.structural import ID
from omnigraph.storage.indexes import table_indexes
from omnigraph.storage.indexes.build import BuiltIndex, IndexKind, build_index, commit_indexes
from omnigraph.storage.objects.location import Location
from omnigraph.storage.tables import write_rows
from omnigraph.storage.tables.fragments import layout_of
from omnigraph.storage.tables.table import ROW_ADDRESS, ROW_ID, Table, create_table
from tests import profile, table_indexing, table_writes
from tests.maintain.indexing import ids, nearest, truly_nearest
from tests.storage.sample import validate

pytestmark = pytest.mark.slow

SCHEMA = pa.schema(
    [
        (ID, pa.string()),
        ("number", pa.int64()),
        ("words", pa.string()),
        ("text", pa.string()),
        ("like", pa.list_(pa.float32(), 4)),
    ]
)
KINDS: list[tuple[str, IndexKind]] = [
    (ID, "BTREE"),
    ("number", "BTREE"),
    ("words", "INVERTED"),
    ("text", "NGRAM"),
    ("like", "IVF_FLAT"),
]
VALUES = 10


def some_rows(names: list[str], rng: random.Random) -> pa.Table:
    count = len(names)
    vectors = [[rng.uniform(-5, 5) for _ in range(4)] for _ in range(count)]
    return pa.table(
        {
            ID: names,
            "number": [rng.randrange(VALUES) for _ in range(count)],
            "words": [f"word{rng.randrange(VALUES)} common" for _ in range(count)],
            "text": [f"abc{rng.randrange(VALUES)}def" for _ in range(count)],
            "like": [None if rng.random() < 0.1 else vector for vector in vectors],
        },
        schema=SCHEMA,
    )


def changed(table: Table, rng: random.Random, fresh: str) -> Table:
    """The table after any one change."""
    deed = rng.choice(["insert", "update", "update", "delete", "mixed", "compact"])
    news = some_rows([f"{fresh}-{at}" for at in range(2)], rng)
    if deed == "insert":
        return table.at(table_writes.insert(table, news))
    if deed == "compact":
        return table.at(table_indexes.compact(table))
    rows = table.scan(with_row_id=True, with_row_address=True)
    rows = rows.take(sorted(rng.sample(range(rows.num_rows), 3)))
    if deed == "delete":
        return table.at(write_rows.delete_addresses(table, rows.column(ROW_ADDRESS)))
    updated = some_rows(rows.column(ID).to_pylist(), rng)
    for name in (ROW_ID, ROW_ADDRESS):
        updated = updated.append_column(name, rows.column(name))
    inserted = news if deed == "mixed" else None
    return table.at(table_writes.update_rows(table, updated, inserted=inserted))


def built(table: Table, rng: random.Random) -> list[BuiltIndex]:
    """Segments of every kind: whole ones, or beside what there is."""
    known = {one.column: one for one in table_indexes.indexes_of(table)}
    everything = [part.number for part in layout_of(table).parts]
    segments = []
    for column, kind in KINDS:
        lacking = known[column].uncovered if column in known else frozenset()
        beside = bool(lacking) and kind != "INVERTED" and rng.random() < 0.5
        fragments = sorted(lacking) if beside else everything
        rows = table.scan(["like"]) if kind == "IVF_FLAT" else None
        if rows is None or rows.column("like").null_count < rows.num_rows / 2:
            segments.append(build_index(table, column, kind, fragments, beside=beside))
    return segments


def check(table: Table) -> None:
    """Every index says what the rows say."""
    rows = table.scan()
    for value in range(VALUES):
        text = f"abc{value}d"
        for wanted in (
            pc.field("number") == value,
            pc.field("number") > value,
            pc.match_substring(pc.field("text"), text),
            pc.starts_with(pc.field("text"), text),
        ):
            assert ids(table.scan([ID], wanted)) == ids(rows.filter(wanted)), str(wanted)
        expected = rows.filter(pc.starts_with(rows.column("words"), f"word{value} "))
        assert searched(table, f"word{value}") == ids(expected)
    assert searched(table, "common") == ids(rows)
    assert len(searched(table, "common", limit=rows.num_rows)) == rows.num_rows
    for query in np.random.default_rng(5).standard_normal((3, 4)).astype(np.float32):
        found = nearest(table, "like", query, nprobes=50)
        assert sorted(found) == sorted(truly_nearest(rows, "like", query))
    validate(table)


def searched(table: Table, word: str, limit: int | None = None) -> list[str]:
    query = MatchQuery(word, "words")
    return ids(
        table.dataset().to_table(
            columns=[ID],
            full_text_query=query,
            limit=limit,
            disable_scoring_autoprojection=True,
        )
    )


def walk(root: Path, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
    location = Location.parse(str(root / f"t{seed}"))
    table = Table(location, create_table(location, SCHEMA))
    for start in ("a", "b"):
        names = [f"{start}{at:02}" for at in range(15)]
        table = table.at(table_writes.insert(table, some_rows(names, rng)))
    for turn in range(4):
        segments = built(table, rng)
        for step in range(rng.randrange(4)):
            table = changed(table, rng, f"{turn}{step}")
        table = table.at(commit_indexes(table, segments))
        check(table)
        for step in range(rng.randrange(3)):
            table = changed(table, rng, f"{turn}{step}later")
        check(table)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(profile.CHOSEN.dear))
def test_segments_go_along_with_their_table(tmp_path: Path, seed: int) -> None:
    walk(tmp_path, seed)


def test_compaction_with_several_segments(tmp_path: Path) -> None:
    """Two groups of fragments are merged at once, each covered by a segment of its own."""
    rng = random.Random(1)  # noqa: S311 - to be repeated
    location = Location.parse(str(tmp_path / "t"))
    table = Table(location, create_table(location, SCHEMA))
    for turn in range(2):
        for start in ("a", "b"):
            rows = some_rows([f"{turn}{start}{at}" for at in range(10)], rng)
            table = table.at(table_writes.insert(table, rows))
        for column, kind in KINDS:
            table = table.at(table_indexing.extend_index(table, column, kind))
    merged = table.at(table_indexes.compact(table))
    assert len(layout_of(merged).parts) < len(layout_of(table).parts)
    numbers = {part.number for part in layout_of(merged).parts}
    for one in merged.dataset().describe_indices():
        assert {number for part in one.segments for number in part.fragment_ids} <= numbers
    check(merged)
    check(changed(merged, rng, "later"))


# -- texts of any sort -------------------------------------------------------------------

LETTERS = st.sampled_from("abAB .%_*\\'\"\n\x00äÄßéİ̈あ🙂1")
TEXTS = st.text(LETTERS, max_size=12)


@settings(profile.costly, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    stored=st.lists(st.none() | TEXTS, min_size=1, max_size=12),
    later=st.lists(TEXTS, max_size=3),
    patterns=st.lists(TEXTS, min_size=1, max_size=6),
    kind=st.sampled_from(["NGRAM", "BTREE"]),
    data=st.data(),
)
def test_a_text_is_found_with_an_index_as_without(  # noqa: PLR0917 - Hypothesis's way
    tmp_path_factory: pytest.TempPathFactory,
    stored: list[str | None],
    later: list[str],
    patterns: list[str],
    kind: IndexKind,
    data: st.DataObject,
) -> None:
    location = Location.parse(str(tmp_path_factory.mktemp("texts") / "t"))
    schema = pa.schema([(ID, pa.string()), ("text", pa.string())])
    table = Table(location, create_table(location, schema))
    names = [f"k{at}" for at in range(len(stored) + len(later))]
    texts = pa.table({ID: names, "text": [*stored, *later]}, schema=schema)
    table = table.at(table_writes.insert(table, texts.slice(0, len(stored))))
    table = table.at(table_indexing.create_index(table, "text", kind))
    table = table.at(table_writes.insert(table, texts.slice(len(stored))))
    whole = [text for text in [*stored, *later] if text]
    if whole:
        picked = data.draw(st.sampled_from(whole))
        start = data.draw(st.integers(0, len(picked) - 1))
        patterns = [*patterns, picked, picked[start:], picked[: start + 1], picked.swapcase()]
    text = pc.field("text")
    for pattern in patterns:
        for wanted in (
            pc.match_substring(text, pattern),
            pc.starts_with(text, pattern),
            text == pattern,
            text.isin([pattern, ""]),
            text > pattern,
        ):
            assert ids(table.scan([ID], wanted)) == ids(texts.filter(wanted)), repr(pattern)
