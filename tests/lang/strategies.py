"""Hypothesis strategies for the syntax trees of both languages.

Every tree drawn here can be written down and read back. Trees need not make
sense: names may be unknown and types may not fit.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from omnigraph.lang.query import syntax as gq
from omnigraph.lang.query import terms
from omnigraph.lang.query.spelling import spell
from omnigraph.lang.schema.syntax import tree as pg
from omnigraph.lang.types import BASE_NAMES, MAX_VECTOR_DIMENSION, RecordList, Scalar, ValueType
from tests.lang.drawing import (
    but,
    either,
    floats,
    idents,
    integers,
    maybe,
    naturals,
    opaque,
    several,
    texts,
    type_names,
)

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
_param_types = opaque(
    st.one_of(
        st.builds(ValueType, _bases, st.booleans()),
        st.builds(ValueType, _listable, st.booleans(), st.just(value=True)),
        _vectors,
    )
)
_property_types = opaque(st.one_of(_param_types, _enums))


# -- schemas -----------------------------------------------------------------------

_pg_names = st.builds(terms.Name, idents)
_pg_type_names = st.builds(terms.Name, type_names)
_digits = st.from_regex(r"[0-9]{1,20}", fullmatch=True)
_point_digits = st.from_regex(r"[0-9]{1,5}\.[0-9]{1,5}", fullmatch=True)
_bare_names = st.builds(pg.Argument, st.just("name"), but(idents, "true", "false"))
_system_members = st.builds(pg.Argument, st.just("name"), st.sampled_from(("@id", "@src", "@dst")))
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
    st.builds(pg.Bounds, _signed, maybe(_signed)),
    st.builds(pg.Bounds, st.none(), _signed),
)
_annotations = opaque(
    st.one_of(
        st.builds(pg.Annotation, but(idents, "card")),
        st.builds(
            pg.Annotation,
            but(idents, "card", *pg.CONSTRAINT_NAMES),
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
_properties = st.builds(pg.Property, _pg_names, _property_types, several(_annotations))
_constraints = st.builds(
    pg.Constraint,
    st.sampled_from(pg.CONSTRAINT_NAMES),
    several(either(_pg_literals, _bare_names, _system_members, _bounds), least=1),
)
_members = several(either(_properties, _constraints))
_cardinalities = st.builds(
    pg.Cardinality, st.integers(0, 9), st.one_of(st.none(), st.integers(0, 2**32 - 1))
)
_declarations = opaque(
    either(
        st.builds(pg.Interface, _pg_type_names, several(_properties)),
        st.builds(
            pg.Node,
            _pg_type_names,
            several(_annotations, most=2),
            several(_pg_type_names, most=2),
            _members,
        ),
        st.builds(
            pg.Edge,
            _pg_type_names,
            _pg_type_names,
            _pg_type_names,
            maybe(_cardinalities),
            several(_annotations, most=2),
            _members,
        ),
    )
)
schemas = st.builds(pg.Schema, several(_declarations, most=4))


# -- expressions -------------------------------------------------------------------

_gq_names = st.builds(terms.Name, idents)
_system_names = st.builds(terms.Name, st.sampled_from(terms.SYSTEM_PROPERTIES))
_columns = st.one_of(_gq_names, _gq_names, _system_names)
# Names of parameters are kept apart: a parameter before `contains` or `in` starts a filter.
_variables = st.builds(terms.Variable, idents.filter(lambda name: not name.startswith("p")))
_parameters = st.builds(terms.Variable, st.sampled_from(("p", "p_1", "param", "pIn")))
_scalars = opaque(
    st.one_of(
        st.builds(terms.Literal, st.just("string"), texts),
        st.builds(terms.Literal, st.just("integer"), integers),
        st.builds(terms.Literal, st.just("float"), floats),
        st.builds(terms.Literal, st.just("bool"), st.booleans()),
        st.builds(terms.Literal, st.sampled_from(("date", "datetime")), texts),
    )
)
_literal_lists = st.builds(terms.ListLiteral, several(_scalars))
_nulls = st.just(terms.Literal("null", None))
_values = opaque(either(_scalars, _literal_lists, _variables, _parameters, st.builds(terms.Now)))
_accesses = opaque(st.builds(terms.Access, st.one_of(_variables, _parameters), _columns))
# Words that go on with an expression are no operands of one.
_aliases = st.builds(
    terms.Alias,
    but(
        idents,
        *("true", "false", "and", "or", "not", "is", "in", "as", "asc", "desc", "when", "else"),
        *terms.WORD_OPERATORS,
    ),
)
_names = but(
    idents,
    *("now", "nearest", "bm25", "rrf", "date", "datetime", "true", "false", "not"),
    *("and", "or", "is", "in", "as"),
)
_functions = st.builds(
    terms.Name, _names.filter(lambda name: name not in (*terms.AGGREGATES, *terms.TEXT_CALLS))
)


def _calls(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(terms.Nearest, _accesses, inner),
        st.builds(terms.TextCall, st.sampled_from(("search", "match_text")), inner, inner),
        st.builds(terms.TextCall, st.just("fuzzy"), inner, inner, maybe(inner)),
        st.builds(terms.Bm25, inner, inner),
        st.builds(terms.Rrf, inner, inner, maybe(inner)),
        _aggregates(inner),
    )


def _aggregates(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    ordered = inner.filter(lambda expr: not isinstance(expr, terms.Nearest))
    keys = several(st.builds(terms.Ordering, ordered, st.booleans(), _null_places), most=2)
    collected = st.just("collect")
    nothing = st.none()
    return st.one_of(
        st.builds(terms.Aggregate, st.sampled_from(terms.AGGREGATES), inner, st.booleans()),
        st.builds(terms.Aggregate, st.just("count")),
        st.builds(terms.Aggregate, st.just("percentile"), inner, st.just(value=False), inner),
        st.builds(terms.Aggregate, collected, inner, st.booleans(), nothing, keys, maybe(_counts)),
        st.builds(
            terms.Aggregate,
            collected,
            nothing,
            st.just(value=False),
            nothing,
            keys,
            maybe(_counts),
            several(st.builds(terms.Projection, inner, maybe(_gq_names)), least=1),
        ),
    )


_null_places = st.sampled_from((None, "first", "last"))
_counts = st.one_of(
    st.builds(terms.Literal, st.just("integer"), naturals), st.one_of(_variables, _parameters)
)


def _is_bare_number(expr: terms.Expr) -> bool:
    """A minus before these makes another literal of them."""
    return isinstance(expr, terms.Literal) and expr.kind in ("integer", "float")


def _operators(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(terms.Negative, inner.filter(lambda expr: not _is_bare_number(expr))),
        *(
            st.builds(
                terms.Arithmetic,
                inner,
                several(st.tuples(st.sampled_from(ops), inner), least=1),
            )
            for ops in (terms.SUMS, terms.PRODUCTS)
        ),
        st.builds(terms.Call, _functions, several(inner)),
        st.builds(
            terms.Case, several(st.builds(terms.Branch, inner, inner), least=1), maybe(inner)
        ),
        st.builds(terms.ListLiteral, several(inner.filter(_is_no_list))),
        _conditions_of(inner),
    )


def _is_no_list(expr: terms.Expr) -> bool:
    return not isinstance(expr, terms.ListLiteral)


def _conditions_of(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(
            terms.Comparison,
            inner,
            st.sampled_from((*terms.COMPARISONS, *terms.WORD_OPERATORS)),
            inner,
        ),
        st.builds(terms.NullTest, inner, st.booleans()),
        st.builds(terms.Membership, inner, inner),
        st.builds(terms.Negation, inner),
        st.builds(terms.Logical, st.sampled_from(("and", "or")), several(inner, least=2)),
    )


_atoms_of_expressions = either(_values, _accesses, _aliases)
_expressions = opaque(
    st.recursive(
        _atoms_of_expressions, lambda inner: _calls(inner) | _operators(inner), max_leaves=5
    )
)
_text_calls = st.one_of(
    st.builds(
        terms.TextCall, st.sampled_from(("search", "match_text")), _expressions, _expressions
    ),
    st.builds(terms.TextCall, st.just("fuzzy"), _expressions, _expressions, maybe(_expressions)),
)


# -- clauses -----------------------------------------------------------------------


def _may_be_clause(expr: terms.Expr) -> bool:
    """Whether a condition reads as one wherever it stands: it begins with no minus and no node."""
    text = spell(expr)
    if text.startswith("-") or "$" not in text.split(" ", 1)[0]:
        return text.startswith("(")
    return "." in text.split(" ", 1)[0]


# A bare word is no value of a block, and before a parenthesis it would name a function.
_clause_values = opaque(
    st.recursive(
        either(_values, _accesses), lambda inner: _calls(inner) | _operators(inner), max_leaves=4
    )
)
_conditions = opaque(_conditions_of(_clause_values).filter(_may_be_clause))
_hops = st.builds(gq.HopRange, naturals, maybe(naturals))
_edge_words = st.builds(terms.Name, but(idents, "not"))


def _ways(clauses: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(
        gq.Traversal,
        _variables,
        _edge_words,
        _variables,
        _variables,
        st.booleans(),
        _hops,
        every=st.booleans(),
        each=st.builds(gq.Each, _variables, _variables, clauses),
        weight=_clause_values,
    )


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
        maybe(_hops),
    ),
    st.builds(
        gq.Traversal,
        st.one_of(_variables, _parameters),
        _edge_words,
        _variables,
        undirected=st.just(value=True),
        hops=maybe(_hops),
    ),
    _ways(st.none()),
)
_matches = st.builds(gq.PropertyMatch, _columns, _clause_values)
_simple_clauses = opaque(
    either(
        st.builds(
            gq.Binding,
            st.one_of(_variables, _parameters),
            st.builds(terms.Name, type_names),
            several(_matches),
        ),
        _traversals,
        st.builds(gq.WayStep, _variables, _variables, _variables, st.booleans()),
        st.builds(gq.Where, either(_conditions, _accesses, _text_calls)),
    )
)


# A name of a value is no name of a node, wherever it stands.
_values_named = st.builds(terms.Variable, st.sampled_from(("p", "p_1", "param", "pIn")))
_comparing = st.sampled_from(terms.COMPARISONS)


def _blocks_as_values(block: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.builds(terms.BlockValue, st.just(terms.Aggregate("count")), block),
        st.builds(
            terms.BlockValue,
            _aggregates(_clause_values).filter(lambda made: made != terms.Aggregate("count")),
            block,
        ),
    )


def _nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    block = several(inner, least=1)
    return st.one_of(
        _ways(block),
        st.builds(gq.Not, block),
        st.builds(gq.Exists, block),
        st.builds(gq.Optional, block),
        st.builds(gq.AnyOf, several(block, least=2)),
        st.builds(
            gq.Where,
            st.builds(terms.Comparison, _blocks_as_values(block), _comparing, _clause_values),
        ),
        st.builds(gq.Let, _values_named, st.one_of(_blocks_as_values(block), _clause_values)),
        st.builds(gq.For, _values_named, _clause_values),
    )


_clauses = opaque(st.recursive(_simple_clauses, _nested, max_leaves=5))


# -- queries -----------------------------------------------------------------------

_projections = st.builds(terms.Projection, _expressions, maybe(_gq_names))
_orderings = st.one_of(
    st.builds(
        terms.Ordering,
        _expressions.filter(lambda expr: not isinstance(expr, terms.Nearest)),
        st.booleans(),
        _null_places,
    ),
    st.builds(terms.Ordering, st.builds(terms.Nearest, _accesses, _expressions)),
)
_windows = st.one_of(
    st.just((None, None)), st.tuples(_counts, st.none()), st.tuples(_counts, _counts)
)
_reads = opaque(
    st.builds(
        lambda clauses, projections, distinct, ordering, window, per, branches: gq.Read(
            clauses, projections, distinct, ordering, window[0], window[1], per, branches
        ),
        several(_clauses, least=1),
        several(_projections, least=1),
        st.booleans(),
        several(_orderings),
        _windows,
        maybe(st.builds(gq.LimitPer, _counts, several(_expressions, least=1))),
        several(
            st.builds(
                gq.Branch,
                st.booleans(),
                several(_clauses, least=1),
                several(_projections, least=1),
                st.booleans(),
            ),
            most=1,
        ),
    )
)
_targets = st.builds(terms.Name, type_names)
_node_keys = st.builds(terms.NodeKey, _targets, several(_expressions, least=1, most=2))
_assigned = either(_expressions, _node_keys, _nulls)
_assignments = several(st.builds(gq.Assignment, _gq_names, _assigned))
_named_nodes = st.builds(terms.Comparison, _aliases, st.sampled_from(terms.COMPARISONS), _node_keys)
_where = either(_expressions, _named_nodes)
_single_statements = either(
    st.builds(gq.Insert, st.sampled_from(terms.INSERTS), _targets, _assignments, maybe(_variables)),
    st.builds(gq.Update, _targets, _assignments, _where),
    st.builds(gq.Delete, _targets, _where),
    st.builds(gq.UpdateMatched, _variables, _assignments),
    st.builds(gq.DeleteMatched, _variables),
)
_statements = either(
    _single_statements,
    st.builds(gq.ForEach, _variables, _variables, several(_single_statements, least=1, most=2)),
)
_records = st.builds(
    RecordList,
    st.dictionaries(idents, _param_types, min_size=1, max_size=2).map(
        lambda fields: tuple(fields.items())
    ),
    st.booleans(),
)
_bodies = either(
    _reads,
    st.builds(
        gq.Mutation,
        several(_statements, least=1),
        maybe(several(_clauses, least=1)),
        several(_projections, most=2),
    ),
)
_unknown_types = st.builds(terms.Name, but(type_names, *BASE_NAMES, "Vector"))
# All parameter names are declared, for a filter on a parameter reads differently without.
_params = st.tuples(
    *(
        st.builds(gq.Param, st.just(name), either(_param_types, _unknown_types, _records))
        for name in ("p", "p_1", "param", "pIn")
    )
)
_queries = opaque(st.builds(gq.Query, _gq_names, _params, _bodies, maybe(texts), maybe(texts)))
query_files = st.builds(gq.QueryFile, several(_queries, most=2))
