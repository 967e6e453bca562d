"""The schema contract in its parts: the IR and the columns that a manifest's entry holds.

Owns taking an entry apart, once for everybody who asks, and making one. What its parts mean is
the language's business.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from omnigraph.lang.schema.columns import ColumnNames, columns_from_text
from omnigraph.lang.schema.compile import CompiledSchema
from omnigraph.lang.schema.ir.ir import SchemaIR, ir_from_json
from omnigraph.manifest.entries import SchemaContract

HARD_DROP = "gives_up_history"
"""What a commit notes whose schema change gave up what it dropped: older commits may go."""


@dataclass(frozen=True, slots=True)
class AcceptedSchema:
    """The schema of a state, and the columns of its tables."""

    ir: SchemaIR
    columns: ColumnNames


@lru_cache(maxsize=16)
def stored_ir(text: str) -> SchemaIR:
    """The IR that a text holds, read once for all who ask."""
    return ir_from_json(text)


@lru_cache(maxsize=16)
def accepted_schema(contract: SchemaContract) -> AcceptedSchema:
    """The accepted schema that a manifest holds."""
    ir = stored_ir(contract.ir)
    return AcceptedSchema(ir, columns_from_text(contract.columns, ir))


def contract_of(schema: CompiledSchema, columns: ColumnNames) -> SchemaContract:
    """The manifest's entry for a compiled schema and the columns of its tables."""
    return SchemaContract(
        schema.source.text,
        schema.ir.render(),
        schema.shape.schema_shape_hash,
        schema.ir.schema_ir_hash,
        schema.ir.schema_identity_domain,
        columns.to_text(schema.ir),
    )
