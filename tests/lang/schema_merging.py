"""Merging schemas in tests: versions that grow from one base, and what both directions share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from omnigraph.lang.schema.compile import compile_schema, shape_of_source
from omnigraph.lang.schema.ir.ir import IRInterface, SchemaIR, ir_from_json, validate_ir
from omnigraph.lang.schema.ir.shape import Shape
from omnigraph.lang.schema.merge.conflicts import Resolve, SchemaConflict, Side, other_side
from omnigraph.lang.schema.merge.model import SchemaVersion
from omnigraph.lang.schema.merge.operation import SchemaMerge, merge_schemas
from omnigraph.lang.schema.merge.same_things import Unified

DOMAIN = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
_WORDS = {"source": "target", "target": "source", "ours": "theirs", "theirs": "ours"}


def version(text: str, before: SchemaVersion | None = None, first_id: int = 1) -> SchemaVersion:
    """A schema, applied to the one before it; ids of what is new begin at ``first_id``."""
    accepted = None if before is None else before.ir
    found = compile_schema(text, accepted=accepted, domain=DOMAIN, first_id=first_id)
    return SchemaVersion(text, found.ir)


@dataclass(frozen=True)
class Wrote:
    """Which values the sides wrote, by `Type` or `Type.property` as the side calls them."""

    source: SchemaVersion
    target: SchemaVersion
    names: Mapping[Side, frozenset[str]] = field(default_factory=dict)

    def wrote_values(self, side: Side, type_id: int, property_id: int | None) -> bool:
        ir = (self.source if side == "source" else self.target).ir
        # A side is asked of its own ids only, and never of what has no rows.
        owner = next(each for each in ir.types() if each.type_id == type_id)
        assert not isinstance(owner, IRInterface)
        if property_id is None:
            return owner.name in self.names.get(side, ())
        name = next(each.name for each in owner.properties if each.property_id == property_id)
        return f"{owner.name}.{name}" in self.names.get(side, ())


@dataclass(frozen=True)
class Sides:
    """A merge to be done, in either direction."""

    base: SchemaVersion
    source: SchemaVersion
    target: SchemaVersion
    wrote: Mapping[Side, frozenset[str]] = field(default_factory=dict)
    resolve: Resolve = None
    unified: Unified = ()

    def merged(self) -> SchemaMerge:
        """The merge; what it says of itself holds."""
        touched = Wrote(self.source, self.target, self.wrote)
        found = merge_schemas(
            self.base,
            self.source,
            self.target,
            touched=touched,
            unified=self.unified,
            resolve=self.resolve,
        )
        self._check(found)
        return found

    def swapped(self) -> Sides:
        """The same from the other side."""
        resolve = self.resolve
        if isinstance(resolve, str):
            resolve = _WORDS[resolve]
        elif resolve is not None:
            resolve = {name: _WORDS[side] for name, side in resolve.items()}
        wrote = {other_side(side): names for side, names in self.wrote.items()}
        return replace(self, source=self.target, target=self.source, wrote=wrote, resolve=resolve)

    def _check(self, found: SchemaMerge) -> None:
        if found.ir is None:
            assert found.conflicts
            assert found.source_text is None
            return
        assert found.conflicts == ()
        assert found.source_text is not None
        validate_ir(found.ir)
        assert ir_from_json(found.ir.render()) == found.ir
        again = compile_schema(found.source_text, accepted=found.ir)
        assert again.ir == found.ir
        assert again.ir.schema_ir_hash == found.ir.schema_ir_hash
        versions = (self.base, self.source, self.target)
        assert found.ir.next_identity_id == max(each.ir.next_identity_id for each in versions)
        shape = shape_of(found)
        for side in (self.source, self.target):
            if shape_of_source(side.text) == shape:
                assert found.source_text in (self.source.text, self.target.text)
        self._check_ids(found, found.ir)

    def _check_ids(self, found: SchemaMerge, ir: SchemaIR) -> None:
        """What is in the merge is on a side, and where the target has it, it is the target's."""
        merged = set(ids_by_name(ir).values())
        for side, ids in (("target", found.ids.target), ("source", found.ids.source)):
            own = set(ids_by_name(getattr(self, side).ir).values())
            assert set(ids.values()) <= own
            assert ids.keys() <= merged
        assert all(merged_id == own for merged_id, own in found.ids.target.items())
        assert merged <= found.ids.target.keys() | found.ids.source.keys() | found.ids.base.keys()
        assert found.unified == {
            own: merged_id for merged_id, own in found.ids.source.items() if own != merged_id
        }


def shape_of(found: SchemaMerge) -> Shape:
    assert found.source_text is not None
    return shape_of_source(found.source_text)


def ids_by_name(ir: SchemaIR) -> dict[str, int]:
    """Every id of a schema by what it is of."""
    found: dict[str, int] = {}
    for each in ir.types():
        found[f"{each.kind} {each.name}"] = each.type_id
        if not isinstance(each, IRInterface):
            found[f"{each.kind} {each.name} table"] = each.table_incarnation_id
        found |= {f"{each.kind} {each.name}.{p.name}": p.property_id for p in each.properties}
    return found


def mirrored(conflicts: Iterable[SchemaConflict]) -> set[tuple[object, ...]]:
    """What conflicts say as the other direction sees them."""
    return {
        (each.kind, each.entity_kind, each.base, each.target, each.source) for each in conflicts
    }


def said(conflicts: Iterable[SchemaConflict]) -> set[tuple[object, ...]]:
    """What conflicts say, but for their words."""
    return {
        (each.kind, each.entity_kind, each.base, each.source, each.target) for each in conflicts
    }
