"""The schema contract: the manifest's entry, and its copies in the graph root.

Owns both spellings of the accepted schema. The manifest is the authority; the
files are copies for people and tools, rewritten when they lag.
"""

from __future__ import annotations

from omnigraph.errors import StorageError, quoted
from omnigraph.lang.diagnostics import Phase, Reporter
from omnigraph.lang.schema.compile import CompiledSchema, compile_schema
from omnigraph.lang.schema.syntax.tree import Argument, Constraint, Node, constraints_of
from omnigraph.lang.source import Source
from omnigraph.manifest.entries import SchemaContract
from omnigraph.manifest.snapshot import SOURCE_NAME, state_of
from omnigraph.rows.patterns import refusal
from omnigraph.storage.objects.clock import new_id
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location

IR_NAME = "_schema.ir.json"
STATE_NAME = "__schema_state.json"
COPY_NAMES = (SOURCE_NAME, IR_NAME, STATE_NAME)


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


def copies_of(contract: SchemaContract) -> dict[str, bytes]:
    """The files of the graph root, by name."""
    return {
        SOURCE_NAME: contract.source.encode(),
        IR_NAME: contract.ir.encode(),
        STATE_NAME: state_of(contract).render().encode(),
    }


def lagging_copies(objects: ControlObjects, contract: SchemaContract) -> list[str]:
    """The copies that are missing or say something else than the manifest."""
    return [
        name for name, expected in copies_of(contract).items() if objects.read(name) != expected
    ]


def refresh_copies(root: Location, contract: SchemaContract) -> None:
    """Have the copies say what the manifest does; those that cannot be written lag till later."""
    objects = ControlObjects(root)
    try:
        write_copies(objects, contract, lagging_copies(objects, contract))
    except StorageError:
        return  # whoever opens the graph next writes them


def write_copies(objects: ControlObjects, contract: SchemaContract, names: list[str]) -> None:
    """Write some copies anew."""
    copies = copies_of(contract)
    for name in names:
        objects.replace(name, copies[name])
