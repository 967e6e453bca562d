"""The whole way of a schema: text to syntax, shape, IR and catalog.

Owns the order of the steps and when to stop. Raises one error that carries
every mistake; never anything untyped.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.lang.diagnostics import Diagnostic, Reporter
from omnigraph.lang.lint_report import Finding, LintReport
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.check.whole_schema import check_schema
from omnigraph.lang.schema.ir.catalog_build import catalog_from_ir
from omnigraph.lang.schema.ir.identity import HintReport, resolve
from omnigraph.lang.schema.ir.ir import SchemaIR
from omnigraph.lang.schema.ir.shape import Shape, build_shape
from omnigraph.lang.schema.syntax.parser import parse
from omnigraph.lang.schema.syntax.tree import Schema
from omnigraph.lang.source import Source

PLACEHOLDER_DOMAIN = "0" * 26
"""The identity domain of a schema that no graph has accepted."""


@dataclass(frozen=True, slots=True)
class CompiledSchema:
    """A schema at every stage."""

    source: Source
    syntax: Schema
    shape: Shape
    ir: SchemaIR
    catalog: Catalog
    reports: tuple[HintReport, ...]


def compile_schema(
    source: Source | str, *, accepted: SchemaIR | None = None, domain: str | None = None
) -> CompiledSchema:
    """Compile a schema, keeping the identities of the accepted one.

    Without an accepted IR and a domain the ids are those of a fresh graph in a
    placeholder domain, which is all that offline checks need.
    """
    source = _as_source(source)
    reporter = Reporter(source)
    syntax = _checked(source, reporter)
    reporter.raise_if_any()
    shape = build_shape(syntax)
    if domain is None:
        domain = PLACEHOLDER_DOMAIN if accepted is None else accepted.schema_identity_domain
    resolution = resolve(shape, syntax, accepted, domain=domain, reporter=reporter)
    catalog = catalog_from_ir(resolution.ir)
    return CompiledSchema(source, syntax, shape, resolution.ir, catalog, resolution.reports)


def shape_of_source(source: Source | str, *, stored: bool = False) -> Shape:
    """The shape of a schema alone; ``stored`` opens what was accepted before rules tightened."""
    source = _as_source(source)
    reporter = Reporter(source)
    syntax = _checked(source, reporter, stored=stored)
    reporter.raise_if_any()
    return build_shape(syntax)


def check_schema_source(source: Source | str) -> tuple[Diagnostic, ...]:
    """Every mistake in a schema, by place; never raises."""
    source = _as_source(source)
    reporter = Reporter(source)
    _checked(source, reporter)
    return reporter.diagnostics


def lint_schema(source: Source) -> tuple[Catalog | None, LintReport]:
    """The catalog of a sound schema, and the report in any case."""
    diagnostics = check_schema_source(source)
    findings = tuple(Finding("error", found.stable_code, found.summary) for found in diagnostics)
    catalog = compile_schema(source).catalog if not diagnostics else None
    return catalog, LintReport((), findings, diagnostics)


def _checked(source: Source, reporter: Reporter, *, stored: bool = False) -> Schema:
    parsed = parse(source, reporter)
    check_schema(parsed, reporter, stored=stored)
    return parsed.schema


def _as_source(source: Source | str) -> Source:
    return Source(source) if isinstance(source, str) else source
