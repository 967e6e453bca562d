"""`__schema_state.json`: the seal over the accepted schema.

Owns the small document that ties source, shape and IR together, and the check
that they still agree. Never reads a file: callers bring the texts.
"""

from __future__ import annotations

from typing import Literal

from omnigraph.errors import SchemaError
from omnigraph.lang.schema.ir.document import Document, Text, read_document
from omnigraph.lang.schema.ir.ir import IR_VERSION, SchemaIR
from omnigraph.lang.schema.ir.shape import Shape

FORMAT_VERSION: Literal[2] = 2
_CHOICES = {
    "format_version": f"expected version {FORMAT_VERSION}",
    "schema_identity_version": f"expected version {IR_VERSION}",
}


class SchemaState(Document, frozen=True):
    """The hashes of the accepted schema and the domain its ids live in."""

    format_version: Literal[2]
    schema_shape_hash: Text
    schema_ir_hash: Text
    schema_identity_version: Literal[2]
    schema_identity_domain: Text


def sealed(shape_hash: str, ir_hash: str, domain: str) -> SchemaState:
    """The state of a schema with these hashes and this domain."""
    return SchemaState(FORMAT_VERSION, shape_hash, ir_hash, IR_VERSION, domain)


def state_of(shape: Shape, ir: SchemaIR) -> SchemaState:
    """The state that seals a shape and its IR."""
    return sealed(shape.schema_shape_hash, ir.schema_ir_hash, ir.schema_identity_domain)


def state_from_json(text: str | bytes) -> SchemaState:
    """The state a stored text holds; SchemaError says what is wrong with any other text."""
    return read_document(text, SchemaState, "schema state", _CHOICES)


def check_state(state: SchemaState, ir: SchemaIR, shape: Shape) -> None:
    """Refuse a state that does not seal this IR and the shape of this source."""
    if state.schema_identity_domain != ir.schema_identity_domain:
        raise SchemaError("the schema state names another identity domain than the schema IR")
    if state.schema_ir_hash != ir.schema_ir_hash:
        raise SchemaError("the schema IR was changed since it was accepted")
    if state.schema_shape_hash != shape.schema_shape_hash:
        raise SchemaError(
            "the schema source was changed since it was accepted: apply it as a schema change"
        )
