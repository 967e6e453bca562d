"""What a diff must say, told from two exports: entities by identity, properties by their ids."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import omnigraph as og
from omnigraph.history.diff import Diff
from omnigraph.lang.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.manifest.snapshot import catalog_of
from tests.history.changing import Entity, State, state_of, told

Told = tuple[str, str, str, str]


def state_at(graph: og.Graph, ref: str) -> tuple[Catalog, State]:
    """What a branch or a commit says, and the types it says it with."""
    if ref in graph.branches.list():
        return catalog_of(graph.snapshot(ref).schema), state_of(graph.export(branch=ref))
    return catalog_of(graph.snapshot(commit=ref).schema), state_of(graph.export(snapshot=ref))


def _type(catalog: Catalog, entity: Entity) -> NodeType | EdgeType:
    kind, name, _ = entity
    return catalog.nodes[name] if kind == "node" else catalog.edges[name]


def _by_identity(catalog: Catalog, state: State) -> dict[tuple[int, int, str], Entity]:
    return {
        (type_.type_id, type_.incarnation, entity[2]): entity
        for entity in state
        for type_ in [_type(catalog, entity)]
    }


def _values(catalog: Catalog, entity: Entity, said: dict[str, Any]) -> dict[Any, Any]:
    properties = _type(catalog, entity).properties
    found = {properties[name].property_id: value for name, value in said["properties"].items()}
    return {**found, **said.get("endpoints", {})}


def _names(catalog: Catalog) -> dict[tuple[int, int], tuple[str, str]]:
    types: list[NodeType | EdgeType] = [*catalog.nodes.values(), *catalog.edges.values()]
    return {(type_.type_id, type_.incarnation): (type_.kind, type_.name) for type_ in types}


def expected(graph: og.Graph, a: str, b: str) -> list[Told]:
    """The differences, in the order of types by the key they have last, then of ids."""
    (old_catalog, old), (new_catalog, new) = state_at(graph, a), state_at(graph, b)
    before, after = _by_identity(old_catalog, old), _by_identity(new_catalog, new)
    names = {**_names(old_catalog), **_names(new_catalog)}
    found: list[Told] = []
    for key in before.keys() | after.keys():
        kind, name = names[key[:2]]
        if key not in after:
            found.append(("delete", kind, name, key[2]))
        elif key not in before:
            found.append(("insert", kind, name, key[2]))
        else:
            was = _values(old_catalog, before[key], old[before[key]])
            now = _values(new_catalog, after[key], new[after[key]])
            if any(was.get(known) != now.get(known) for known in was.keys() | now.keys()):
                found.append(("update", kind, name, key[2]))
    return found


def agree(graph: og.Graph, a: str, b: str) -> Diff:
    """The diff from one state to another, which says what their exports say."""
    found = graph.diff(a, b)
    changes = list(found)
    wanted = expected(graph, a, b)
    assert sorted(told(changes)) == sorted(wanted)
    assert [(one.kind, one.type.name) for one in changes] == sorted(
        (one.kind, one.type.name) for one in changes
    )
    assert {
        (counted.kind, counted.type_name): (counted.inserted, counted.updated, counted.deleted)
        for counted in found.stats
    } == _counts(wanted)
    _, old = state_at(graph, a)
    _, new = state_at(graph, b)
    for change in changes:
        for image, state in ((change.before, old), (change.after, new)):
            if image is not None:
                said = _said(state, change.kind, change.id)
                assert image.properties in said
    return found


def _said(state: State, kind: str, id_: str) -> list[Any]:
    return [
        said["properties"]
        for entity, said in state.items()
        if (entity[0], entity[2]) == (kind, id_)
    ]


def _counts(changes: Iterable[Told]) -> dict[tuple[str, str], tuple[int, int, int]]:
    found: dict[tuple[str, str], list[int]] = {}
    for op, kind, name, _ in changes:
        counted = found.setdefault((kind, name), [0, 0, 0])
        counted[("insert", "update", "delete").index(op)] += 1
    return {key: (counted[0], counted[1], counted[2]) for key, counted in found.items()}
