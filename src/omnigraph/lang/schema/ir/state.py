"""`__schema_state.json`: the seal over the accepted schema.

Owns the small document that ties source, shape and IR together, and the check
that they still agree. Never reads a file: callers bring the texts.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.errors import SchemaError
from omnigraph.lang.schema.ir.document import read_document
from omnigraph.lang.schema.ir.encoding import Json, pretty
from omnigraph.lang.schema.ir.ir import IR_VERSION, SchemaIR
from omnigraph.lang.schema.ir.shape import Shape

FORMAT_VERSION = 2


@dataclass(frozen=True, slots=True)
class SchemaState:
    """The hashes of the accepted schema and the domain its ids live in."""

    schema_shape_hash: str
    schema_ir_hash: str
    schema_identity_domain: str

    def to_json(self) -> Json:
        """The stored document."""
        return {
            "format_version": FORMAT_VERSION,
            "schema_shape_hash": self.schema_shape_hash,
            "schema_ir_hash": self.schema_ir_hash,
            "schema_identity_version": IR_VERSION,
            "schema_identity_domain": self.schema_identity_domain,
        }

    def render(self) -> str:
        """The text of `__schema_state.json`."""
        return pretty(self.to_json())


def state_of(shape: Shape, ir: SchemaIR) -> SchemaState:
    """The state that seals a shape and its IR."""
    return SchemaState(shape.schema_shape_hash, ir.schema_ir_hash, ir.schema_identity_domain)


def state_from_json(text: str | bytes) -> SchemaState:
    """The state a stored text holds; SchemaError says what is wrong with any other text."""
    version, shape_hash, ir_hash, identity_version, domain = read_document(
        text, "schema state"
    ).fields(
        "format_version",
        "schema_shape_hash",
        "schema_ir_hash",
        "schema_identity_version",
        "schema_identity_domain",
    )
    if version.integer(0, 2**32) != FORMAT_VERSION:
        version.fail(f"expected version {FORMAT_VERSION}")
    if identity_version.integer(0, 2**32) != IR_VERSION:
        identity_version.fail(f"expected version {IR_VERSION}")
    return SchemaState(shape_hash.string(), ir_hash.string(), domain.string())


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
