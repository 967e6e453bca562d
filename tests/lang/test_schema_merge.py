"""Merging schemas, by cases from fixture files and by random edits of two sides.

Inputs of a case: `base`, `source` and `target` (several versions of a side are separated by a
line `~~~`), `wrote` (lines like `source Crew.age`), `resolve` (a side for everything, or lines
like `Crew.age = theirs`). Every case is merged in both directions, which must agree.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.lang.schema.merge.conflicts import Resolve, SchemaConflict, Side
from omnigraph.lang.schema.merge.model import SchemaVersion
from omnigraph.lang.schema.merge.operation import SchemaMerge
from tests.lang.bless import bless
from tests.lang.fixture_file import Case, load_cases
from tests.lang.schema_merging import Sides, ids_by_name, mirrored, said, shape_of, version

PATHS = sorted((Path(__file__).parent / "fixtures" / "merge").glob("*.txt"))
CASES = [(path, case) for path in PATHS for case in load_cases(path)]
INPUTS = ("base", "source", "target", "wrote", "resolve")


@pytest.mark.parametrize(
    ("path", "case"), CASES, ids=[f"{path.stem}:{case.name}" for path, case in CASES]
)
def test_case(path: Path, case: Case, request: pytest.FixtureRequest) -> None:
    expected = {name: text for name, text in case.sections.items() if name not in INPUTS}
    sides = sides_of(case)
    found, back = sides.merged(), sides.swapped().merged()
    actual = outcome(sides, found)
    if request.config.getoption("--bless"):
        bless(path, case.name, {name: actual.get(name, "") for name in expected})
        return
    assert actual["conflicts"] == expected.get("conflicts", "")
    for name, text in expected.items():
        assert text.strip(), f"the section {name!r} expects nothing"
        assert actual[name] == text
    assert mirrored(back.conflicts) == said(found.conflicts)
    if found.ir is not None:
        assert shape_of(back) == shape_of(found)


def test_the_cases_are_many_and_their_names_differ() -> None:
    names = [(path, case.name) for path, case in CASES]
    assert len(set(names)) == len(names)
    assert len(names) >= 90


def sides_of(case: Case) -> Sides:
    sections = case.sections
    base = grown(sections["base"], None, 1)
    source = grown(sections["source"], base, 1000)
    target = grown(sections["target"], base, 2000)
    wrote: dict[Side, frozenset[str]] = {}
    for side in ("source", "target"):
        lines = [line.split() for line in sections.get("wrote", "").splitlines()]
        wrote[side] = frozenset(name for word, name in lines if word == side)
    return Sides(base, source, target, wrote, resolve_of(sections.get("resolve")))


def grown(texts: str, before: SchemaVersion | None, first_id: int) -> SchemaVersion:
    for number, text in enumerate(texts.split("~~~\n")):
        before = version(text, before, first_id + 100 * number)
    assert before is not None
    return before


def resolve_of(text: str | None) -> Resolve:
    if text is None or "=" not in text:
        return None if text is None else text.strip()
    lines = (line.split("=") for line in text.splitlines())
    return {name.strip(): side.strip() for name, side in lines}


def outcome(sides: Sides, found: SchemaMerge) -> dict[str, str]:
    """Everything a case may expect, as text."""
    names = {
        identity: name
        for side in (sides.source, sides.target)
        for name, identity in ids_by_name(side.ir).items()
    }
    merged = {} if found.ir is None else ids_by_name(found.ir)
    return {
        "merged": found.source_text or "",
        "conflicts": "".join(map(conflict_text, found.conflicts)),
        "resolved": "".join(
            f"{each.kind} {place(each)} = {side}\n" for each, side in found.resolved
        ),
        "unused": "".join(f"{name}\n" for name in found.unused),
        "unified": "".join(
            f"{names[theirs]} {theirs} -> {ours}\n" for theirs, ours in found.unified.items()
        ),
        "ids": "".join(f"{name} {identity}\n" for name, identity in merged.items()),
    }


def place(conflict: SchemaConflict) -> str:
    name = conflict.type_name
    name = name if conflict.property is None else f"{name}.{conflict.property}"
    return f"{conflict.entity_kind}:{name}"


def conflict_text(conflict: SchemaConflict) -> str:
    found = [f"{conflict.kind} {place(conflict)}", f"  {conflict.message}"]
    for side in ("base", "source", "target"):
        text = getattr(conflict, side)
        if text is not None:
            found.append(f"  {side}: {' '.join(text.split())}")
    return "".join(f"{line}\n" for line in found)
