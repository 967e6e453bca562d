"""Merging schemas, by cases from fixture files and by random edits of two sides.

Inputs of a case: `base`, `source` and `target` (several versions of a side are separated by a
line `~~~`), `wrote` (lines like `source Crew.age`), `resolve` (a side for everything, or lines
like `Crew.age = theirs`). Every case is merged in both directions, which must agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.lang.schema.compile import shape_of_source
from omnigraph.lang.schema.ir.ir import (
    CheckConstraint,
    IREdge,
    IRInterface,
    IRNode,
    IRProperty,
    PropertyField,
    RangeConstraint,
    SchemaIR,
)
from omnigraph.lang.schema.merge.conflicts import Resolve, SchemaConflict, Side
from omnigraph.lang.schema.merge.model import SchemaVersion
from omnigraph.lang.schema.merge.operation import SchemaMerge
from tests.lang.bless import bless
from tests.lang.fixture_file import Case, load_cases
from tests.lang.schema_edits import versions
from tests.lang.schema_merging import Sides, ids_by_name, mirrored, said, shape_of, version
from tests.profile import costly

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


# -- random edits ----------------------------------------------------------------------


@st.composite
def two_sides(draw: st.DrawFn) -> Sides:
    base = draw(versions(None, 100, 3))
    source = draw(versions(base, 1000))
    target = draw(versions(base, 2000))
    names = {
        side: sorted(
            {name.partition(" ")[2] for name in ids_by_name(found.ir) if name[0] != "i"}
            - {f"{each.name} table" for each in found.ir.types()}
        )
        for side, found in (("source", source), ("target", target))
    }
    wrote: dict[Side, frozenset[str]] = {
        "source": frozenset(draw(st.lists(st.sampled_from(names["source"] or [""]), max_size=2))),
        "target": frozenset(draw(st.lists(st.sampled_from(names["target"] or [""]), max_size=2))),
    }
    return Sides(base, source, target, wrote)


@pytest.mark.slow
@costly
@given(two_sides())
def test_both_sides_are_in_a_merge_whatever_its_direction(sides: Sides) -> None:
    found, back = sides.merged(), sides.swapped().merged()
    assert {each.kind for each in found.conflicts} == {each.kind for each in back.conflicts}
    if found.ir is None:
        return
    assert shape_of(found) == shape_of(back)
    before, merged = facts(sides.base.ir, found.ids.base), facts(found.ir, {})
    moved = injected(sides.base.ir) ^ injected(sides.source.ir)
    moved |= injected(sides.base.ir) ^ injected(sides.target.ir)
    for changed, ids in ((sides.source, found.ids.source), (sides.target, found.ids.target)):
        after = facts(changed.ir, ids)
        # What one side moves between a node and its interface, the other may hold there.
        told = {fact for fact in before ^ after if not moved & about(fact)}
        assert told & after <= merged
        assert not told & before & merged


@pytest.mark.slow
@costly
@given(two_sides())
def test_what_one_side_alone_changed_is_that_side(sides: Sides) -> None:
    for source, target in ((sides.source, sides.base), (sides.base, sides.target)):
        changed = target if source == sides.base else source
        found = Sides(sides.base, source, target).merged()
        assert found.ir == changed.ir
        # Where only comments and hints differ, the target's text is as good.
        if shape_of(found) != shape_of_source(target.text):
            assert found.source_text == changed.text


@pytest.mark.slow
@costly
@given(two_sides(), st.data())
def test_merging_again_sees_one_thing(sides: Sides, data: st.DataObject) -> None:
    found = sides.merged()
    if found.ir is None or found.source_text is None:
        return
    merged = SchemaVersion(found.source_text, found.ir)
    nothing_new = replace(sides, base=sides.source, target=merged, wrote={}, unified=found.unified)
    assert nothing_new.merged().ir == merged.ir
    back = nothing_new.swapped().merged()
    assert shape_of(back) == shape_of(found)
    # Both go on, and meet again: what became one is still one.
    source = data.draw(versions(sides.source, 3000, 2))
    target = data.draw(versions(merged, 4000, 2))
    again = replace(nothing_new, source=source, target=target)
    there, here = again.merged(), again.swapped().merged()
    assert {each.kind for each in there.conflicts} == {each.kind for each in here.conflicts}
    if there.ir is not None:
        assert shape_of(there) == shape_of(here)


@pytest.mark.slow
@costly
@given(two_sides(), st.sampled_from(("ours", "theirs")))
def test_a_side_for_everything_leaves_nothing_open(sides: Sides, side: str) -> None:
    found = replace(sides, resolve=side).merged()
    assert found.conflicts == ()
    if found.resolved:
        assert sides.merged().ir is None


Fact = tuple[object, ...]


def facts(ir: SchemaIR, ids: Mapping[int, int]) -> set[Fact]:
    """Everything that a schema says of itself, one by one; ``ids`` lead from other ids to its own.

    What interfaces inject follows from them and is left out.
    """
    merged = {own: identity for identity, own in ids.items()}

    def known(identity: int) -> int:
        return merged.get(identity, identity)

    found: set[Fact] = set()
    for each in ir.types():
        owner = known(each.type_id)
        found.add((owner, "name", each.name))
        for p in each.properties:
            if p.declared_directly:
                found |= {(owner, known(p.property_id), *fact) for fact in said_of(p, known)}
        if not isinstance(each, IRInterface):
            found |= {(owner, "note", note) for note in each.annotations}
            found |= {(owner, *fact) for fact in rules(each, known)}
        if isinstance(each, IRNode):
            found |= {(owner, "implements", known(ref.type_id)) for ref in each.implements}
        elif isinstance(each, IREdge):
            ends = (known(each.from_type.type_id), known(each.to_type.type_id))
            found |= {(owner, "ends", *ends), (owner, "card", each.cardinality)}
    return found


def about(fact: Fact) -> set[object]:
    """The properties that a fact is about, among other things."""
    members = fact[2] if len(fact) > 2 else None
    return {fact[1], *(members if isinstance(members, frozenset) else ())}


def injected(ir: SchemaIR) -> set[object]:
    """The properties that nodes have from interfaces."""
    every = (property_ for each in ir.types() for property_ in each.properties)
    return {property_.property_id for property_ in every if not property_.declared_directly}


def said_of(property_: IRProperty, known: Callable[[int], int]) -> set[Fact]:
    type_, embed = property_.type, property_.embed_source
    found: set[Fact] = {
        ("name", property_.name),
        ("type", type_.scalar, type_.is_list, type_.dimension, type_.enum_values is None),
        ("nullable", type_.nullable),
        ("embed", embed and (known(embed.source.property_id), embed.model)),
    }
    found |= {("value", value) for value in type_.enum_values or ()}
    return found | {("note", note) for note in property_.annotations}


def rules(table: IRNode | IREdge, known: Callable[[int], int]) -> set[Fact]:
    """The constraints that no interface injects."""
    inherited: set[Fact] = {
        (kind, frozenset({known(p.property_id)}))
        for p in table.properties
        if not p.declared_directly
        for kind in p.property_constraints
    }
    found: set[Fact] = set()
    for rule in table.constraints:
        members = frozenset(
            known(field.property_id) if isinstance(field, PropertyField) else field.name
            for field in rule.fields
        )
        if (rule.kind, members) not in inherited:
            rest = (rule.minimum, rule.maximum) if isinstance(rule, RangeConstraint) else ()
            pattern = rule.pattern if isinstance(rule, CheckConstraint) else None
            found.add((rule.kind, members, rest, pattern))
    return found
