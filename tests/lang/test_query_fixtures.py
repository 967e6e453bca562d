"""The query language, by cases from fixture files.

Inputs of a case: `query` (a file of queries) with `schema` (else that of the file's
case named `schema`), or `declare`, `given` and `mode` (parameters and their JSON).
All other sections are expectations.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import pytest

from demo.plan_text import render_plan
from omnigraph.errors import ParamError
from omnigraph.lang.diagnostics import Diagnostic, Reporter
from omnigraph.lang.lint_report import LintReport
from omnigraph.lang.query.compile import CompiledQuery, check_query, compile_query
from omnigraph.lang.query.lint import lint_queries
from omnigraph.lang.query.params import Mode, coerce_params
from omnigraph.lang.query.parsing.parser import parse_queries
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.compile import compile_schema
from omnigraph.lang.source import Source
from omnigraph.wire.reports import LintBody, OperationBody, SchemaSourceBody
from tests.lang.bless import bless
from tests.lang.fixture_file import Case, load_cases
from tests.wire.plain import plain

PATHS = sorted((Path(__file__).parent / "fixtures" / "query").glob("*.txt"))
FILES = {path: load_cases(path) for path in PATHS}
SCHEMAS = {
    path: case.sections["schema"]
    for path, cases in FILES.items()
    for case in cases
    if case.name == "schema"
}
CASES = [(path, case) for path, cases in FILES.items() for case in cases if case.name != "schema"]
INPUTS = ("schema", "query", "declare", "given", "mode")
EMPTY_SCHEMA = "node Thing { name: String @key }\n"


@pytest.mark.parametrize(
    ("path", "case"), CASES, ids=[f"{path.stem}:{case.name}" for path, case in CASES]
)
def test_case(path: Path, case: Case, request: pytest.FixtureRequest) -> None:
    expected = {name: text for name, text in case.sections.items() if name not in INPUTS}
    actual = outcome(case, SCHEMAS.get(path, EMPTY_SCHEMA))
    if request.config.getoption("--bless"):
        bless(path, case.name, {name: actual[name] for name in expected})
        return
    assert expected
    assert all(expected.values()), "a section expects nothing"
    assert {name: actual.get(name, "") for name in expected} == expected


def test_the_cases_are_many_and_their_names_differ() -> None:
    names = [(path, case.name) for path, case in CASES]
    assert len(set(names)) == len(names)
    assert len(names) >= 1100


def outcome(case: Case, default_schema: str) -> dict[str, str]:
    """Everything a case may expect, as text."""
    if "declare" in case.sections:
        return params_outcome(case)
    text = case.sections["query"]
    source = Source(text, "q.gq")
    catalog = catalog_of(case.sections.get("schema", default_schema))
    report = lint_queries(source, catalog)
    found = {"lint": lint_text(report)}
    if report.diagnostics:
        return {**found, "errors": "".join(map(line_of, report.diagnostics))}
    queries = compiled_queries(source, catalog)
    return {**found, "plan": plans_text(queries), "operation": operations_text(queries)}


@cache
def catalog_of(schema: str) -> Catalog:
    return compile_schema(schema).catalog


def compiled_queries(source: Source, catalog: Catalog) -> list[CompiledQuery]:
    compiled = [
        check_query(source, query, catalog)[0]
        for query in parse_queries(source, Reporter(source)).queries
    ]
    return [query for query in compiled if query is not None]


def line_of(diagnostic: Diagnostic) -> str:
    line, column = diagnostic.position
    hint = f" | {diagnostic.hint}" if diagnostic.hint else ""
    return f"{diagnostic.stable_code} {line}:{column} {diagnostic.message}{hint}\n"


def plans_text(queries: list[CompiledQuery]) -> str:
    plans = [render_plan(query.plan) for query in queries]
    if len(plans) == 1:
        return f"{plans[0]}\n"
    return "".join(
        f"query {query.name}\n{text}\n" for query, text in zip(queries, plans, strict=True)
    )


def operations_text(queries: list[CompiledQuery]) -> str:
    return "".join(f"{json.dumps(plain(OperationBody.of(query.operation)))}\n" for query in queries)


def lint_text(report: LintReport) -> str:
    document = plain(LintBody.of(report, SchemaSourceBody("file", path="s.pg"), "q.gq"))
    del document["diagnostics"]
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def params_outcome(case: Case) -> dict[str, str]:
    declared = case.sections["declare"].strip()
    text = f"query q({declared}) {{ match {{ $t: Thing }} return {{ $t.name }} }}"
    query = compile_query(text, catalog_of(EMPTY_SCHEMA))
    mode: Mode = (
        "javascript" if case.sections.get("mode", "").strip() == "javascript" else "standard"
    )
    try:
        values = coerce_params(query.params, json.loads(case.sections["given"]), mode=mode)
    except ParamError as error:
        return {"error": f"{error}\n"}
    return {"values": "".join(f"{name} = {value!r}\n" for name, value in values.items())}
