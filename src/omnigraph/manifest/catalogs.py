"""The typed catalog of a manifest's schema entry.

Owns reading and checking it, once per schema: an entry is immutable, so its
catalog is shared by every handle of the process.
"""

from __future__ import annotations

from functools import lru_cache

from omnigraph.lang.schema.catalog import Catalog
from omnigraph.lang.schema.compile import shape_of_source
from omnigraph.lang.schema.ir.catalog_build import catalog_from_ir
from omnigraph.lang.schema.ir.reader import ir_from_json
from omnigraph.lang.schema.ir.state import SchemaState, check_state, sealed
from omnigraph.lang.source import Source
from omnigraph.manifest.entries import SchemaContract

SOURCE_NAME = "_schema.pg"


@lru_cache(maxsize=16)
def catalog_of(contract: SchemaContract) -> Catalog:
    """The catalog of an entry; refuses one whose parts do not fit together."""
    ir = ir_from_json(contract.ir)
    shape = shape_of_source(Source(contract.source, SOURCE_NAME), stored=True)
    check_state(state_of(contract), ir, shape)
    return catalog_from_ir(ir)


def state_of(contract: SchemaContract) -> SchemaState:
    """The hashes and the identity domain of an entry, as its state file records them."""
    return sealed(contract.shape_hash, contract.ir_hash, contract.identity_domain)
