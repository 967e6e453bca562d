"""Root copies: the files beside the manifest that repeat the accepted schema of main.

Owns their names and their bytes. The manifest is the authority; the files are copies for people
and tools, rewritten when they lag.
"""

from __future__ import annotations

from omnigraph.errors import StorageError
from omnigraph.manifest.entries import SchemaContract
from omnigraph.manifest.snapshot import SOURCE_NAME, state_of
from omnigraph.storage.objects.control_objects import ControlObjects
from omnigraph.storage.objects.location import Location

IR_NAME = "_schema.ir.json"
STATE_NAME = "__schema_state.json"
COPY_NAMES = (SOURCE_NAME, IR_NAME, STATE_NAME)


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
