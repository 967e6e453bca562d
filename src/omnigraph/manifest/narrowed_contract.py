"""Narrowed contracts: the schema of a state as an actor sees it.

Owns making it, under the identities and columns that it has. Never decides what is hidden.
"""

from __future__ import annotations

from functools import lru_cache

from omnigraph.lang.diagnostics import Reporter
from omnigraph.lang.schema.columns import ColumnNames, TableColumns
from omnigraph.lang.schema.narrowed import Narrowing
from omnigraph.lang.schema.syntax.parser import parse_schema
from omnigraph.lang.source import Source
from omnigraph.manifest.entries import SchemaContract
from omnigraph.manifest.limits import ReadLimits
from omnigraph.manifest.schema_contract import accepted_schema, contract_of
from omnigraph.manifest.snapshot import SCHEMAS_KEPT


@lru_cache(maxsize=SCHEMAS_KEPT)
def narrowed_contract(contract: SchemaContract, limits: ReadLimits) -> SchemaContract:
    """The schema that an actor sees, under the identities that it has."""
    source = Source(contract.source)
    syntax = parse_schema(source, Reporter(source))
    accepted = accepted_schema(contract)
    compiled = Narrowing(limits.shows, limits.hidden).of(syntax, accepted.ir)
    tables = {}
    for table in compiled.ir.tables():
        stored = accepted.columns[table.type_id]
        shown = {one.property_id: stored[one.property_id] for one in table.properties}
        behind = set(stored.by_property.values()) - set(shown.values())
        tables[table.type_id] = TableColumns(shown, (*stored.retired, *sorted(behind)))
    return contract_of(compiled, ColumnNames(tables))
