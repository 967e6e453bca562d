"""What the merge tests share: rows to write, graphs to copy, and what a merge is told to have done.

Content is compared by export lines, without the ids that were generated.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import MergeConflict, MergeConflicts
from omnigraph.history.merge.conflicts import MergedRowCounts, MergeResult
from tests.write.writing import unchanged

Line = dict[str, Any]
Told = tuple[str, str, str, str | None, Any, Any, Any]
"""A conflict: kind, type, id, property, and what base, source and target have."""

_GENERATED = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")


def node(type_name: str, name: str, **data: Any) -> Line:
    """A line that loads a node whose key is its name."""
    return {"type": type_name, "data": {"name": name, **data}}


def edge(type_name: str, id_: str, source: str, target: str, **data: Any) -> Line:
    """A line that loads an edge under an id of ours."""
    return {"edge": type_name, "from": source, "to": target, "data": {"id": id_, **data}}


def put(graph: og.Graph, branch: str, *lines: Line) -> None:
    """Insert or replace rows."""
    graph.load(list(lines), mode="merge", branch=branch)


def run(graph: og.Graph, branch: str, *statements: str) -> None:
    """Run statements, each as its own commit."""
    for statement in statements:
        graph.mutate(f"query q() {{ {statement} }}", branch=branch)


def delete(type_name: str, name: str) -> str:
    """The statement that deletes a node by its name."""
    return f'delete {type_name} where name = "{name}"'


def update(type_name: str, name: str, **values: Any) -> str:
    """The statement that sets properties of a node."""
    texts = ", ".join(f"{key}: {json.dumps(value)}" for key, value in values.items())
    return f'update {type_name} set {{ {texts} }} where name = "{name}"'  # noqa: S608 - no SQL


def copy_of(prepared: Path, place: Path) -> og.Graph:
    """A graph of one's own, like the prepared one."""
    shutil.copytree(prepared, place)
    return og.open(place)


# -- what a graph says -----------------------------------------------------------------------


def content(graph: og.Graph, branch: str = "main") -> list[Line]:
    """Everything on a branch in a fixed order, without generated ids."""
    return ordered(json.loads(line) for line in graph.export(branch=branch))


def ordered(lines: Iterable[Line]) -> list[Line]:
    """The lines in a fixed order, without generated ids."""
    return sorted((_without_generated(line) for line in lines), key=_text)


def rows_of(graph: og.Graph, type_name: str, branch: str = "main") -> dict[str, Line]:
    """The rows of one type by id, as JSON has them; edges have `from` and `to`."""
    found: dict[str, Line] = {}
    for text in graph.export(branch=branch, types=[type_name]):
        line = json.loads(text)
        data = line.pop("data")
        id_ = data.pop("id")
        assert id_ not in found, f"{type_name} repeats the id {id_}"
        ends = {key: line[key] for key in ("from", "to") if key in line}
        found[id_] = {**ends, **data}
    return found


def _without_generated(line: Line) -> Line:
    data = {key: value for key, value in line["data"].items() if key != "id"}
    id_ = line["data"].get("id")
    if id_ is not None and not _GENERATED.fullmatch(id_):
        data["id"] = id_
    return {**line, "data": data}


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


# -- what a merge says -----------------------------------------------------------------------


def told(conflicts: Iterable[MergeConflict]) -> list[Told]:
    """Conflicts as tuples in a fixed order; a generated id is `new`."""
    return in_order(
        (
            found.kind,
            found.type_name,
            "new" if _GENERATED.fullmatch(found.entity_id) else found.entity_id,
            found.property,
            found.base,
            found.source,
            found.target,
        )
        for found in conflicts
    )


def in_order(conflicts: Iterable[Told]) -> list[Told]:
    """Conflicts in a fixed order."""
    return sorted(conflicts, key=_text)


def kinds(conflicts: Iterable[MergeConflict]) -> list[tuple[str, str, str]]:
    """The kind, type and id of every conflict, in the order they are told."""
    return [(found.kind, found.type_name, found.entity_id) for found in conflicts]


def refused(
    graph: og.Graph, source: str, into: str = "main", **options: Any
) -> Sequence[MergeConflict]:
    """The conflicts that stop a merge, which leaves both branches alone."""
    before = content(graph, into)
    with (
        unchanged(graph, into),
        unchanged(graph, source),
        pytest.raises(MergeConflicts) as caught,
    ):
        graph.branches.merge(source, into, **options)
    assert content(graph, into) == before
    return caught.value.conflicts


def merged_as_foretold(
    graph: og.Graph, source: str, into: str = "main", **options: Any
) -> MergeResult:
    """Merge; a dry run beforehand has told the outcome, and the rows that then changed."""
    foretold = graph.branches.merge(source, into, dry_run=True, **options)
    assert foretold.commit is None
    types = [key.split(":")[1] for key in graph.snapshot(into).tables]
    before = {name: rows_of(graph, name, into) for name in types}
    result = graph.branches.merge(source, into, **options)
    after = {name: rows_of(graph, name, into) for name in types}
    assert result.outcome == foretold.outcome
    assert told(found for found, _ in result.resolved) == told(
        found for found, _ in foretold.resolved
    )
    counted = {key.split(":")[1]: counts for key, counts in foretold.counts.items()}
    for name in types:
        expected = _changes(before[name], after[name])
        found = counted.get(name, MergedRowCounts())
        assert (found.inserted, found.updated, found.deleted) == expected, name
    return result


def _changes(before: dict[str, Line], after: dict[str, Line]) -> tuple[int, int, int]:
    both = before.keys() & after.keys()
    return (
        len(after.keys() - both),
        sum(_text(before[id_]) != _text(after[id_]) for id_ in both),
        len(before.keys() - both),
    )
