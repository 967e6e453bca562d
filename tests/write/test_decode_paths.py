"""The bulk path never accepts what the exact path refuses, and never gives other rows."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.write.load.columns import cells
from omnigraph.write.load.ndjson.envelopes import LineErrors, group_by_type
from omnigraph.write.load.ndjson.exact import read_exact
from omnigraph.write.load.ndjson.lines import Lines, NdjsonSource
from omnigraph.write.load.ndjson.typed_lines import read_bulk

SCALARS = ["String", "Bool", "I32", "I64", "U32", "U64", "F32", "F64", "Date", "DateTime"]
PROPERTIES = {
    **{f"p{name.lower()}": f"{name}?" for name in SCALARS},
    **{f"l{name.lower()}": f"[{name}]?" for name in SCALARS},
    "vector": "Vector(2)?",
    "blob": "Blob?",
    "mood": "enum(a, b)?",
    "some": "I32? @default(7)",
    "when": 'Date? @default("2020-01-01")',
}
BODY = "\n".join(f"{name}: {type_}" for name, type_ in PROPERTIES.items())
CATALOG: Catalog = compile_schema(
    f"node Thing {{ {BODY} }}\n"
    'node Keyed { a: F32\n b: Date @default("2020-01-01")\n @key(a, b) }\n'
    f"edge Link: Thing -> Thing {{ {BODY} }}\n"
    "node Free { id: I64?\n vector: Vector(2)? }\n"
    "edge Tied: Free -> Free { id: String?\n src: I32?\n dst: [String]? }"
).catalog

ATOMS = [
    "null",
    "true",
    "false",
    "0",
    "-0",
    "1",
    "-1",
    "1.0",
    "1e2",
    "1E-400",
    "1e400",
    "3.5e38",
    "3.4028235677973366e38",
    "0.1",
    "16777217",
    "1.00000005960464477541",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "123456789012345678901234567890",
    "01",
    "NaN",
    "Infinity",
    '""',
    '"a"',
    '"é"',
    '"\\u00e9"',
    '"\\ud83d\\ude00"',
    '"\\ud800"',
    '"\\u0000"',
    '"a\\"b"',
    '"\t"',
    '"2020-01-01"',
    '"2020-02-30"',
    '"0000-01-01"',
    '"2020-01-01T00:00:00Z"',
    '"2020-01-01 00:00+01:00"',
    '"2020-01-01T00:00:00.12345Z"',
    '"2020-01-01T00:00:00"',
    '"0001-01-01T00:00:00+01:00"',
    '"9999-12-31T23:59:59-01:00"',
    "18262",
    "2932896",
    "2932897",
    "-719162",
    "-719163",
    "253402300799999",
    "253402300800000",
    '"base64:YQ=="',
    '"base64:"',
    '"base64:Y"',
    '"s3://b/c"',
    "{}",
    "[]",
    '{"a":1,"a":2}',
    '["null"]',
    "[[1]]",
    '"\x7f"',
]
atoms = st.sampled_from(ATOMS)
blanks = st.sampled_from(["", "", "", " ", "\t", "\r"])
arrays = st.builds(lambda items: f"[{','.join(items)}]", st.lists(atoms, max_size=3))
vectors = st.builds(lambda a, b: f"[{a},{b}]", atoms, atoms)
NAMES = st.sampled_from(
    [*PROPERTIES, "id", "@id", "a", "b", "src", "_rowid", "", "p\\u0069\\u0033\\u0032"]
)


def member(name: str, value: str, blank: str) -> str:
    return f'{blank}"{name}"{blank}:{blank}{value}{blank}'


def fitting(name: str) -> st.SearchStrategy[str]:
    """Mostly values of the right kind, or hardly any line would be right."""
    kind = PROPERTIES.get(name, "String?")
    if name == "vector":
        return vectors
    return arrays if kind.startswith("[") else st.one_of(atoms, arrays)


members = st.lists(
    NAMES.flatmap(lambda name: st.builds(member, st.just(name), fitting(name), blanks)), max_size=3
)
data = members.map(lambda found: f'"data":{{{",".join(found)}}}')
heads = st.sampled_from(
    [
        '"type":"Thing"',
        '"edge":"link"',
        '"from":"x"',
        '"to":"y"',
        '"type":"Keyed"',
        '"data":null',
        '"edge":"Link"',
        '"from":null',
        '"x":1',
    ]
)
wild = st.lists(st.one_of(heads, data), max_size=4)
ENDS = ['"from":"x"', '"to":"y"']
tame = st.builds(
    lambda head, found: [*head, found],
    st.sampled_from([['"type":"Thing"'], ['"edge":"Link"', *ENDS]]),
    data,
)
free = st.builds(
    lambda head, found: [*head, f'"data":{{{",".join(found)}}}'],
    st.sampled_from([['"type":"Free"'], ['"edge":"Tied"', *ENDS]]),
    st.lists(
        st.sampled_from(["id", "@id", "src", "dst", "@src"]).flatmap(
            lambda name: st.builds(member, st.just(name), st.one_of(atoms, arrays), blanks)
        ),
        max_size=3,
    ),
)


def keyed_line(a: str, b: list[str], id_: list[str]) -> list[str]:
    found = ",".join([f'"a":{a}', *b, *id_])
    return ['"type":"Keyed"', f'"data":{{{found}}}']


keyed = st.builds(
    keyed_line,
    atoms,
    st.one_of(st.just([]), atoms.map(lambda value: [f'"b":{value}'])),
    st.sampled_from([[], ['"id":"[\\"1\\",\\"18262\\"]"'], ['"id":null'], ['"id":"x"']]),
)
lines = st.one_of(tame, tame, keyed, free, wild).map(lambda found: f"{{{','.join(found)}}}")


def same(type_name: str, left: pa.Table, right: pa.Table) -> None:
    for name in left.column_names:
        a, b = left.column(name).combine_chunks(), right.column(name).combine_chunks()
        assert a.type == b.type, (type_name, name)
        assert a.to_pylist() == b.to_pylist(), (type_name, name)


def compare(texts: list[str]) -> None:
    source = NdjsonSource(None, "\n".join(texts).encode())
    split = Lines([source])
    problems = LineErrors(split.where())
    for type_, ordinals in group_by_type(split.texts, CATALOG, is_utf8=True, problems=problems):
        some = split.select(ordinals)
        bulk = read_bulk(type_, some)
        exact = read_exact(type_, some, ordinals.tolist(), LineErrors(split.where()))
        if bulk is not None:
            assert exact is not None
            assert bulk.num_rows == len(some)
            same(type_.name, bulk, exact)


@pytest.mark.slow
@given(st.lists(lines, min_size=1, max_size=3))
@example(['{"type":"Thing","data":null}'])
@example(
    [
        '{"type":"Free","data":{"id":7,"@id":"a"}}',
        '{"edge":"Tied","from":"x","to":"y","data":{"id":"z","src":1,"dst":[],"@id":"b"}}',
    ]
)
@example(
    [
        '{"type":"Thing"}',
        '{"type":"Thing","data":{"pdate":1}}',
        '{"type":"Thing","data":{"pdate":"2020-01-01","pdatetime":5}}',
    ]
)
def test_both_paths_agree(texts: list[str]) -> None:
    compare(texts)


@pytest.mark.slow
@given(st.data())
def test_each_value_of_each_type_alone(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(PROPERTIES)))
    compare([f'{{"type":"Thing","data":{{"{name}":{data.draw(fitting(name))}}}}}'])


dates = st.one_of(
    st.dates().map(str),
    st.from_regex(r"[0-9]{3,5}-[0-9]{1,2}-[0-3][0-9]T?", fullmatch=True),
)
moments = st.from_regex(
    r"(0000|0001|1969|2020|9999)-(01|02|12|13)-(01|29|30|31)[Tt ](00|12|23|24):(00|59|60)"
    r"(:(00|59|60)(\.[0-9]{1,5})?)?([Zz]|[+-](00|01|23|24):?(00|30|59|60)|)",
    fullmatch=True,
)


@pytest.mark.slow
@given(st.lists(st.one_of(st.none(), dates), max_size=4))
def test_columns_of_dates(texts: list[str | None]) -> None:
    found = cells.days_of_texts(pa.array(texts, pa.string())).cast(pa.int32()).to_pylist()
    assert found == [None if text is None else cells.read_date(text) for text in texts]


@pytest.mark.slow
@given(st.lists(st.one_of(st.none(), moments), max_size=4))
def test_columns_of_times(texts: list[str | None]) -> None:
    found = cells.moments_of_texts(pa.array(texts, pa.string())).cast(pa.int64()).to_pylist()
    assert found == [None if text is None else cells.read_datetime(text) for text in texts]
