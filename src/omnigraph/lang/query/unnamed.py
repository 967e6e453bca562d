"""Queries without a header: `match { … } return { … }` by itself, where one query is meant.

Owns giving such a text the header it leaves out, with parameters declared by the values they are
given: of the types that a value may have, the first under which the query compiles. Tells those
that change something.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from itertools import islice, product
from typing import Any

from omnigraph.errors import LanguageError
from omnigraph.lang.literals import parse_date, parse_datetime
from omnigraph.lang.query.compile import CompiledQuery, compile_query, parse_source
from omnigraph.lang.query.syntax import Mutation
from omnigraph.lang.query.terms import INSERTS
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.source import Source, Span
from omnigraph.lang.tokens import scan
from omnigraph.lang.types import INTEGER_RANGE, Scalar

NAME = "query"
BODIES = frozenset({"match", "update", "delete", "for", *INSERTS})
"""The words that a body begins with, and a file does not."""
TRIED = 64
"""So many ways of declaring the parameters are tried."""


def compile_given(
    text: str, catalog: Catalog, name: str | None, params: object, *, path: str = "<query>"
) -> CompiledQuery:
    """Compile a query as it is given: one of a text, or a text that is one without its header."""
    if not is_unnamed(text):
        return compile_query(text, catalog, name, path=path)
    given = params if isinstance(params, Mapping) else {}
    first: LanguageError | None = None
    for header in islice(_headers(given), TRIED):
        try:
            return compile_query(_source(header, text, path), catalog)
        except LanguageError as error:
            first = first or error
    if first is None:
        raise AssertionError("there is always a first way to declare parameters")
    raise first


def named_source(text: str, path: str = "<query>") -> Source:
    """A text as it can be parsed, with a header where it is the body of a query."""
    return _source(f"query {NAME}() {{", text, path) if is_unnamed(text) else Source(text, path)


def _source(header: str, text: str, path: str) -> Source:
    begin = len(header) + 1
    # Mistakes are told in what was written, and not in what is put around it.
    return Source(f"{header}\n{text}\n}}", path, Span(begin, begin + len(text)))


def is_unnamed(text: str) -> bool:
    """Whether a text is the body of a query."""
    token = next(scan(Source(text[:65_536], "<query>")), None)
    return token is not None and token.text in BODIES


def is_mutation(text: str, name: str | None = None) -> bool:
    """Whether a query changes something; of several, one that is named or any of them.

    What does not parse is refused as a query is.
    """
    try:
        file = parse_source(named_source(text))
    except LanguageError:
        return False
    return any(
        isinstance(query.body, Mutation)
        for query in file.queries
        if name is None or query.name.text == name
    )


def _headers(params: Mapping[Any, object]) -> Iterator[str]:
    """The ways to declare the parameters, the likeliest first."""
    names = [name for name in params if isinstance(name, str) and name.isidentifier()]
    for types in product(*(_types(params[name]) for name in names)):
        declared = ", ".join(f"${name}: {type_}" for name, type_ in zip(names, types, strict=True))
        yield f"query {NAME}({declared}) {{"


def _types(value: object) -> Sequence[str]:
    """The types that a value may be meant to have."""
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return _list_types(value)
    return _scalar_types(value)


def _scalar_types(value: object) -> Sequence[str]:
    match value:
        case None:
            return [f"{scalar}?" for scalar in ("String", "I64", "F64", "Bool", "Date", "DateTime")]
        case bool():
            return ["Bool"]
        case int():
            fitting = (Scalar.I64, Scalar.I32, Scalar.U64, Scalar.U32)
            found = [of.value for of in fitting if _fits(value, of)]
            return [*found, "F64"] if found else ["F64"]
        case float():
            return ["F64", "F32"]
        case datetime():
            return ["DateTime"]
        case date():
            return ["Date"]
        case str():
            return ["String", *_times(value)]
    return ["String"]


def _fits(value: int, scalar: Scalar) -> bool:
    least, most = INTEGER_RANGE[scalar]
    return least <= value <= most


def _times(text: str) -> list[str]:
    """The types of time that a text can be read as."""
    found = []
    for name, parse in (("Date", parse_date), ("DateTime", parse_datetime)):
        try:
            parse(text)
        except ValueError:
            continue
        found.append(name)
    return found


def _list_types(values: Sequence[object]) -> Sequence[str]:
    scalars: list[str] = []
    for value in values[:1]:
        scalars += _scalar_types(value)
    if any(isinstance(value, float) for value in values):
        scalars = ["F64", "F32"]
    lists = [f"[{scalar}]" for scalar in scalars or ["String", "I64", "F64"]]
    is_vector = len(values) > 0 and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in values
    )
    return [*lists, f"Vector({len(values)})"] if is_vector else lists
