"""The seal of a schema that was just compiled."""

from __future__ import annotations

from omnigraph.lang.schema.compile import SchemaState, sealed
from omnigraph.lang.schema.ir.ir import SchemaIR
from omnigraph.lang.schema.ir.shape import Shape


def state_of(shape: Shape, ir: SchemaIR) -> SchemaState:
    """The state that seals a shape and its IR."""
    return sealed(shape.schema_shape_hash, ir.schema_ir_hash, ir.schema_identity_domain)
