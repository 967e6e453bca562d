"""Hypothesis strategies for syntax trees of both languages, and for text around tokens.

Every tree drawn here can be written down and read back. Trees need not make
sense: names may be unknown and types may not fit.
"""

from __future__ import annotations

from typing import Any, TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.lang.query import syntax as gq
from omnigraph.lang.schema import syntax as pg
from omnigraph.lang.types import BASE_NAMES, MAX_VECTOR_DIMENSION, Scalar, ValueType

MAX_INTEGER = 2**63 - 1

# Words that mean something elsewhere in the grammars, and must still be usable as names.
CONTEXTUAL = (
    *("interface", "node", "edge", "implements", "enum", "key", "unique", "index", "range"),
    *("check", "query", "match", "return", "order", "limit", "offset", "distinct", "as", "asc"),
    *("desc", "insert", "update", "delete", "set", "where", "and", "or", "any", "optional"),
    *("exists", "not", "in", "is", "null", "contains", "starts_with", "count", "sum", "avg"),
    *("min", "max", "now", "date", "datetime", "nearest", "search", "fuzzy", "match_text"),
    *("bm25", "rrf", "true", "false", "description", "instruction", "id", "src", "dst", "_"),
)

T = TypeVar("T")


def _opaque(strategy: st.SearchStrategy[T]) -> st.SearchStrategy[T]:
    """The same strategy with a short repr; Hypothesis would spell the whole grammar out."""

    @st.composite
    def element(draw: st.DrawFn) -> T:
        return draw(strategy)

    return element()


_idents = _opaque(
    st.one_of(
        st.sampled_from(
            ("a", "b", "name", "knows", "_x", "is_not", "not_in", "trueish", "camelCase")
        ),
        st.sampled_from(CONTEXTUAL),
        st.from_regex(r"[a-z_][A-Za-z0-9_]{0,12}", fullmatch=True),
    )
)
_type_names = _opaque(
    st.one_of(
        st.sampled_from(("Person", "T", "Vector", "String", "N_1", "Null", "Query")),
        st.from_regex(r"[A-Z][A-Za-z0-9_]{0,12}", fullmatch=True),
    )
)
# Surrogates cannot be encoded, so no text that reached us holds one.
_any_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
texts = _opaque(
    st.one_of(
        st.sampled_from(
            (
                *("", '"', "\\", '\\"', "\n", "\r\n", "\t", "// no comment", "/* nor this */"),
                *(
                    "}",
                    "{",
                    "\\n",
                    "a\\",
                    "é ü 漢 😀",
                    "\u2028\x85\x0b",
                    "x" * 40,
                    "--- $a: { , } @",
                ),
            )
        ),
        _any_text,
    )
)
_integers = st.one_of(
    st.integers(-9, 9),
    st.sampled_from((MAX_INTEGER, -MAX_INTEGER, -MAX_INTEGER - 1, 2**53 + 1)),
    st.integers(-MAX_INTEGER - 1, MAX_INTEGER),
)
_naturals = st.one_of(st.integers(0, 9), st.integers(0, MAX_INTEGER))
_floats = st.one_of(
    st.sampled_from((0.0, -0.5, 1.0, 1e22, 1e-7, 5e-324, 1.7976931348623157e308, -1e300, 0.1)),
    st.floats(allow_nan=False, allow_infinity=False),
)


def _several(
    elements: st.SearchStrategy[T], *, least: int = 0, most: int = 3
) -> st.SearchStrategy[tuple[T, ...]]:
    return st.lists(elements, min_size=least, max_size=most).map(tuple)


def _either(*choices: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A choice between node classes; their union is what the caller's field says."""
    return st.one_of(*choices)


def _maybe(elements: st.SearchStrategy[T]) -> st.SearchStrategy[T | None]:
    return st.one_of(st.none(), elements)


def _but(elements: st.SearchStrategy[str], *excluded: str) -> st.SearchStrategy[str]:
    return elements.filter(lambda element: element not in excluded)


# -- types -------------------------------------------------------------------------

_bases = st.sampled_from([Scalar(name) for name in BASE_NAMES])
_listable = _bases.filter(lambda scalar: scalar is not Scalar.BLOB)
_vectors = st.builds(
    ValueType,
    st.just(Scalar.VECTOR),
    st.booleans(),
    dimension=st.one_of(st.integers(1, 8), st.just(MAX_VECTOR_DIMENSION)),
)
_enum_values = st.one_of(
    st.sampled_from(("a", "in-progress", "2nd", "-", "--x", "A_b", "0", "1-2", "node", "or")),
    st.from_regex(r"[A-Za-z0-9_\-]{1,10}", fullmatch=True),
)
_enums = st.builds(
    ValueType,
    st.just(Scalar.STRING),
    st.booleans(),
    enum_values=st.lists(_enum_values, min_size=1, max_size=4, unique=True).map(tuple),
)
_param_types = _opaque(
    st.one_of(
        st.builds(ValueType, _bases, st.booleans()),
        st.builds(ValueType, _listable, st.booleans(), st.just(value=True)),
        _vectors,
    )
)
_property_types = _opaque(st.one_of(_param_types, _enums))


# -- schemas -----------------------------------------------------------------------

_pg_names = st.builds(pg.Name, _idents)
_pg_type_names = st.builds(pg.Name, _type_names)
_digits = st.from_regex(r"[0-9]{1,20}", fullmatch=True)
_point_digits = st.from_regex(r"[0-9]{1,5}\.[0-9]{1,5}", fullmatch=True)
_bare_names = st.builds(pg.Argument, st.just("name"), _but(_idents, "true", "false"))
_pg_literals = st.one_of(
    st.builds(pg.Argument, st.just("string"), texts),
    st.builds(pg.Argument, st.just("integer"), _digits),
    st.builds(pg.Argument, st.just("float"), _point_digits),
    st.builds(pg.Argument, st.just("bool"), st.sampled_from(("true", "false"))),
)
_signed = st.one_of(
    st.builds(
        pg.Argument, st.just("integer"), st.tuples(st.sampled_from(("", "-")), _digits).map("".join)
    ),
    st.builds(
        pg.Argument,
        st.just("float"),
        st.tuples(st.sampled_from(("", "-")), _point_digits).map("".join),
    ),
)
_bounds = st.one_of(
    st.builds(pg.Bounds, _signed, _maybe(_signed)),
    st.builds(pg.Bounds, st.none(), _signed),
)
_annotations = _opaque(
    st.one_of(
        st.builds(pg.Annotation, _but(_idents, "card")),
        st.builds(
            pg.Annotation,
            _but(_idents, "card", *pg.CONSTRAINT_NAMES),
            st.one_of(_pg_literals, _bare_names),
            st.lists(
                st.tuples(_pg_names, _pg_literals),
                max_size=2,
                unique_by=lambda option: option[0].text,
            ).map(tuple),
        ),
        st.builds(pg.Annotation, st.just("default"), _signed),
    )
)
_properties = st.builds(pg.Property, _pg_names, _property_types, _several(_annotations))
_constraints = st.builds(
    pg.Constraint,
    st.sampled_from(pg.CONSTRAINT_NAMES),
    _several(_either(_pg_literals, _bare_names, _bounds), least=1),
)
_members = _several(_either(_properties, _constraints))
_cardinalities = st.builds(
    pg.Cardinality, st.integers(0, 9), st.one_of(st.none(), st.integers(0, 2**32 - 1))
)
_declarations = _opaque(
    _either(
        st.builds(pg.Interface, _pg_type_names, _several(_properties)),
        st.builds(
            pg.Node,
            _pg_type_names,
            _several(_annotations, most=2),
            _several(_pg_type_names, most=2),
            _members,
        ),
        st.builds(
            pg.Edge,
            _pg_type_names,
            _pg_type_names,
            _pg_type_names,
            _maybe(_cardinalities),
            _several(_annotations, most=2),
            _members,
        ),
    )
)
schemas = st.builds(pg.Schema, _several(_declarations, most=4))


# -- expressions -------------------------------------------------------------------

_gq_names = st.builds(gq.Name, _idents)
_system_names = st.builds(gq.Name, st.sampled_from(gq.SYSTEM_PROPERTIES))
_columns = st.one_of(_gq_names, _gq_names, _system_names)
# Names of parameters are kept apart: a parameter before `contains` or `in` starts a filter.
_variables = st.builds(gq.Variable, _idents.filter(lambda name: not name.startswith("p")))
_parameters = st.builds(gq.Variable, st.sampled_from(("p", "p_1", "param", "pIn")))
_scalars = _opaque(
    st.one_of(
        st.builds(gq.Literal, st.just("string"), texts),
        st.builds(gq.Literal, st.just("integer"), _integers),
        st.builds(gq.Literal, st.just("float"), _floats),
        st.builds(gq.Literal, st.just("bool"), st.booleans()),
        st.builds(gq.Literal, st.sampled_from(("date", "datetime")), texts),
    )
)
_lists = st.builds(gq.ListLiteral, _several(_scalars))
_nulls = st.just(gq.Literal("null", None))
_values = _opaque(_either(_scalars, _lists, _variables, _parameters, st.builds(gq.Now)))
_accesses = _opaque(st.builds(gq.Access, st.one_of(_variables, _parameters), _columns))
_aliases = st.builds(gq.Alias, _but(_idents, "true", "false"))


def _calls(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(gq.Nearest, _accesses, inner),
        st.builds(gq.TextCall, st.sampled_from(("search", "match_text")), inner, inner),
        st.builds(gq.TextCall, st.just("fuzzy"), inner, inner, _maybe(inner)),
        st.builds(gq.Bm25, inner, inner),
        st.builds(gq.Rrf, inner, inner, _maybe(inner)),
        st.builds(gq.Aggregate, st.sampled_from(gq.AGGREGATES), inner),
    )


_atoms_of_expressions = _either(_values, _accesses, _aliases)
_expressions = _opaque(st.recursive(_atoms_of_expressions, _calls, max_leaves=4))
_text_calls = st.one_of(
    st.builds(gq.TextCall, st.sampled_from(("search", "match_text")), _expressions, _expressions),
    st.builds(gq.TextCall, st.just("fuzzy"), _expressions, _expressions, _maybe(_expressions)),
)
_not_variables = _expressions.filter(lambda expr: not isinstance(expr, gq.Variable))


# -- clauses -----------------------------------------------------------------------

_WORD_OPS = ("contains", "starts_with")


def _starts_with_variable(expr: gq.Expr) -> bool:
    return isinstance(expr, gq.Variable | gq.Access)


_hops = st.builds(gq.Hops, _naturals, _maybe(_naturals))
_edge_words = st.builds(gq.Name, _but(_idents, "not"))
_traversals = st.one_of(
    st.builds(gq.Traversal, _variables, _edge_words, st.one_of(_variables, _parameters)),
    st.builds(gq.Traversal, _variables, _edge_words, _variables, hops=_hops),
    st.builds(
        gq.Traversal,
        st.one_of(_variables, _parameters),
        _edge_words,
        _variables,
        _variables,
        st.booleans(),
        _maybe(_hops),
    ),
    st.builds(
        gq.Traversal,
        st.one_of(_variables, _parameters),
        _edge_words,
        _variables,
        undirected=st.just(value=True),
        hops=_maybe(_hops),
    ),
)
_filters = st.one_of(
    st.builds(gq.Filter, _expressions, st.sampled_from(gq.COMPARISONS), _expressions),
    st.builds(gq.Filter, _not_variables, st.sampled_from(_WORD_OPS), _expressions),
    st.builds(gq.Filter, _parameters, st.sampled_from(_WORD_OPS), _expressions),
    st.builds(
        gq.Filter,
        _variables,
        st.sampled_from(_WORD_OPS),
        _expressions.filter(lambda expr: not _starts_with_variable(expr)),
    ),
)
_memberships = st.one_of(
    st.builds(gq.Membership, _expressions, _lists),
    st.builds(gq.Membership, st.one_of(_not_variables, _parameters), _either(_lists, _variables)),
)
_matches = st.builds(gq.PropertyMatch, _columns, _values)
_simple_clauses = _opaque(
    _either(
        st.builds(
            gq.Binding,
            st.one_of(_variables, _parameters),
            st.builds(gq.Name, _type_names),
            _several(_matches),
        ),
        _traversals,
        _filters,
        st.builds(gq.NullTest, _expressions, st.booleans()),
        _memberships,
        st.builds(gq.TextPredicate, _text_calls),
    )
)


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    block = _several(inner, least=1)
    return st.one_of(
        st.builds(gq.Not, block),
        st.builds(gq.Exists, block),
        st.builds(gq.Optional, block),
        st.builds(gq.AnyOf, _several(block, least=2)),
        st.builds(
            gq.Counted,
            st.just("count"),
            st.none(),
            block,
            st.sampled_from(gq.COMPARISONS),
            _values,
        ),
        st.builds(
            gq.Counted,
            st.sampled_from(("sum", "avg", "min", "max")),
            _accesses,
            block,
            st.sampled_from(gq.COMPARISONS),
            _values,
        ),
    )


_clauses = _opaque(st.recursive(_simple_clauses, _nested, max_leaves=5))


# -- queries -----------------------------------------------------------------------

_counts = st.one_of(
    st.builds(gq.Literal, st.just("integer"), _naturals), st.one_of(_variables, _parameters)
)
_projections = st.builds(gq.Projection, _expressions, _maybe(_gq_names))
_orderings = st.one_of(
    st.builds(
        gq.Ordering,
        _expressions.filter(lambda expr: not isinstance(expr, gq.Nearest)),
        st.booleans(),
    ),
    st.builds(gq.Ordering, st.builds(gq.Nearest, _accesses, _expressions)),
)
_windows = st.one_of(
    st.just((None, None)), st.tuples(_counts, st.none()), st.tuples(_counts, _counts)
)
_reads = _opaque(
    st.builds(
        lambda clauses, projections, distinct, ordering, window: gq.Read(
            clauses, projections, distinct, ordering, *window
        ),
        _several(_clauses, least=1),
        _several(_projections, least=1),
        st.booleans(),
        _several(_orderings),
        _windows,
    )
)
_assignments = _several(st.builds(gq.Assignment, _gq_names, _either(_values, _nulls)))
_where = _several(
    _either(
        st.builds(gq.Compare, _columns, st.sampled_from((*gq.COMPARISONS, *_WORD_OPS)), _values),
        st.builds(gq.IsNull, _columns, st.booleans()),
        st.builds(gq.IsIn, _columns, _either(_lists, _variables)),
    ),
    least=1,
)
_targets = st.builds(gq.Name, _type_names)
_statements = _either(
    st.builds(gq.Insert, _targets, _assignments),
    st.builds(gq.Update, _targets, _assignments, _where),
    st.builds(gq.Delete, _targets, _where),
)
_bodies = _either(_reads, st.builds(gq.Mutation, _several(_statements, least=1)))
_unknown_types = st.builds(gq.Name, _but(_type_names, *BASE_NAMES, "Vector"))
# All parameter names are declared, for a filter on a parameter reads differently without.
_params = st.tuples(
    *(
        st.builds(gq.Param, st.just(name), _either(_param_types, _unknown_types))
        for name in ("p", "p_1", "param", "pIn")
    )
)
_queries = _opaque(st.builds(gq.Query, _gq_names, _params, _bodies, _maybe(texts), _maybe(texts)))
query_files = st.builds(gq.QueryFile, _several(_queries, most=2))


# -- the space between tokens ------------------------------------------------------

_line_comments = st.one_of(
    st.sampled_from(("//", "// a", "//\t", "// }", '// "', "// /* x", "//, $a  ")),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), max_size=8).map(
        "// {}".format
    ),
)
_block_comments = st.one_of(
    st.sampled_from(
        ("/**/", "/* a */", "/* a\n  b */", "/*/ */", "/* // */", "/* { */", '/* " */', "/*\r\n*/")
    ),
    _any_text.filter(lambda text: "*/" not in text and not text.endswith("*")).map(
        "/* {}*/".format
    ),
)
_line_ends = st.sampled_from(("\n", "\n", "\r\n", "\r"))
_blanks = st.sampled_from((" ", "  ", "\t", "\n", "\n\n", "\n \t\n\n", "\r\n", "\r", "\n    "))
_pieces = st.one_of(_blanks, _block_comments, st.tuples(_line_comments, _line_ends).map("".join))
gaps = _opaque(st.lists(st.one_of(st.just(""), _pieces), max_size=3).map("".join))
"""Blanks and comments, whole: no line comment runs into what follows."""


# -- drawing -----------------------------------------------------------------------

whole_trees = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
"""Settings for properties of whole trees, which take their time to draw."""


def examples(strategy: st.SearchStrategy[T], count: int) -> list[T]:
    """Some values of a strategy, the same ones every time."""
    values: list[T] = []

    @settings(whole_trees, max_examples=count, derandomize=True, database=None)
    @given(strategy)
    def collect(value: T) -> None:
        values.append(value)

    collect()
    return values
