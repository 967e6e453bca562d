"""The schema of a new graph: compiled in an identity domain of its own, its patterns judged.

Never reads or writes: the copies of a schema in the graph root are manifest/root_copies.py.
"""

from __future__ import annotations

from omnigraph.errors import quoted
from omnigraph.lang.diagnostics import Phase, Reporter
from omnigraph.lang.schema.compile import CompiledSchema, compile_schema
from omnigraph.lang.schema.syntax.tree import Argument, Constraint, Node, constraints_of
from omnigraph.lang.source import Source
from omnigraph.rows.patterns import refusal
from omnigraph.storage.objects.clock import new_id


def first_schema(source: Source) -> CompiledSchema:
    """A schema for a new graph, in an identity domain of its own."""
    schema = compile_schema(source, domain=new_id())
    judge_patterns(schema)
    return schema


def judge_patterns(schema: CompiledSchema) -> None:
    """Refuse a `@check` that its engine does not take, before any row is held against it."""
    reporter = Reporter(schema.source)
    for declaration in schema.syntax.declarations:
        members = declaration.members if isinstance(declaration, Node) else ()
        for constraint in constraints_of(members):
            match constraint:
                case Constraint("check", (_, Argument("string", pattern) as argument)):
                    complaint = refusal(pattern)
                case _:
                    continue
            if complaint is not None:
                message = f"`@check`: RE2 does not take the pattern: {quoted(complaint)}"
                reporter.report(argument.span, message, phase=Phase.CATALOG)
    reporter.raise_if_any()
