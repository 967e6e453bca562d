"""The two languages: `.pg` schemas and `.gq` queries, from text to typed plan.

Reads as a pipeline: tokens, parser, syntax tree, check, plan. Pure functions
over text and frozen data: never does I/O, never imports Arrow or an engine.
"""

from __future__ import annotations

from omnigraph.lang.lint_report import LintReport
from omnigraph.lang.query.compile import CompiledQuery, compile_query
from omnigraph.lang.query.format import format_queries
from omnigraph.lang.query.lint import lint_queries
from omnigraph.lang.query.params import coerce_params
from omnigraph.lang.query.plan_text import render_plan
from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.compile import CompiledSchema, compile_schema
from omnigraph.lang.schema.lint import lint_schema
from omnigraph.lang.schema.migration.planner import plan_migration
from omnigraph.lang.schema.syntax.format import format_schema
from omnigraph.lang.source import Source

__all__ = [
    "Catalog",
    "CompiledQuery",
    "CompiledSchema",
    "LintReport",
    "Source",
    "coerce_params",
    "compile_query",
    "compile_schema",
    "format_queries",
    "format_schema",
    "lint_queries",
    "lint_schema",
    "plan_migration",
    "render_plan",
]
